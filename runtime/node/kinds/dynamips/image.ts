import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { conflict, missingImage } from '../../../../src/errors/api-error.ts'

/** ELF, 32 bits, big-endian, version 1. */
const magic = Buffer.from([0x7f, 0x45, 0x4c, 0x46, 1, 2, 1])
/** Of an ELF header of 32 bits. */
const headerBytes = 52

/** Whether the first bytes of a file are those of an IOS image, as far as can be told. */
export const isIosImage = (head: Buffer): boolean => head.length >= headerBytes && hasMagic(head)

const hasMagic = (head: Buffer): boolean => head.subarray(0, magic.length).equals(magic)

/** 409 when a file is no IOS image; `name` is what a client calls it. Whether it is one that boots only dynamips can tell. */
export async function requireIosImage(file: string, name: string): Promise<void> {
  const shown = `image: ${JSON.stringify(name.slice(0, 200))}`
  const handle = await opened(file, name, shown)
  try {
    const stats = await handle.stat()
    if (!stats.isFile()) throw conflict(`${shown} is no file`)
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(headerBytes), 0, headerBytes, 0)
    const header = buffer.subarray(0, bytesRead)
    if (bytesRead === 0) throw conflict(`${shown} is empty; upload it again`)
    if (!hasMagic(header)) {
      throw conflict(
        `${shown} is no IOS image: it does not begin as an ELF file of 32 bits, big-endian; decompress it first`,
      )
    }
    if (!isIosImage(header)) throw conflict(`${shown} ends within its header; upload it again`)
  } finally {
    await handle.close()
  }
}

async function opened(file: string, name: string, shown: string): Promise<FileHandle> {
  try {
    // A FIFO must not block.
    return await open(file, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (cause) {
    switch ((cause as NodeJS.ErrnoException).code) {
      case 'EACCES':
      case 'EPERM':
        throw conflict(`${shown} cannot be read by the service`, { cause })
      case 'ENOENT':
      case 'ENOTDIR':
      case 'ELOOP':
      case 'ENAMETOOLONG':
        throw missingImage(`${shown} is not there; upload it, then try again`, name)
      case 'ENXIO':
      case 'ENODEV':
        throw conflict(`${shown} is no file`, { cause })
      default:
        throw cause
    }
  }
}
