/** What the header of a program file says. */
export interface ElfHeader {
  readonly bits: 32 | 64
  /** The loader that it is started with; undefined when it needs none, or the file does not say so near its begin. */
  readonly loader: string | undefined
}

/** So many bytes from the begin of a file are enough. */
export const elfHeaderBytes = 64 * 1024

const loaderEntry = 3

/** The header of a little-endian ELF file, from its first bytes; undefined when it is none. */
export function elfHeader(bytes: Buffer): ElfHeader | undefined {
  const bits = bitsOf(bytes)
  return bits === undefined ? undefined : { bits, loader: loaderOf(bytes, bits) }
}

/** Its magic, the class, little-endian, version 1. */
function bitsOf(bytes: Buffer): 32 | 64 | undefined {
  switch (bytes.subarray(0, 7).toString('hex')) {
    case '7f454c46010101':
      return bytes.length < 52 ? undefined : 32
    case '7f454c46020101':
      return bytes.length < 64 ? undefined : 64
    default:
      return undefined
  }
}

/** elf(5): the program headers, of which one may name the loader. */
function loaderOf(bytes: Buffer, bits: 32 | 64): string | undefined {
  const is64 = bits === 64
  const table = is64 ? Number(bytes.readBigUInt64LE(32)) : bytes.readUInt32LE(28)
  const entryBytes = bytes.readUInt16LE(is64 ? 54 : 42)
  const entries = bytes.readUInt16LE(is64 ? 56 : 44)
  if (entryBytes < (is64 ? 56 : 32)) return undefined
  for (let index = 0; index < entries; index++) {
    const entry = table + index * entryBytes
    if (entry + entryBytes > bytes.length) return undefined
    if (bytes.readUInt32LE(entry) !== loaderEntry) continue
    const start = is64 ? Number(bytes.readBigUInt64LE(entry + 8)) : bytes.readUInt32LE(entry + 4)
    const length = is64 ? Number(bytes.readBigUInt64LE(entry + 32)) : bytes.readUInt32LE(entry + 16)
    return start + length > bytes.length
      ? undefined
      : bytes.toString('latin1', start, start + length).replace(/\0.*$/s, '')
  }
  return undefined
}
