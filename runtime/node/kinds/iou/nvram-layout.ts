import { conflict } from '../../../../src/errors/api-error.ts'

/** Where things are in the NVRAM file of a router. Numbers are big-endian; what is said in bytes counts from its begin. */

const startupMagic = 0xabcd
const privateMagic = 0xfedc
const fileMagic = 0xdcba
export const startupHeaderBytes = 36
export const privateHeaderBytes = 16
/** Where the file is in the memory of the router. */
const baseAddress = 0x1000_0000
const sectorBytes = 1024
/** At the end of the first half; the configuration leaves them to files even where there are none. */
const keptForFiles = 2 * sectorBytes

export const raw = 1
export const compressed = 2
type Format = typeof raw | typeof compressed

/** A configuration as it is stored. */
export interface Section {
  readonly format: Format
  readonly data: Buffer
  /** Of what is compressed, before it was; the header of a private one does not say it. */
  readonly plainBytes?: number | undefined
}

export interface Sections {
  /** Of the image that wrote the file; undefined when nothing was written yet. */
  readonly version: number | undefined
  readonly startup: Section | undefined
  readonly private: Section | undefined
  /** Where what comes after them begins. */
  readonly end: number
}

export const damaged = (why: string) => conflict(`The NVRAM file is damaged: ${why}`)

/** The first half is the configuration and the files; the second is the router's own. */
export const halfOf = (nvram: Buffer): number => nvram.length / 2

/** What is stored in the file; 409 when that cannot be. */
export function sectionsOf(nvram: Buffer): Sections {
  requireSize(nvram)
  const half = nvram.subarray(0, halfOf(nvram))
  const header = half.subarray(0, startupHeaderBytes)
  if (header.every((byte) => byte === 0)) return { version: undefined, startup: undefined, private: undefined, end: 0 }
  const magic = header.readUInt16BE(0)
  if (magic !== startupMagic) throw damaged('it does not begin as one')
  const version = header.readUInt16BE(6)
  const startup = sectionAt(half, {
    ...{ what: 'startup', format: header.readUInt16BE(2), start: startupHeaderBytes, bytes: header.readUInt32BE(16) },
    plainBytes: header.readUInt32BE(20),
  })
  const startupEnd = startupHeaderBytes + startup.data.length
  const at = privateAt(half, startupEnd, version)
  if (at === undefined) return { version, startup, private: undefined, end: startupEnd }
  const start = at + privateHeaderBytes
  const section = sectionAt(half, {
    ...{ what: 'private', format: half.readUInt16BE(at + 2), start, bytes: half.readUInt32BE(at + 12) },
  })
  return { version, startup, private: section, end: start + section.data.length }
}

function requireSize({ length }: Buffer): void {
  if (length % 1024 === 0 && isSize(length / 1024)) return
  throw damaged(`it has ${length} bytes, expected 8 to 1024 KB`)
}

export const isSize = (kb: number): boolean => Number.isInteger(kb) && kb >= 8 && kb <= 1024

interface Stated {
  readonly what: string
  readonly format: number
  readonly start: number
  readonly bytes: number
  readonly plainBytes?: number
}

function sectionAt(half: Buffer, { what, format, start, bytes, plainBytes }: Stated): Section {
  if (format !== raw && format !== compressed)
    throw damaged(`the ${what} configuration has an unknown format, ${format}`)
  if (bytes > half.length - start) throw damaged(`the ${what} configuration is longer than there is room for`)
  const data = half.subarray(start, start + bytes)
  return { format, data, ...(format === compressed && { plainBytes }) }
}

/** Versions differ in how they fill up, and the file may be of another one than it says: both places are looked at. */
function privateAt(half: Buffer, startupEnd: number, version: number): number | undefined {
  const byRule = startupEnd + paddingAfter(startupEnd, version, half.length)
  const aligned = startupEnd + (-startupEnd & 3)
  const places = startupEnd === aligned ? [aligned] : [byRule, aligned, aligned + 4]
  return places.find((at) => at + privateHeaderBytes <= half.length && half.readUInt16BE(at) === privateMagic)
}

/** How many zeros come after a startup configuration that ends there. */
export function paddingAfter(end: number, version: number, halfBytes: number): number {
  const toFour = -end & 3
  const isLong = version <= 0x0f00 || halfBytes >= 64 * 1024
  return toFour > 0 && isLong ? toFour + 4 : toFour
}

/** Both configurations with their headers, but for the checksum. */
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

/**
 * Where the configuration has to end: at the first sector that a file has. Any sector that is marked as one of a file counts,
 * for a file that is lost is worse than room that is not used.
 */
export function roomFor(nvram: Buffer, configEnd: number): number {
  const half = halfOf(nvram)
  const most = half - keptForFiles
  // Sectors are counted from the end of the half, which need not be a whole number of them.
  const first = half - Math.floor((half - configEnd) / sectorBytes) * sectorBytes
  for (let at = first; at < most; at += sectorBytes) if (nvram.readUInt16BE(at) === fileMagic) return at
  return most
}

export function writeSum(nvram: Buffer): void {
  nvram.writeUInt16BE(0, 4)
  nvram.writeUInt16BE(sumOf(nvram) ^ 0xffff, 4)
}

/** The sum as it is counts too: it is the same check. */
export function isSumRight(nvram: Buffer): boolean {
  const stored = nvram.readUInt16BE(4)
  const rest = sumOf(nvram)
  // 0 and FFFF are one number in this arithmetic.
  const sum = (rest + 0xffff - stored) % 0xffff
  return [sum, sum ^ 0xffff].some((value) => value % 0xffff === stored % 0xffff)
}

/** Of the first half, in one's complement. */
function sumOf(nvram: Buffer): number {
  let sum = 0
  for (let at = 0; at < halfOf(nvram); at += 2) sum += nvram.readUInt16BE(at)
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16)
  return sum
}
