import { chmod, copyFile, readFile, readlink, rename, rm, stat, utimes } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { begins } from '../../engine/storage/file-head.ts'
import { findProgram } from '../../os/system/find-program.ts'

export const installHint = 'sudo apt-get install dynamips (Debian: component non-free)'

/** The path of the program; 409 when it is not installed. */
export function requireDynamips(pathOrName: string): string {
  const found = findProgram(pathOrName)
  if (found === undefined) throw conflict(`${pathOrName} was not found (dynamips.path); ${installHint}`)
  return found
}

/**
 * The program to run: a copy without file capabilities, made in `directory` when it is missing or old. Debian gives dynamips
 * capabilities for network devices, which a router without ports does not use. With them execve(2) fails with EPERM in a container
 * that lacks these capabilities, and the kernel clears PR_SET_PDEATHSIG (prctl(2)). Callers make one copy at a time.
 */
export async function unprivileged(program: string, directory: string): Promise<string> {
  // A script may look for files beside itself, so it is not copied.
  if (!(await begins(program, (head) => head.toString('latin1', 0, 4) === '\x7fELF'))) return program
  const copy = join(directory, 'dynamips')
  const [original, copied] = [await stat(program), await stat(copy).catch(() => undefined)]
  const changed = Math.floor(original.mtimeMs / 1000)
  if (copied?.size !== original.size || copied.mtimeMs !== changed * 1000) {
    const fresh = `${copy}.new`
    // A running program cannot be written to (ETXTBSY), so the new copy replaces it by a rename.
    await rm(fresh, { force: true })
    await copyFile(program, fresh)
    await chmod(fresh, 0o700)
    await utimes(fresh, changed, changed)
    await rename(fresh, copy)
  }
  // A file system that is mounted with noexec does not run the copy.
  return findProgram(copy) ?? program
}

/** Whether dynamips has the option for the address of its consoles. Without it (up to 0.2.21) they are where its control port is. */
export const takesConsoleAddress = async (program: string): Promise<boolean> =>
  (await readFile(program)).includes('console-binding-addr')

/** Whether a process is dynamips itself, and not a script that started dynamips. */
export const isDynamips = async (pid: number): Promise<boolean> =>
  basename(await readlink(`/proc/${pid}/exe`).catch(() => '')).startsWith('dynamips')
