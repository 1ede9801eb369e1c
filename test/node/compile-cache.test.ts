import { execFile } from 'node:child_process'
import { chmod, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import nodeModule from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { isOnlyOurs } from '../../runtime/node/os/system/compile-cache.ts'
import { bundle } from '../../scripts/bundle.js'
import { placed } from '../support/old-program.ts'

/** A build with a digest of its own, as users have it. */
const program = await placed('released', (directory) => bundle(directory))

/** A cache directory of a user, and the program run with it. */
async function cache() {
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-cache-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const env = { ...process.env, CACHE_DIRECTORY: undefined, NODE_COMPILE_CACHE: undefined, XDG_CACHE_HOME: directory }
  const run = () => promisify(execFile)(process.execPath, [program, 'help'], { env })
  const compiled = async () => {
    const names = await readdir(join(directory, 'patchbay/compiled'), { recursive: true }).catch(() => [])
    const files = names.map((name) => join(directory, 'patchbay/compiled', name))
    return (await Promise.all(files.map(async (it) => ((await stat(it)).isFile() ? it : [])))).flat()
  }
  return { directory, run, compiled }
}

test.skipIf(nodeModule.flushCompileCache === undefined)(
  'the next start reads the compiled code of the last one, which only the user can read',
  async () => {
    const { directory, run, compiled } = await cache()
    const { stdout } = await run()
    const files = await compiled()
    expect(files).not.toEqual([])
    expect((await stat(join(directory, 'patchbay'))).mode & 0o077).toBe(0)
    expect((await run()).stdout).toBe(stdout)
    expect(await compiled()).toEqual(files)
  },
)

test('a directory that other users can write to is not used', async () => {
  const { directory, run, compiled } = await cache()
  await chmod(directory, 0o777)
  expect(isOnlyOurs(directory)).toBe(false)
  await run()
  expect(await compiled()).toEqual([])
})

test('a directory below one that other users can write to is not used, except below a sticky one', async () => {
  const { directory } = await cache()
  const inner = await mkdtemp(join(directory, 'inner-'))
  expect(isOnlyOurs(inner)).toBe(true)
  await chmod(directory, 0o777)
  expect(isOnlyOurs(inner)).toBe(false)
  await chmod(directory, 0o1777)
  expect(isOnlyOurs(inner)).toBe(true)
})

test('without a usable cache a command still runs', async () => {
  const { directory, run } = await cache()
  await writeFile(join(directory, 'patchbay'), 'a file where the directory would be')
  expect((await run()).stdout).toContain('Usage: patchbay')
})
