import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { expect, onTestFinished, type TestContext, test } from 'vitest'
import { hangMs } from '../support/limits.ts'
import { freePort } from '../support/ports.ts'

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

async function workplace(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-packaging-'))
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

/** Starts a command that becomes the service, asks it, and ends it as a supervisor does; its exit code. */
async function serves(cwd: string, command: string, ...args: string[]): Promise<void> {
  const data = await workplace()
  const flags = ['--port', String(freePort()), '--data', data]
  // A group of its own: whatever stays of it when the test fails is ended.
  const child = spawn(command, [...args, ...flags], { cwd, env, stdio: ['ignore', 'pipe', 'inherit'], detached: true })
  const gone = once(child, 'exit')
  onTestFinished(() => {
    try {
      process.kill(-(child.pid ?? 0), 'SIGKILL')
    } catch {
      // Nothing is left, as it should be.
    }
  })
  let url: string | undefined
  for await (const line of createInterface({ input: child.stdout })) {
    url = /is ready on (http:\S+)/.exec(line)?.[1]
    if (url !== undefined) break
  }
  const { version } = (await (await fetch(`${url}/v2/compute/version`)).json()) as { version: string }
  expect(version).toMatch(/^\d+\.\d+\.\d+/)
  expect((await fetch(`${url}/docs/rapidoc.js`)).headers.get('content-type')).toContain('text/javascript')
  expect(await (await fetch(`${url}/v2/compute/capabilities`)).json()).toMatchObject({ packet_path: 'fast' })
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
  await serves(directory, 'npm', 'start', '--')
})

test('an install with everything is one without a warning about Node', async (context) => {
  const directory = await checkout()
  expect(await npm(context, directory, 'ci', '--dry-run')).not.toContain('EBADENGINE')
})

test('the packed program is installed anywhere, small, and serves', async (context) => {
  const directory = await checkout()
  await npm(context, directory, 'ci', '--omit=dev')
  const { stdout } = await run('npm', ['pack', '--json'], { cwd: directory, env })
  const [{ filename }] = JSON.parse(stdout.slice(stdout.indexOf('['))) as [{ filename: string }]
  const place = await workplace()
  await mkdir(join(place, 'app'))
  await writeFile(join(place, 'app/package.json'), '{ "name": "app", "private": true }\n')
  await npm(context, join(place, 'app'), 'install', join(directory, filename))
  expect(await sizeOf(join(place, 'app/node_modules'))).toBeLessThan(40)
  expect(await run('npx', ['patchbay', 'version'], { cwd: join(place, 'app'), env })).toMatchObject({
    stdout: expect.stringMatching(/^\d+\.\d+\.\d+/),
  })
  await serves(join(place, 'app'), 'node_modules/.bin/patchbay', 'serve')
})
