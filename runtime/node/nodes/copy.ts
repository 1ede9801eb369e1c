import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { cp, rename, rm } from 'node:fs/promises'

/** Makes the destination a copy of the source, amended; what it held before is there until the copy is complete. */
export async function replaceDirectory(
  source: string,
  destination: string,
  amend: (copy: string) => Promise<void>,
): Promise<void> {
  // Where the file system can, large disks are shared until one of both is written.
  const mode = constants.COPYFILE_FICLONE
  const mark = randomBytes(6).toString('hex')
  const [copy, old] = [`${destination}.copy-${mark}`, `${destination}.old-${mark}`]
  try {
    await cp(source, copy, { recursive: true, verbatimSymlinks: true, errorOnExist: true, mode })
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
