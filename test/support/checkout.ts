import { execFile } from 'node:child_process'
import { chown, cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { onTestFinished, type TestContext } from 'vitest'

const root = join(import.meta.dirname, '../..')
const run = promisify(execFile)

/** A user of this machine. */
export interface User {
  readonly uid: number
  readonly gid: number
}

/** The machine's own Node and npm, as a user has them, and not those of the development dependencies. */
export const ownEnv = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_)/.test(name))),
  PATH: (process.env.PATH ?? '')
    .split(delimiter)
    .filter((it) => !it.includes('node_modules'))
    .join(delimiter),
}

/** What git would clone, as it is now, in a directory of its own. */
export async function checkout(): Promise<string> {
  const directory = await workplace()
  const { stdout } = await run('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root })
  for (const name of stdout.split('\0').filter((it) => it !== '')) {
    await cp(join(root, name), join(directory, name), { recursive: true }).catch(() => {})
  }
  return directory
}

/** An empty directory, of a user if one is given. */
export async function workplace(user?: User): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-packaging-'))
  if (user !== undefined) await chown(directory, user.uid, user.gid)
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  return directory
}

/** What npm says; the test is skipped where neither the registry nor npm's cache has the packages. */
export async function npm({ skip }: TestContext, cwd: string, ...args: string[]): Promise<string> {
  try {
    const { stdout, stderr } = await run('npm', [...args, '--prefer-offline', '--fetch-retries=0'], {
      cwd,
      env: ownEnv,
    })
    return stdout + stderr
  } catch (error) {
    const { stderr = '' } = error as { stderr?: string }
    if (isOffline(stderr)) {
      return skip('no network, and the packages are not in the cache of npm')
    }
    throw error
  }
}

export const isOffline = (message: string): boolean =>
  /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|EHOSTUNREACH|ENOTCACHED|ETIMEDOUT|network/.test(message)
