import { realpath } from 'node:fs/promises'
import { basename, isAbsolute } from 'node:path'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { isInside } from '../storage/paths.ts'
import type { ImageTool } from './confined-tool.ts'
import { type DiskFacts, inspectImage, requireImage } from './qemu-img.ts'

/** Limit of the backing files below one image. */
const deepest = 32
/** Limit of all files that an image is made of: a large VMDK has one extent for 2 GB. */
const maxFiles = 4096

export interface ChainRules {
  /** Called with each file before it is read: throws when the client may not read it. Absent: any file may be read. */
  readonly allow?: ((file: string) => Promise<void>) | undefined
}

/**
 * Reads the header of every file that an image is made of, one file at a time. `qemu-img` and QEMU open a chain of backing files without a
 * limit, and never finish with an image that is its own backing file. 409 for a cycle, a chain that is too long, and a part that is
 * not a disk.
 */
export async function requireChain(
  tool: ImageTool,
  path: string,
  facts: DiskFacts,
  { allow }: ChainRules = {},
): Promise<void> {
  const start = await idOf(path)
  const seen = new Set([start])
  const walk = async (image: DiskFacts, above: readonly string[]): Promise<void> => {
    const { backing, backingFormat } = image
    for (const file of new Set([...(backing === undefined ? [] : [backing]), ...image.references])) {
      await allow?.(file)
      const id = await idOf(file)
      const isBacking = file === backing
      if (isBacking && above.includes(id)) throw cycle([...above.slice(above.indexOf(id)), id])
      if (seen.has(id)) continue
      seen.add(id)
      if (above.length > deepest || seen.size > maxFiles)
        throw conflict(`The image ${basename(path)} has too many backing files: at most ${deepest} are allowed`)
      requirePart(file, id)
      // QEMU opens an extent and an external data file as they are; a hostile VMDK makes it read another descriptor there.
      if (isBacking || allow !== undefined)
        await walk(await inspectImage(tool, file, isBacking ? backingFormat : undefined), [...above, id])
    }
  }
  await walk(facts, [start])
}

const cycle = (ids: readonly string[]): Error =>
  ids.length === 2
    ? conflict(`The image ${ids[0]} is its own backing file: replace the image`)
    : conflict(`The backing files of the image ${ids[0]} form a cycle (${ids.join(' > ')}): replace the images`)

/** Names the same file always in the same way; other names, such as `nbd:` or `json:`, stand for themselves. */
const idOf = async (name: string): Promise<string> =>
  isAbsolute(name) ? realpath(name).catch(() => name) : name.replace(/^file:(?=\/)/, '')

/** 409 for a part that is not there, or is a FIFO, a character device or a file of the kernel. */
function requirePart(file: string, real: string): void {
  if (!isAbsolute(file)) return
  if (['/proc', '/sys'].some((directory) => isInside(directory, real)))
    throw conflict(`The image is based on ${file}, which is not a place for disks`)
  requireImage(file)
}
