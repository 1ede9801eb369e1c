import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, cp, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { expect, onTestFinished, type TestContext, test } from 'vitest'
import { packNpm } from '../../scripts/packages/npm.ts'
import { endsWithUs } from '../support/ends-with-us.ts'
import { createLab, openConsole, start } from '../support/lab.ts'
import { hangMs } from '../support/limits.ts'
import { freePort, portArguments } from '../support/ports.ts'

const root = join(import.meta.dirname, '../..')
const run = promisify(execFile)

/** The machine's own Node and npm, as a user has them, and not those of the development dependencies. */
const env = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_)/.test(name))),
  PATH: (process.env.PATH ?? '')
    .split(delimiter)
    .filter((it) => !it.includes('node_modules'))
    .join(delimiter),
}

/** What git would clone, as it is now, in a directory of its own. */
async function checkout(): Promise<string> {
  const directory = await workplace()
  const { stdout } = await run('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root })
  for (const name of stdout.split('\0').filter((it) => it !== '')) {
    await cp(join(root, name), join(directory, name), { recursive: true }).catch(() => {})
  }
  return directory
}

/** An empty directory, of a user if one is given. */
async function workplace(user?: User): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-packaging-'))
  if (user !== undefined) await chown(directory, user.uid, user.gid)
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  return directory
}

/** What npm says; the test is skipped where neither the registry nor npm's cache has the packages. */
async function npm({ skip }: TestContext, cwd: string, ...args: string[]): Promise<string> {
  try {
    const { stdout, stderr } = await run('npm', [...args, '--prefer-offline', '--fetch-retries=0'], { cwd, env })
    return stdout + stderr
  } catch (error) {
    const { stderr = '' } = error as { stderr?: string }
    if (/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|ENOTCACHED|ETIMEDOUT|network/.test(stderr)) {
      return skip('no network, and the packages are not in the cache of npm')
    }
    throw error
  }
}

interface User {
  readonly uid: number
  readonly gid: number
}

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
  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const answer = await fetch(url + path, { method, ...(body !== undefined && { body: JSON.stringify(body) }) })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return (text === '' ? undefined : JSON.parse(text)) as T
  }
  expect(await call('GET', '/v2/compute/version')).toMatchObject({ version: expect.stringMatching(/^\d+\.\d+\.\d+/) })
  expect((await fetch(`${url}/docs/rapidoc.js`)).headers.get('content-type')).toContain('text/javascript')
  expect(await call('GET', '/v2/compute/capabilities')).toMatchObject({ packet_path: 'fast' })
  const lab = await createLab({ call })
  await start({ call }, lab.pc1, lab.pc2)
  const terminal = await openConsole({ call }, lab.pc1)
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
  expect(await sizeOf(join(directory, 'node_modules'))).toBeLessThan(40)
  await serves(directory, undefined, 'npm', 'start', '--')
})

test('an install with everything is one without a warning about Node', async (context) => {
  const directory = await checkout()
  expect(await npm(context, directory, 'ci', '--dry-run')).not.toContain('EBADENGINE')
})

test('the package is small, and another user installs it without a registry and without scripts, and runs a lab', async ({
  skip,
}) => {
  const out = await workplace()
  const archive = await packNpm(out).catch((error: Error) => {
    if (/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|ENOTCACHED|ETIMEDOUT|network/.test(error.message))
      return skip('no network, and the packages are not in the cache of npm')
    throw error
  })
  // The user "nobody"; without root it is the user of the tests.
  const user = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : undefined
  await chmod(out, 0o755)
  const home = await workplace(user)
  const options = { cwd: home, env: { ...env, HOME: home, npm_config_offline: 'true' }, ...user }
  await run('npm', ['install', '--global', '--prefix', home, '--ignore-scripts', archive], options)
  expect(await sizeOf(join(home, 'lib/node_modules'))).toBeLessThanOrEqual(15)
  const { stdout: tree } = await run('npm', ['ls', '--global', '--prefix', home, '--all', '--parseable'], options)
  expect(tree.split('\n').filter((it) => it.includes('node_modules'))).toHaveLength(3)
  const files = await readdir(join(home, 'lib/node_modules/patchbay'), { recursive: true })
  expect(files.filter((it) => it.endsWith('.node')).sort()).toEqual(
    ['arm64', 'x64'].map((cpu) => `node_modules/koffi/build/koffi/linux_${cpu}/koffi.node`),
  )
  expect(await run('npx', ['--yes', '--package', archive, 'patchbay', 'version'], options)).toMatchObject({
    stdout: expect.stringMatching(/^\d+\.\d+\.\d+/),
  })
  await serves(home, user, join(home, 'bin/patchbay'), 'serve')
})

test('npm pack says which command makes the package', async () => {
  await expect(run('npm', ['pack', '--dry-run'], { cwd: root, env })).rejects.toMatchObject({
    stderr: expect.stringContaining('npm run package'),
  })
})
