/** Facts in the header of an ELF file. */
export interface ElfHeader {
  readonly bits: 32 | 64
  /** The loader; undefined for a static program, or when the first bytes do not name one. */
  readonly loader: string | undefined
}

/** The part of a file that is read. */
export const elfHeaderBytes = 64 * 1024

const loaderEntry = 3

/** Parses the first bytes of a little-endian ELF file; undefined for another file. */
export function elfHeader(bytes: Buffer): ElfHeader | undefined {
  const bits = bitsOf(bytes)
  return bits === undefined ? undefined : { bits, loader: loaderOf(bytes, bits) }
}

/** Magic, class, little-endian, version 1. */
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

/** The loader in the program headers (PT_INTERP, elf(5)). */
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
