import { badRequest } from '../lib/errors/api-error.ts'
import { compareText } from '../lib/text/compare-text.ts'

/** Bytes of a logical sector (ECMA-119, 6.1.2). The descriptors begin at sector 16. */
const sector = 2048
const firstDescriptor = 16

/** Longest name of a file or directory, characters (Joliet specification, "Joliet Filename Length"). */
const maxName = 64
/** Longest label: that of a Joliet volume has 32 bytes in UCS-2. */
const maxLabel = 16
/** Directories below the root: ECMA-119, 6.8.2.1 has 8 levels with the root. */
const maxDepth = 7

/** A file or directory, with its name in the primary tree, which older systems read, and its full name in the Joliet tree. */
interface Entry {
  readonly name: string
  /** The name in the primary tree, set when its directory is complete. */
  short: string
  readonly parent: Directory | undefined
  extent: Record<Tree, number>
}
interface File extends Entry {
  readonly content: Uint8Array
}
interface Directory extends Entry {
  readonly entries: Map<string, File | Directory>
  size: Record<Tree, number>
}
/** The two trees of directories, which share the content of files. */
type Tree = 'primary' | 'joliet'

/**
 * A CD image with these files: ISO 9660 (ECMA-119, level 1) with Joliet names, which Linux, BSD and Windows read. The same input gives
 * the same bytes. `files`: contents by path, such as `openstack/latest/user_data`. 400 for a label or name that no CD can have.
 */
export function isoImage(label: string, files: ReadonlyMap<string, Uint8Array>): Uint8Array<ArrayBuffer> {
  if (!/^[\x21-\x7e]([\x20-\x7e]{0,14}[\x21-\x7e])?$/.test(label))
    throw badRequest(`label: expected 1 to ${maxLabel} printable ASCII characters, got ${JSON.stringify(label)}`)
  const root = treeOf(files)
  const directories = inOrder(root)
  for (const it of directories) {
    giveShortNames(it)
    it.size = { primary: sizeOf(it, 'primary'), joliet: sizeOf(it, 'joliet') }
  }
  const ordered: Record<Tree, Directory[]> = {
    primary: directories,
    joliet: inOrder(root, ({ name }) => name),
  }
  const tables = { primary: pathTableSize(directories, 'primary'), joliet: pathTableSize(directories, 'joliet') }
  // Three descriptors, two path tables a tree (one of each byte order), directories, files.
  let next = firstDescriptor + 3
  const allocate = (bytes: number) => {
    const at = next
    next += sectorsOf(bytes)
    return at
  }
  const sectors = {
    primary: { little: allocate(tables.primary), big: allocate(tables.primary) },
    joliet: { little: allocate(tables.joliet), big: allocate(tables.joliet) },
  }
  for (const tree of ['primary', 'joliet'] as const)
    for (const it of ordered[tree]) it.extent[tree] = allocate(it.size[tree])
  const contents = directories.flatMap(({ entries }) => [...entries.values()].filter(isFile))
  for (const it of contents) {
    // A file without content has no extent (ECMA-119, 6.4.5 leaves the number open).
    const at = it.content.byteLength === 0 ? 0 : allocate(it.content.byteLength)
    it.extent = { primary: at, joliet: at }
  }

  const image = new Uint8Array(next * sector)
  const at = (number: number) => image.subarray(number * sector)
  for (const [index, tree] of (['primary', 'joliet'] as const).entries()) {
    const table = { ...sectors[tree], size: tables[tree] }
    descriptor(at(firstDescriptor + index), { tree, label, root, sectors: next, table })
    pathTable(at(sectors[tree].little), ordered[tree], tree, true)
    pathTable(at(sectors[tree].big), ordered[tree], tree, false)
    for (const it of directories) writeDirectory(at(it.extent[tree]), it, tree)
  }
  // The set of descriptors ends with type 255 (ECMA-119, 8.3).
  image.set([255, ...ascii('CD001'), 1], (firstDescriptor + 2) * sector)
  for (const it of contents) image.set(it.content, it.extent.primary * sector)
  return image
}

const isFile = (it: File | Directory): it is File => 'content' in it
const sectorsOf = (bytes: number): number => Math.ceil(bytes / sector)
const ascii = (text: string): number[] => [...text].map((char) => char.charCodeAt(0))
/** UCS-2, big-endian. */
const wide = (text: string): number[] =>
  Array.from({ length: text.length }, (_, index) => text.charCodeAt(index)).flatMap((code) => [code >> 8, code & 255])

