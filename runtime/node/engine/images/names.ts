import { createHash, randomBytes } from 'node:crypto'
import { readdir, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { badRequest, forbidden } from '../../../../src/lib/errors/api-error.ts'
import { quotedPath } from '../../../../src/lib/text/escape.ts'

/**
 * The components of an image name from a client. 403 for a name that could lead out of the directory of images, or that begins
 * with a dot, as our temporary files do; 400 for more than `depth` directories.
 */
export function checkedName(name: string, depth = 1): string[] {
  const shown = quotedPath(name)
  // Control characters and quotes would break the descriptor that a disk in several files has.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\u0000-\u001f\u007f"]/.test(name))
    throw badRequest(`path: ${shown} contains a character that is not allowed in image names`)
  const parts = name.split('/')
  if (name.includes('\\') || /^[A-Za-z]:/.test(name) || parts.some((part) => part === '' || part.startsWith('.')))
    throw forbidden(`path: ${shown} is not a valid image name: expected one without "..", a leading dot or slash`)
  if (parts.length > depth + 1)
    throw badRequest(`path: expected at most ${depth} directory before the name, got ${shown}`)
  return parts
}

const mark = '.patchbay-'
const random = () => randomBytes(8).toString('hex')

/** The temporary path beside a file for an upload in one piece. */
export const uploadBeside = (file: string): string => join(dirname(file), `${mark}${random()}.upload`)
/** The path beside a file for the parts of an upload of `total` bytes from one group. The name is a hash, as file names may be long. */
export const partsBeside = (file: string, total: number, group = ''): string =>
  join(dirname(file), `${partsMark(file, group)}${total}.part`)
/** How the names of the parts of all uploads to a file from one group begin. */
const partsMark = (file: string, group: string): string => {
  const hash = createHash('sha256')
    // No name has a NUL, so no other name and group make the same text.
    .update(`${basename(file)}\0${group}`)
    .digest('hex')
    .slice(0, 16)
  return `${mark}${hash}-`
}
/** Whether there are parts of an upload to a file, from one of these groups. */
export async function hasPartsBeside(file: string, groups: readonly string[]): Promise<boolean> {
  const marks = groups.map((group) => partsMark(file, group))
  const names = await readdir(dirname(file)).catch(() => [])
  return names.some((name) => name.endsWith('.part') && marks.some((mark) => name.startsWith(mark)))
}
/** The temporary directory beside a file for a disk tool. */
export const workshopBeside = (file: string): string => join(dirname(file), `${mark}${random()}.disk`)

const leftover = /^\.patchbay-[0-9a-f]{16}(-\d+\.part|\.upload|\.disk)$/
const dayMs = 24 * 3600 * 1000

/** Removes the leftovers of killed writers in a directory of images and its subdirectories. */
export async function removeLeftovers(directory: string): Promise<void> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => [])
  const below = entries.filter((entry) => entry.isDirectory() && !leftover.test(entry.name))
  for (const parent of [directory, ...below.map(({ name }) => join(directory, name))]) {
    for (const name of await readdir(parent).catch(() => [])) {
      if (leftover.test(name)) await rm(join(parent, name), { recursive: true, force: true })
    }
  }
}

/** Removes the parts of uploads in a directory that have not grown for a day. */
export async function removeAbandoned(directory: string): Promise<void> {
  for (const name of await readdir(directory).catch(() => [])) {
    if (!leftover.test(name) || !name.endsWith('.part')) continue
    const { mtimeMs } = await stat(join(directory, name)).catch(() => ({ mtimeMs: Date.now() }))
    if (Date.now() - mtimeMs > dayMs) await rm(join(directory, name), { force: true })
  }
}
