import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { cp, lstat, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** Replaces the destination by a copy of the source, after `amend`. The old content stays until the copy is complete. */
export async function replaceDirectory(
  source: string,
  destination: string,
  amend: (copy: string) => Promise<void>,
): Promise<void> {
  // Copies share their blocks until a write, where the file system supports that (ioctl_ficlone(2)).
  const mode = constants.COPYFILE_FICLONE
  const mark = randomBytes(6).toString('hex')
  const [copy, old] = [`${destination}.copy-${mark}`, `${destination}.old-${mark}`]
  try {
    await cp(source, copy, { recursive: true, verbatimSymlinks: true, errorOnExist: true, mode, filter: isCopied })
    await amend(copy)
    await rename(destination, old)
    try {
      await rename(copy, destination)
    } catch (error) {
      await rename(old, destination)
      throw error
    }
  } finally {
    await rm(copy, { recursive: true, force: true })
    await rm(old, { recursive: true, force: true })
  }
}

/** Sockets and FIFOs belong to running programs and cannot be copied. */
async function isCopied(path: string): Promise<boolean> {
  const stats = await lstat(path).catch(() => undefined)
  return stats !== undefined && (stats.isFile() || stats.isDirectory() || stats.isSymbolicLink())
}

/** Names of the temporary directories of a copy. */
const halfCopy = /^([0-9a-f-]{36})\.(copy|old)-[0-9a-f]{12}$/

/** Undoes copies that a killed service left unfinished in a directory of nodes: the old content comes back. */
export async function tidyCopies(directory: string): Promise<void> {
  const names: string[] = await readdir(directory).catch(() => [])
  for (const name of names) {
    const [, destination = '', part] = halfCopy.exec(name) ?? []
    if (part === undefined) continue
    if (part === 'old' && !names.includes(destination))
      await rename(join(directory, name), join(directory, destination))
    else await rm(join(directory, name), { recursive: true, force: true })
  }
}