const newDirectory = (name: string, parent: Directory | undefined): Directory => ({
  name,
  short: '',
  parent,
  extent: { primary: 0, joliet: 0 },
  size: { primary: 0, joliet: 0 },
  entries: new Map(),
})

function treeOf(files: ReadonlyMap<string, Uint8Array>): Directory {
  const root = newDirectory('', undefined)
  for (const [path, content] of files) {
    const wrong = (why: string) => badRequest(`files: ${JSON.stringify(path.slice(0, 200))} ${why}`)
    const names = path.split('/')
    const last = names.pop() as string
    if (names.length > maxDepth) throw wrong(`is below more than ${maxDepth} directories`)
    for (const name of [...names, last]) requireName(name, wrong)
    let directory = root
    for (const name of names) {
      const below = directory.entries.get(name) ?? newDirectory(name, directory)
      if (isFile(below)) throw wrong(`is below ${name}, which is a file`)
      directory.entries.set(name, below)
      directory = below
    }
    if (directory.entries.has(last)) throw wrong('is a directory of another file')
    const extent = { primary: 0, joliet: 0 }
    directory.entries.set(last, { name: last, short: '', parent: directory, extent, content })
  }
  return root
}

function requireName(name: string, wrong: (why: string) => Error): void {
  if (name === '' || name === '.' || name === '..') throw wrong('is not a relative path of names')
  if (name.length > maxName) throw wrong(`has a name of more than ${maxName} characters`)
  // Joliet specification, "Allowed Character Set".
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\u0000-\u001f\u007f*:;?\\]/.test(name)) throw wrong('has a character that no file of a CD may have')
}

/** All directories by level, then by their parents, then by name (ECMA-119, 6.9.1). */
function inOrder(root: Directory, key: (it: Entry) => string = ({ short, name }) => short || name): Directory[] {
  const all = [root]
  for (const it of all) {
    const below = [...it.entries.values()].filter((entry): entry is Directory => !isFile(entry))
    all.push(...below.sort((a, b) => compareText(key(a), key(b))))
  }
  return all
}

/** Names of 8 and 3 characters `A-Z0-9_` (ECMA-119, 10.1), unique in their directory. */
function giveShortNames({ entries }: Directory): void {
  const taken = new Set<string>()
  for (const entry of [...entries.values()].sort((a, b) => compareText(a.name, b.name))) {
    const upper = entry.name.toUpperCase().replace(/[^A-Z0-9_.]/g, '_')
    const dot = isFile(entry) ? upper.lastIndexOf('.') : -1
    const stem = (dot > 0 ? upper.slice(0, dot) : upper).replaceAll('.', '_')
    const ending = dot > 0 ? upper.slice(dot + 1, dot + 4) : ''
    const build = (word: string) => (isFile(entry) ? `${word}.${ending};1` : word)
    let short = build(stem.slice(0, 8))
    for (let number = 1; taken.has(short); number++)
      short = build(`${stem.slice(0, 7 - String(number).length)}_${number}`)
    taken.add(short)
    entry.short = short
  }
}

const identifier = (entry: Entry, tree: Tree): number[] => {
  if (tree === 'primary') return ascii(entry.short)
  return wide('content' in entry ? `${entry.name};1` : entry.name)
}

/** Length of a directory record: 33 bytes and the identifier, made even (ECMA-119, 9.1). */
const recordSize = (length: number): number => 33 + length + ((33 + length) % 2)

/** Offsets of the records of a directory, in bytes: no record crosses the end of a sector. */
function recordsOf(directory: Directory, tree: Tree) {
  const own = { id: [0], entry: directory }
  const above = { id: [1], entry: directory.parent ?? directory }
  const entries = [...directory.entries.values()].map((entry) => ({ id: identifier(entry, tree), entry }))
  entries.sort((a, b) => compared(a.id, b.id))
  let at = 0
  const records = [own, above, ...entries].map(({ id, entry }) => {
    const size = recordSize(id.length)
    if ((at % sector) + size > sector) at = sectorsOf(at) * sector
    const record = { id, entry, at }
    at += size
    return record
  })
  return { records, end: at }
}

