import { mkdirSync, readdirSync, realpathSync, rmSync, statSync, utimesSync } from 'node:fs'
import nodeModule from 'node:module'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { build } from './version.ts'

const firstWriteMs = 10_000
const unusedMs = 30 * 86_400_000

/**
 * Keeps what V8 compiles of this program in the cache directory of the user, for the next start: compiling is a quarter of a
 * start. Without effect in a checkout, before Node 22.10, and where another user could write into the directory.
 */
export function keepCompiledCode(): void {
  if (build === 'source' || nodeModule.flushCompileCache === undefined) return
  try {
    const { CACHE_DIRECTORY, NODE_COMPILE_CACHE, XDG_CACHE_HOME } = process.env
    // Node has enabled it.
    if (NODE_COMPILE_CACHE) return
    // CACHE_DIRECTORY: systemd.exec(5), the first of a list.
    const cache = CACHE_DIRECTORY?.split(':')[0] || XDG_CACHE_HOME || join(homedir(), '.cache')
    const ours = join(cache, 'patchbay', 'compiled')
    const directory = join(ours, build)
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    if (!isOnlyOurs(realpathSync(directory))) return
    nodeModule.enableCompileCache(directory)
    // Node writes at the end of the process. A service may be killed, and should not lose it.
    setTimeout(() => {
      nodeModule.flushCompileCache()
      removeUnused(ours, directory)
    }, firstWriteMs).unref()
  } catch {
    // A home that is not there or full: the program compiles itself at each start.
  }
}

/** Whether nobody but this user and root can change the directory or replace it by another one. */
export function isOnlyOurs(directory: string): boolean {
  const { uid, mode } = statSync(directory)
  const isSticky = (mode & 0o1000) !== 0
  if ((uid !== 0 && uid !== process.getuid?.()) || ((mode & 0o022) !== 0 && !isSticky)) return false
  return directory === dirname(directory) || isOnlyOurs(dirname(directory))
}

/** Removes the code of builds that were not started for `unusedMs`. */
function removeUnused(all: string, own: string): void {
  const now = new Date()
  try {
    utimesSync(own, now, now)
    for (const name of readdirSync(all)) {
      const path = join(all, name)
      if (now.getTime() - statSync(path).mtimeMs > unusedMs) rmSync(path, { recursive: true, force: true })
    }
  } catch {
    // Another service has removed one meanwhile.
  }
}
