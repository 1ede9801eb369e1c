import { chmod, copyFile, open, readlink, rename, rm, stat, utimes } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { conflict } from '../../../../src/errors/api-error.ts'
import { findProgram } from '../../system/find-program.ts'

export const installHint = 'sudo apt-get install dynamips (Debian: component non-free)'

/** The program of that path or name; 409 when there is none. */
export function requireDynamips(pathOrName: string): string {
  const found = findProgram(pathOrName)
  if (found === undefined) throw conflict(`${pathOrName} was not found (dynamips.path); ${installHint}`)
  return found
}

/**
 * The program to run: a copy in the directory, made when there is none of this program yet. Debian gives dynamips capabilities
 * for network devices, which a router without ports does not use. With them it cannot be run at all where they are taken from
 * everybody, as in most containers (EPERM of execve(2)), and it does not hear of its parent's death (PR_SET_PDEATHSIG is
 * cleared). A copy has none. One at a time.
 */
export async function unprivileged(program: string, directory: string): Promise<string> {
  // A script may look for its program beside itself.
  if (!(await isElf(program))) return program
  const copy = join(directory, 'dynamips')
  const [of, is] = [await stat(program), await stat(copy).catch(() => undefined)]
  const changed = Math.floor(of.mtimeMs / 1000)
  if (is?.size !== of.size || is.mtimeMs !== changed * 1000) {
    const fresh = `${copy}.new`
    // One that runs cannot be written to.
    await rm(fresh, { force: true })
    await copyFile(program, fresh)
    await chmod(fresh, 0o700)
    await utimes(fresh, changed, changed)
    await rename(fresh, copy)
  }
  // Not where the file system does not let anything run.
  return findProgram(copy) ?? program
}

async function isElf(file: string): Promise<boolean> {
  const handle = await open(file).catch(() => undefined)
  if (handle === undefined) return false
  try {
    const { buffer } = await handle.read(Buffer.alloc(4), 0, 4, 0)
    return buffer.equals(Buffer.from('\x7fELF', 'latin1'))
  } finally {
    await handle.close()
  }
}

/** Whether a process is dynamips itself, and not a script that has it as a child. */
export async function isDynamips(pid: number): Promise<boolean> {
  return basename(await readlink(`/proc/${pid}/exe`).catch(() => '')).startsWith('dynamips')
}
