import { readdir, realpath, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'

/** Dynamips is told this in place of the path of an image, which may have what its protocol cannot carry. */
export const imageLink = 'image.bin'
/** What dynamips logs by itself, and what it complains of. */
export const logName = 'dynamips.log'
export const errorsName = 'errors.txt'

/** What is of use only while the program runs: the link, its tables of instructions, and the lock of its files. */
const passing = /^(image\.bin|ilt_.*|.*_lock)$/

/** Makes the directory of a router ready for a run. */
export async function prepareFiles(directory: string, image: string): Promise<void> {
  // What earlier runs said is not to be taken for what this one says.
  for (const name of [imageLink, logName, errorsName]) await remove(directory, name)
  await symlink(await realpath(image), join(directory, imageLink))
}

/** Leaves what belongs to the router: its NVRAM and disks, and what was said last. */
export async function removePassing(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (passing.test(name)) await remove(directory, name)
  }
}

/** Whatever was put there by that name. */
const remove = (directory: string, name: string) => rm(join(directory, name), { recursive: true, force: true })
