import { open } from 'node:fs/promises'
import { basename } from 'node:path'
import type { ImageKindName } from '../../../src/model/image.ts'
import { isIosImage } from '../kinds/dynamips/image.ts'
import { elfHeader } from '../kinds/iou/elf.ts'

/** What is particular to the images of one kind of node. */
export interface ImageKind {
  /** Whether a file is shown as an image; directories of images often hold those of other kinds too. */
  readonly isListed: (file: string) => boolean | Promise<boolean>
}

/** A new kind is one more line. */
export const imageKindsOfHost: Readonly<Record<ImageKindName, ImageKind>> = {
  'machine-emulator': { isListed: (file) => !/\.(bin|image|md5sum)$/i.test(file) },
  iou: { isListed: async (file) => /\.bin$|^i86bi/i.test(basename(file)) && (await begins(file, isProgram)) },
  dynamips: { isListed: (file) => begins(file, isIosImage) },
}

/** A program for processors of this kind. */
const isProgram = (head: Buffer): boolean => elfHeader(head) !== undefined

/** Whether a file begins so. */
async function begins(path: string, fits: (head: Buffer) => boolean): Promise<boolean> {
  const file = await open(path, 'r').catch(() => undefined)
  try {
    const head = Buffer.alloc(64)
    const { bytesRead = 0 } = (await file?.read(head, 0, head.length, 0)) ?? {}
    return fits(head.subarray(0, bytesRead))
  } finally {
    await file?.close()
  }
}