function compared(a: readonly number[], b: readonly number[]): number {
  for (let index = 0; index < Math.min(a.length, b.length); index++) {
    const difference = (a[index] as number) - (b[index] as number)
    if (difference !== 0) return difference
  }
  return a.length - b.length
}

const sizeOf = (directory: Directory, tree: Tree): number => sectorsOf(recordsOf(directory, tree).end) * sector

function writeDirectory(out: Uint8Array, directory: Directory, tree: Tree): void {
  for (const { id, entry, at } of recordsOf(directory, tree).records)
    writeRecord(out.subarray(at), entry as File | Directory, id, tree)
}

/** A directory record (ECMA-119, 9.1). */
function writeRecord(out: Uint8Array, entry: File | Directory, id: readonly number[], tree: Tree): void {
  const isDirectory = !isFile(entry)
  out[0] = recordSize(id.length)
  both32(out, 2, entry.extent[tree])
  both32(out, 10, isDirectory ? entry.size[tree] : entry.content.byteLength)
  // 2000-01-01 00:00 UTC, so that the same files make the same image.
  out.set([100, 1, 1, 0, 0, 0, 0], 18)
  out[25] = isDirectory ? 2 : 0
  both16(out, 28, 1)
  out[32] = id.length
  out.set(id, 33)
}

const directoryIdentifier = (it: Directory, tree: Tree): number[] =>
  it.parent === undefined ? [0] : identifier(it, tree)
const pathTableSize = (directories: readonly Directory[], tree: Tree): number =>
  directories.reduce((sum, directory) => sum + evenly(8 + directoryIdentifier(directory, tree).length), 0)
const evenly = (bytes: number): number => bytes + (bytes % 2)

/** A path table (ECMA-119, 9.4). */
function pathTable(out: Uint8Array, directories: readonly Directory[], tree: Tree, isLittle: boolean): void {
  const view = viewOf(out)
  let at = 0
  for (const it of directories) {
    const id = directoryIdentifier(it, tree)
    out[at] = id.length
    view.setUint32(at + 2, it.extent[tree], isLittle)
    view.setUint16(at + 6, directories.indexOf(it.parent ?? it) + 1, isLittle)
    out.set(id, at + 8)
    at += evenly(8 + id.length)
  }
}

interface Volume {
  readonly tree: Tree
  readonly label: string
  readonly root: Directory
  readonly sectors: number
  readonly table: { readonly little: number; readonly big: number; readonly size: number }
}

/** A primary or supplementary volume descriptor (ECMA-119, 8.4 and 8.5). */
function descriptor(out: Uint8Array, { tree, label, root, sectors, table }: Volume): void {
  const isWide = tree === 'joliet'
  const text = (at: number, length: number, value: string) => {
    const bytes = isWide ? wide(value.padEnd(length / 2)) : ascii(value.padEnd(length))
    // A field of an odd length in UCS-2 ends with a zero byte.
    out.set(bytes.slice(0, length), at)
  }
  out.set([isWide ? 2 : 1, ...ascii('CD001'), 1])
  text(8, 32, '')
  text(40, 32, label)
  both32(out, 80, sectors)
  // The escape sequence of UCS-2 level 3 (Joliet specification).
  if (isWide) out.set(ascii('%/E'), 88)
  both16(out, 120, 1)
  both16(out, 124, 1)
  both16(out, 128, sector)
  both32(out, 132, table.size)
  viewOf(out).setUint32(140, table.little, true)
  viewOf(out).setUint32(148, table.big, false)
  writeRecord(out.subarray(156), root, [0], tree)
  for (const at of [190, 318, 446, 574]) text(at, 128, '')
  for (const at of [702, 739, 776]) text(at, 37, '')
  // Creation and modification; expiration and effect are not given (ECMA-119, 8.4.26.1).
  for (const at of [813, 830]) out.set([...ascii('2000010100000000'), 0], at)
  for (const at of [847, 864]) out.set([...ascii('0000000000000000'), 0], at)
  out[881] = 1
}

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** A number in both byte orders (ECMA-119, 7.2.3 and 7.3.3). */
function both16(out: Uint8Array, at: number, value: number): void {
  viewOf(out).setUint16(at, value, true)
  viewOf(out).setUint16(at + 2, value, false)
}
function both32(out: Uint8Array, at: number, value: number): void {
  viewOf(out).setUint32(at, value, true)
  viewOf(out).setUint32(at + 4, value, false)
}
