import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { conflict, missingImage } from '../../../../src/lib/errors/api-error.ts'

/** ELF, 32 bits, big-endian, version 1 (elf(5)). */
const magic = Buffer.from([0x7f, 0x45, 0x4c, 0x46, 1, 2, 1])
/** Size of the ELF header for 32 bits. */
const headerBytes = 52

/** Whether the first bytes of a file may be those of an IOS image. */
export const isIosImage = (head: Buffer): boolean => head.length >= headerBytes && hasMagic(head)

const hasMagic = (head: Buffer): boolean => head.subarray(0, magic.length).equals(magic)

/** 409 when a file is not an IOS image; `name` is its name in the request. Only dynamips can tell whether the image boots. */
export async function requireIosImage(file: string, name: string): Promise<void> {
  const shown = `image: ${JSON.stringify(name.slice(0, 200))}`
  const refusal = (why: string, cause?: unknown) => conflict(`${shown} ${why}`, { cause })
  // O_NONBLOCK: the open of a FIFO must not block.
  const opening = open(file, constants.O_RDONLY | constants.O_NONBLOCK)
  await using handle = await opening.catch((cause: NodeJS.ErrnoException) => {
    const { code = '' } = cause
    if (['EACCES', 'EPERM'].includes(code)) throw refusal('cannot be read by the service', cause)
    if (['ENXIO', 'ENODEV'].includes(code)) throw refusal('is not a file', cause)
    if (!['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG'].includes(code)) throw cause
    throw missingImage(`${shown} does not exist; upload it, then try again`, name)
  })
  if (!(await handle.stat()).isFile()) throw refusal('is not a file')
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(headerBytes), 0, headerBytes, 0)
  const header = buffer.subarray(0, bytesRead)
  if (bytesRead === 0) throw refusal('is empty; upload it again')
  if (!hasMagic(header))
    throw refusal('is not an IOS image (expected a 32-bit big-endian ELF file); decompress it first')
  if (!isIosImage(header)) throw refusal('ends within its header; upload it again')
}
