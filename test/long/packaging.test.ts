import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { beforeAll, expect, onTestFinished, type TestContext, test } from 'vitest'
import { packNpm } from '../../scripts/packages/npm.ts'
import { parse } from '../documents/markdown.ts'
import { callsAt } from '../support/calls.ts'
import { checkout, ownEnv as env, isOffline, npm, type User, workplace } from '../support/checkout.ts'
import { endsWithUs } from '../support/ends-with-us.ts'
import { createLab, startPcs } from '../support/lab.ts'
import { hangMs } from '../support/limits.ts'
import { freePort, portArguments } from '../support/ports.ts'

const root = join(import.meta.dirname, '../..')
const run = promisify(execFile)

/** Starts a command that becomes the service, has a lab in it, and ends it as a supervisor does. */
async function serves(cwd: string, user: User | undefined, command: string, ...args: string[]): Promise<void> {
  const data = await workplace(user)
  const flags = ['--port', String(freePort()), '--data', data, '--pc-engine', 'embedded', ...portArguments()]
  // A group of its own: whatever stays of it when the test fails is ended.
  const child = spawn(command, [...args, ...flags], {
    ...{ cwd, stdio: ['ignore', 'pipe', 'inherit'], detached: true, ...user },
    env: { ...env, ...(user !== undefined && { HOME: data }) },
  })
  const gone = once(child, 'exit')
  onTestFinished(() => {
    try {
      process.kill(-(child.pid ?? 0), 'SIGKILL')
    } catch {
      // Nothing is left, as it should be.
    }
  })
  endsWithUs(data)
  let url = ''
  for await (const line of createInterface({ input: child.stdout as Readable })) {
    url = /is ready on (http:\S+)/.exec(line)?.[1] ?? ''
    if (url !== '') break
  }
  const service = callsAt(url)
  expect(await service.call('GET', '/v2/compute/version')).toMatchObject({
    version: expect.stringMatching(/^\d+\.\d+\.\d+/),
  })
  expect((await fetch(`${url}/docs/rapidoc.js`)).headers.get('content-type')).toContain('text/javascript')
  const html = await (await fetch(`${url}/`)).text()
  const files = html.match(/\/app\/[\w.-]+/g) ?? []
  expect(files.map((it) => it.slice(it.lastIndexOf('.'))).sort()).toEqual(
    expect.arrayContaining(['.css', '.js', '.txt']),
  )
  for (const file of files) expect((await fetch(url + file)).status).toBe(200)
  expect(await service.call('GET', '/v2/compute/capabilities')).toMatchObject({ packet_path: 'fast' })
  const lab = await createLab(service)
  const terminal = await startPcs(service, lab)
  terminal.type('ping 10.0.0.2 -c 1\r')
  await terminal.expect('icmp_seq=1 ttl=64')
  child.kill('SIGTERM')
  await gone
  // The service has ended, and not only what was in front of it.
  await expect
    .poll(
      () =>
        fetch(`${url}/v2/compute/version`).then(
          () => 'answers',
          () => 'gone',
        ),
      { timeout: hangMs },
    )
    .toBe('gone')
}

/** Megabytes of a directory. */
async function sizeOf(directory: string): Promise<number> {
  const { stdout } = await run('du', ['-sm', directory])
  return Number.parseInt(stdout, 10)
}

test('an install without development dependencies is small and starts', async (context) => {
  const directory = await checkout()
  expect(await npm(context, directory, 'ci', '--omit=dev')).not.toContain('EBADENGINE')
  expect(await sizeOf(join(directory, 'node_modules'))).toBeLessThan(75)
  await serves(directory, undefined, 'npm', 'start', '--')
})

test('an install with development dependencies has no warning about Node', async (context) => {
  const directory = await checkout()
  expect(await npm(context, directory, 'ci', '--dry-run')).not.toContain('EBADENGINE')
})

/** The user "nobody"; without root it is the user of the tests. */
const other = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : undefined

/** The npm package, made once. */
let packed: Promise<string> | undefined
beforeAll(async () => {
  const out = await mkdtemp(join(tmpdir(), 'patchbay-packaging-'))
  await chmod(out, 0o755)
  packed = packNpm(out)
  return () => rm(out, { recursive: true, force: true })
}, 300_000)

async function archive({ skip }: TestContext): Promise<string> {
  try {
    return await (packed as Promise<string>)
  } catch (error) {
    if (isOffline((error as Error).message)) return skip('no network, and the packages are not in the cache of npm')
    throw error
  }
}

