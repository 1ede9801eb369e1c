import { existsSync } from 'node:fs'
import { readdir, realpath, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { endOfChildLog } from '../../keeper/process/child-log.ts'

/** A link to the image, because the path of the image may have characters that the protocol cannot carry. */
export const imageLink = 'image.bin'
/** The log that dynamips writes. */
export const logName = 'dynamips.log'
/** The error output of dynamips. */
export const errorsName = 'errors.txt'

/** Whether a router has run before: dynamips keeps its NVRAM, on some platforms as a part of the ROM. */
export const hasNvram = (directory: string, platform: string): boolean =>
  ['nvram', 'rom'].some((name) => existsSync(join(directory, `${platform}_i1_${name}`)))

/** Files of one run: the link, the instruction tables, and lock files. */
const temporary = /^(image\.bin|ilt_.*|.*_lock)$/

/** Prepares the directory of a router for a run. Logs of earlier runs go, because the log of this run is read. */
export async function prepareFiles(directory: string, image: string): Promise<void> {
  for (const name of [imageLink, logName, errorsName]) await remove(directory, name)
  await symlink(await realpath(image), join(directory, imageLink))
}

/** Removes the files of a run. NVRAM, disks and logs stay. */
export async function removeTemporary(directory: string): Promise<void> {
  for (const name of await readdir(directory)) if (temporary.test(name)) await remove(directory, name)
}

const remove = (directory: string, name: string) => rm(join(directory, name), { recursive: true, force: true })

/** The last two lines of a log, at most 300 characters, printable, and without the path of the directory. */
export async function lastOutput(log: string, directory: string): Promise<string> {
  const text = (await endOfChildLog(log, 0, 4096)).toString('latin1')
  const lines = text.replaceAll(`${directory}/`, '').replaceAll(directory, '').split(/\r?\n/)
  const printable = lines.map((line) => line.replace(/[^\x20-\x7e]/g, ' ').trim()).filter((line) => line !== '')
  return printable.slice(-2).join('; ').slice(-300)
}
