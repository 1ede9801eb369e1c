import { conflict } from '../../../../src/lib/errors/api-error.ts'

/** The layout of the NVRAM file of a router. Numbers are big-endian; offsets count bytes from the beginning of the file. */

const startupMagic = 0xabcd
const privateMagic = 0xfedc
const fileMagic = 0xdcba
export const startupHeaderBytes = 36
const privateHeaderBytes = 16
/** The address of the file in the memory of the router. */
const baseAddress = 0x1000_0000
const sectorBytes = 1024
/** Reserved for files at the end of the first half. */
const reservedForFiles = 2 * sectorBytes

export const raw = 1
export const compressed = 2
type Format = typeof raw | typeof compressed

/** A stored configuration. */
export interface Section {
  readonly format: Format
  readonly data: Buffer
  /** Size before compression; a private configuration does not store it. */
  readonly plainBytes?: number | undefined
}

export interface Sections {
  /** Version of the image that wrote the file; undefined for an empty file. */
  readonly version: number | undefined
  readonly startup: Section | undefined
  readonly private: Section | undefined
  /** Offset behind both sections. */
  readonly end: number
}

export const damaged = (why: string) => conflict(`The NVRAM file is damaged: ${why}`)

/** Half the size of the file. Configurations and files are in the first half; the second belongs to the router alone. */
export const halfOf = (nvram: Buffer): number => nvram.length / 2

export const emptySections: Sections = { version: undefined, startup: undefined, private: undefined, end: 0 }

/** Reads the sections of a file; 409 when it is damaged. */
export function sectionsOf(nvram: Buffer): Sections {
  requireSize(nvram)
  const half = nvram.subarray(0, halfOf(nvram))
  const header = half.subarray(0, startupHeaderBytes)
  if (header.every((byte) => byte === 0)) return emptySections
  if (header.readUInt16BE(0) !== startupMagic) throw damaged('it has no startup header')
  const version = header.readUInt16BE(6)
  const extent = { format: header.readUInt16BE(2), start: startupHeaderBytes, bytes: header.readUInt32BE(16) }
  const startup = sectionAt(half, { what: 'startup', ...extent, plainBytes: header.readUInt32BE(20) })
  const startupEnd = startupHeaderBytes + startup.data.length
  const at = privateAt(half, startupEnd, version)
  if (at === undefined) return { version, startup, private: undefined, end: startupEnd }
  const start = at + privateHeaderBytes
  const [format, bytes] = [half.readUInt16BE(at + 2), half.readUInt32BE(at + 12)]
  const section = sectionAt(half, { what: 'private', format, start, bytes })
  return { version, startup, private: section, end: start + section.data.length }
}

function requireSize({ length }: Buffer): void {
  if (length % 1024 === 0 && isSize(length / 1024)) return
  throw damaged(`it has ${length} bytes, expected 8 to 1024 KB`)
}

export const isSize = (kb: number): boolean => Number.isInteger(kb) && kb >= 8 && kb <= 1024

interface Extent {
  readonly what: string
  readonly format: number
  readonly start: number
  readonly bytes: number
  readonly plainBytes?: number
}

function sectionAt(half: Buffer, { what, format, start, bytes, plainBytes }: Extent): Section {
  if (format !== raw && format !== compressed)
    throw damaged(`the ${what} configuration has an unknown format, ${format}`)
  if (bytes > half.length - start) throw damaged(`the ${what} configuration is longer than its half of the file`)
  const data = half.subarray(start, start + bytes)
  return { format, data, ...(format === compressed && { plainBytes }) }
}

/** The offset of the private configuration. Versions pad differently, and the version may be wrong, so all are tried. */
function privateAt(half: Buffer, startupEnd: number, version: number): number | undefined {
  const byRule = startupEnd + paddingAfter(startupEnd, version, half.length)
  const aligned = startupEnd + (-startupEnd & 3)
  const offsets = startupEnd === aligned ? [aligned] : [byRule, aligned, aligned + 4]
  return offsets.find((at) => at + privateHeaderBytes <= half.length && half.readUInt16BE(at) === privateMagic)
}

/** The number of zeros behind a startup configuration that ends at `end`. */
function paddingAfter(end: number, version: number, halfBytes: number): number {
  const toFour = -end & 3
  const isLong = version <= 0x0f00 || halfBytes >= 64 * 1024
  return toFour > 0 && isLong ? toFour + 4 : toFour
}

/** Both configurations with their headers, without the checksum. */
export function laidOut(startup: Section, own: Section, version: number, halfBytes: number): Buffer {
  const startupEnd = startupHeaderBytes + startup.data.length
  const at = startupEnd + paddingAfter(startupEnd, version, halfBytes)
  const start = at + privateHeaderBytes
  const bytes = Buffer.alloc(start + own.data.length)
  bytes.writeUInt16BE(startupMagic, 0)
  bytes.writeUInt16BE(startup.format, 2)
  bytes.writeUInt16BE(version, 6)
  writeExtent(bytes, 8, startupHeaderBytes, startup.data.length)
  bytes.writeUInt32BE(startup.plainBytes ?? 0, 20)
  startup.data.copy(bytes, startupHeaderBytes)
  bytes.writeUInt16BE(privateMagic, at)
  bytes.writeUInt16BE(own.format, at + 2)
  writeExtent(bytes, at + 4, start, own.data.length)
  own.data.copy(bytes, start)
  return bytes
}

function writeExtent(bytes: Buffer, at: number, start: number, length: number): void {
  bytes.writeUInt32BE(baseAddress + start, at)
  bytes.writeUInt32BE(baseAddress + start + length, at + 4)
  bytes.writeUInt32BE(length, at + 8)
}

/** The limit of the configuration: the first sector with the mark of a file. An old mark wastes room, but no file is lost. */
export function roomFor(nvram: Buffer, configEnd: number): number {
  const half = halfOf(nvram)
  const limit = half - reservedForFiles
  // Sectors are aligned to the end of the half.
  const first = half - Math.floor((half - configEnd) / sectorBytes) * sectorBytes
  for (let at = first; at < limit; at += sectorBytes) if (nvram.readUInt16BE(at) === fileMagic) return at
  return limit
}

export function writeSum(nvram: Buffer): void {
  nvram.writeUInt16BE(0, 4)
  nvram.writeUInt16BE(sumOf(nvram) ^ 0xffff, 4)
}

/** Whether the checksum, or its complement, is right. */
export function isSumRight(nvram: Buffer): boolean {
  const stored = nvram.readUInt16BE(4)
  const rest = sumOf(nvram)
  // 0 and FFFF are equal in ones' complement.
  const sum = (rest + 0xffff - stored) % 0xffff
  return [sum, sum ^ 0xffff].some((value) => value % 0xffff === stored % 0xffff)
}

/** The ones' complement sum of the first half. */
function sumOf(nvram: Buffer): number {
  let sum = 0
  for (let at = 0; at < halfOf(nvram); at += 2) sum += nvram.readUInt16BE(at)
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16)
  return sum
}
