import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { conflict, missingImage } from '../../../../src/errors.ts'

/** The routers that dynamips emulates, and the memory each gets when nobody says how much, MB. */
export const defaultRam = {
  c1700: 160,
  c2600: 160,
  c2691: 192,
  c3600: 192,
  c3725: 128,
  c3745: 256,
  c7200: 512,
} as const

export type DynamipsPlatform = keyof typeof defaultRam

export const dynamipsPlatforms = Object.keys(defaultRam) as readonly DynamipsPlatform[]

export const isPlatform = (name: string): name is DynamipsPlatform => Object.hasOwn(defaultRam, name)

/** ELF, 32 bits, big-endian, version 1. */
const magic = Buffer.from([0x7f, 0x45, 0x4c, 0x46, 1, 2, 1])
/** Of an ELF header of 32 bits. */
const headerBytes = 52

/** 409 when a file is no IOS image; `name` is what a client calls it. Whether it is one that boots only dynamips can tell. */
export async function requireIosImage(file: string, name: string): Promise<void> {
  const shown = `image: ${JSON.stringify(name.slice(0, 200))}`
  const handle = await opened(file, name, shown)
  try {
    const stats = await handle.stat()
    if (!stats.isFile()) throw conflict(`${shown} is no file`)
    const header = Buffer.alloc(headerBytes)
    const { bytesRead } = await handle.read(header, 0, headerBytes, 0)
    if (bytesRead === 0) throw conflict(`${shown} is empty; upload it again`)
    if (!header.subarray(0, bytesRead).subarray(0, magic.length).equals(magic)) {
      throw conflict(
        `${shown} is no IOS image: it does not begin as an ELF file of 32 bits, big-endian; decompress it first`,
      )
    }
    if (bytesRead < headerBytes) throw conflict(`${shown} ends within its header; upload it again`)
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