test('the package is small, and another user installs it without a registry and without scripts, and runs a lab', async (context) => {
  const file = await archive(context)
  const home = await workplace(other)
  const options = { cwd: home, env: { ...env, HOME: home, npm_config_offline: 'true' }, ...other }
  await run('npm', ['install', '--global', '--prefix', home, '--ignore-scripts', file], options)
  expect(await sizeOf(join(home, 'lib/node_modules'))).toBeLessThanOrEqual(15)
  const { stdout: tree } = await run('npm', ['ls', '--global', '--prefix', home, '--all', '--parseable'], options)
  expect(tree.split('\n').filter((it) => it.includes('node_modules'))).toHaveLength(3)
  const files = await readdir(join(home, 'lib/node_modules/patchbay'), { recursive: true })
  expect(files.filter((it) => it.endsWith('.node')).sort()).toEqual(
    ['arm64', 'x64'].map((cpu) => `node_modules/koffi/build/koffi/linux_${cpu}/koffi.node`),
  )
  const licences = await readFile(join(home, 'lib/node_modules/patchbay/THIRD-PARTY-LICENSES.txt'), 'utf8')
  // One that is loaded, one that is bundled, one of the page, and one of the reference page.
  for (const name of ['koffi', 'ws', '@xterm/xterm', 'The reference page'])
    expect(licences).toMatch(new RegExp(`^${name} [(\\d]`, 'm'))
  expect(await run('npx', ['--yes', '--package', file, 'patchbay', 'version'], options)).toMatchObject({
    stdout: expect.stringMatching(/^\d+\.\d+\.\d+/),
  })
  await serves(home, other, join(home, 'bin/patchbay'), 'serve')
})

const consumer = `
import { Patchbay, PatchbayError, type FeedLine, type Reply } from 'patchbay/client'

const client = new Patchbay({ server: 'http://127.0.0.1:9', token: 'secret' })
const version: Promise<{ version: string }> = client.call('GET /v2/version')
const projects: Reply<'GET /v2/projects'> = await client.call('GET /v2/projects')
const names: string[] = projects.map((it) => it.name)
const capture: ReadableStream<Uint8Array> = await client.stream(
  'GET /v2/projects/{project_id}/links/{link_id}/pcap', { params: { project_id: 'lab', link_id: 'l1' } },
)
for await (const line of client.feed({ project: 'lab' })) { const it: FeedLine = line; void it.action }
// @ts-expect-error: there is no such call
void client.call('GET /v2/nothing')
// @ts-expect-error: the version is text
const number: Promise<{ version: number }> = client.call('GET /v2/version')
export { capture, names, number, PatchbayError, version }
`

test('programs import patchbay/client with its types, and no other package', async (context) => {
  const file = await archive(context)
  const place = await workplace()
  await writeFile(join(place, 'package.json'), '{ "name": "consumer", "private": true, "type": "module" }\n')
  await run('npm', ['install', '--offline', file], { cwd: place, env })
  const program = `
    import { Patchbay, PatchbayError } from 'patchbay/client'
    const client = new Patchbay({ server: 'http://127.0.0.1:${freePort()}' })
    console.log(await client.call('GET /v2/version').catch((it) => it instanceof PatchbayError && it.message))`
  const { stdout } = await run('node', ['--input-type=module', '--eval', program], { cwd: place, env })
  expect(stdout).toContain('cannot be reached')
  await writeFile(join(place, 'consumer.ts'), consumer)
  const { blocks } = parse(await readFile(join(root, 'docs/programs.md'), 'utf8'))
  const shown = blocks.filter(({ language }) => language === 'ts').map(({ content }) => content)
  await writeFile(join(place, 'document.ts'), [...shown, 'export { lab, labs, lines, status }'].join('\n'))
  for (const [module, resolution] of [
    ['nodenext', 'nodenext'],
    ['esnext', 'bundler'],
  ] as const) {
    const compilerOptions = {
      ...{ module, moduleResolution: resolution, target: 'es2023', lib: ['es2023', 'dom', 'dom.asynciterable'] },
      ...{ types: [], strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false, noEmit: true },
    }
    await writeFile(
      join(place, 'tsconfig.json'),
      JSON.stringify({ compilerOptions, files: ['consumer.ts', 'document.ts'] }),
    )
    const compiler = run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', place])
    expect(await compiler.catch((error: { stdout: string }) => error.stdout)).toMatchObject({ stdout: '' })
  }
})

test('a bill of materials lists what is shipped, and nothing that only a checkout needs', async () => {
  const out = await workplace()
  const made = async () => {
    await run('npm', ['run', '--silent', 'package', '--', 'sbom', '--out', out], { cwd: root })
    return await readFile(join(out, (await readdir(out)).find((it) => it.endsWith('.cdx.json')) ?? ''), 'utf8')
  }
  const text = await made()
  const { metadata, components } = JSON.parse(text) as {
    metadata: { component: object }
    components: { name: string; version: string; licenses?: object[] }[]
  }
  expect(metadata.component).toMatchObject({ type: 'application', name: 'patchbay', version: expect.any(String) })
  const names = components.map(({ name }) => name)
  for (const name of ['koffi', '@koromix/koffi-linux-arm64', 'yaml', 'smol-toml', '@xterm/xterm', 'rapidoc'])
    expect(names).toContain(name)
  for (const name of ['esbuild', 'vitest', '@koromix/koffi-win32-x64']) expect(names).not.toContain(name)
  expect(components.filter(({ version, licenses }) => version === '' || licenses === undefined)).toEqual([])
  // The same commit gives the same bytes, and the sums are those of the files.
  expect(await made()).toBe(text)
  await run('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: out })
})

test('npm pack says which command makes the package', async () => {
  await expect(run('npm', ['pack', '--dry-run'], { cwd: root, env })).rejects.toMatchObject({
    stderr: expect.stringContaining('npm run package'),
  })
})
