import { badRequest } from '../lib/errors/api-error.ts'

/** Bytes of a sector, which is a cluster here, too. */
const sector = 512
/** Sectors before the data: the boot sector, two tables, the root directory. */
const tableSectors = 64
const rootEntries = 512
const rootSectors = (rootEntries * 32) / sector
const firstData = 1 + 2 * tableSectors + rootSectors
/** FAT16 by the number of its clusters: 4,085 to 65,524. */
const clusters = 16_000
const sectors = firstData + clusters
/** Names of one long entry, UTF-16 code units, and most such entries of a name. */
const longPart = 13
const maxName = 255
const endOfChain = 0xffff

/**
 * A disk without partitions that has these files in its root directory: FAT16 with long names, 8 MiB, as firmware and guests read it. The
 * same input gives the same bytes. 400 for a name or a volume that the file system cannot have.
 */
export function fatImage(label: string, files: ReadonlyMap<string, Uint8Array>): Uint8Array<ArrayBuffer> {
  const image = new Uint8Array(sectors * sector)
  const view = new DataView(image.buffer)
  bootSector(image, view, label)
  const entries: Uint8Array[] = [labelEntry(label)]
  const shortNames = new Set<string>()
  let cluster = 2
  view.setUint16(sector, 0xfff8, true)
  view.setUint16(sector + 2, endOfChain, true)
  for (const [name, content] of files) {
    const short = shortName(name, shortNames)
    const count = Math.ceil(content.byteLength / sector)
    if (cluster + count > clusters + 2) throw badRequest(`files: they have more than ${clusters * sector} bytes`)
    entries.push(...longEntries(name, short), fileEntry(short, count === 0 ? 0 : cluster, content.byteLength))
    image.set(content, (firstData + cluster - 2) * sector)
    for (let index = 0; index < count; index++)
      view.setUint16(sector + (cluster + index) * 2, index === count - 1 ? endOfChain : cluster + index + 1, true)
    cluster += count
  }
  if (entries.length > rootEntries) throw badRequest(`files: expected fewer files, or files with shorter names`)
  image.copyWithin((1 + tableSectors) * sector, sector, (1 + tableSectors) * sector)
  for (const [index, entry] of entries.entries()) image.set(entry, (1 + 2 * tableSectors) * sector + index * 32)
  return image
}

const ascii = (text: string, length: number): number[] =>
  [...text.padEnd(length).slice(0, length)].map((char) => char.charCodeAt(0))

/** The parameters of the file system (FAT specification 1.03, "Boot Sector and BPB Structure"). */
function bootSector(image: Uint8Array, view: DataView, label: string): void {
  image.set([0xeb, 0x3c, 0x90, ...ascii('PATCHBAY', 8)])
  view.setUint16(11, sector, true)
  image.set([1], 13)
  view.setUint16(14, 1, true)
  image.set([2], 16)
  view.setUint16(17, rootEntries, true)
  view.setUint16(19, sectors, true)
  image.set([0xf8], 21)
  view.setUint16(22, tableSectors, true)
  view.setUint16(24, 32, true)
  view.setUint16(26, 4, true)
  image.set([0x80, 0, 0x29, 1, 0, 0, 0, ...ascii(volumeName(label), 11), ...ascii('FAT16', 8)], 36)
  image.set([0x55, 0xaa], 510)
}

function volumeName(label: string): string {
  if (!/^[A-Za-z0-9_-]{1,11}$/.test(label))
    throw badRequest(`label: expected 1 to 11 letters, digits, _ and - for a disk, got ${JSON.stringify(label)}`)
  return label.toUpperCase()
}

const entry = (name: readonly number[], attributes: number): Uint8Array => {
  const bytes = new Uint8Array(32)
  bytes.set([...name, attributes])
  // 1 January 1980: without the time of now the same files are the same disk.
  for (const at of [16, 18, 24]) bytes[at] = 0x21
  return bytes
}
const labelEntry = (label: string): Uint8Array => entry(ascii(volumeName(label), 11), 8)

function fileEntry(short: readonly number[], cluster: number, size: number): Uint8Array {
  const bytes = entry(short, 0x20)
  const view = new DataView(bytes.buffer)
  view.setUint16(26, cluster, true)
  view.setUint32(28, size, true)
  return bytes
}

/** A name of eight and three characters that no other file has: `IOS_CO~1TXT`. */
function shortName(name: string, used: Set<string>): number[] {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what a name must not have
  if (name === '' || name.length > maxName || /["*/:<>?\\|\u0000-\u001f]/.test(name) || /[. ]$/.test(name))
    throw badRequest(`files: ${JSON.stringify(name.slice(0, 100))} is not a valid file name on a FAT disk`)
  const clean = (text: string) => text.toUpperCase().replaceAll(/[^A-Z0-9_-]/g, '')
  const dot = name.lastIndexOf('.')
  const [stem, extension] = dot > 0 ? [name.slice(0, dot), name.slice(dot + 1)] : [name, '']
  for (let number = 1; ; number++) {
    const end = `~${number}`
    const short = (clean(stem).slice(0, 8 - end.length) + end).padEnd(8) + clean(extension).slice(0, 3).padEnd(3)
    if (used.has(short)) continue
    used.add(short)
    return ascii(short, 11)
  }
}

/** The entries of a long name, the last part first (FAT specification 1.03, "Long Directory Entries"). */
function longEntries(name: string, short: readonly number[]): Uint8Array[] {
  const sum = short.reduce((all, byte) => (((all & 1) << 7) + (all >> 1) + byte) & 0xff, 0)
  const parts = Math.ceil(name.length / longPart)
  return Array.from({ length: parts }, (_, index) => {
    const part = parts - 1 - index
    const bytes = new Uint8Array(32)
    const view = new DataView(bytes.buffer)
    bytes[0] = (part + 1) | (index === 0 ? 0x40 : 0)
    bytes[11] = 0x0f
    bytes[13] = sum
    for (const [at, offset] of longOffsets.entries()) {
      const code = name.charCodeAt(part * longPart + at)
      const isEnd = part * longPart + at === name.length
      view.setUint16(offset, Number.isNaN(code) ? (isEnd ? 0 : 0xffff) : code, true)
    }
    return bytes
  })
}
const longOffsets = [1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30]
