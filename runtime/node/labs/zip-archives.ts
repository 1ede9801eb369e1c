import { randomUUID } from 'node:crypto'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { promisify } from 'node:util'
import { crc32 } from 'node:zlib'
import yauzl, { type Entry, type ZipFile as ZipReader } from 'yauzl'
import { ZipFile } from 'yazl'
import type { ArchiveMember, LabArchives, OpenArchive } from '../../../src/controller/archives.ts'
import { ApiError, badRequest } from '../../../src/errors/api-error.ts'
import { requireSpace, withDiskErrors } from '../storage/disk.ts'
import { receive } from '../storage/receive.ts'
import type { ServiceRecords } from '../storage/service-records.ts'
import { webStream } from '../system/web-stream.ts'

const maxMembers = 100_000
const maxNameBytes = 1024
/** Beyond this size the content may be this many times the archive: deflate makes 1,000 bytes of zeros one. */
const freeBytes = 2 ** 30
const maxRatio = 100
const maxBytes = 2 ** 40
/** Bytes that wait between a file and the archive. */
const bufferBytes = 2 ** 20

export interface ZipArchivesOptions {
  readonly records: ServiceRecords
  readonly minFreeMb: () => number
  readonly bodyTimeoutMs: number
}

/** Zip archives by yazl and yauzl. One that comes is received into a file without a name, as its directory is at its end. */
export class ZipArchives implements LabArchives {
  readonly #options: ZipArchivesOptions

  constructor(options: ZipArchivesOptions) {
    this.#options = options
  }

  write(members: AsyncIterable<ArchiveMember>, level: number): ReadableStream<Uint8Array> {
    const zip = new ZipFile()
    const output = zip.outputStream as Readable
    const fail = (error: unknown) => void output.destroy(error as Error)
    zip.on('error', fail)
    // Who reads it gets the error, also when that comes before the first read.
    output.on('error', fail)
    let current: Readable | undefined
    output.once('close', () => current?.destroy())
    const add = async () => {
      for await (const { name, size, modified, content } of members) {
        current = Readable.from(content, { objectMode: false, highWaterMark: bufferBytes })
        const done = finished(current)
        zip.addReadStream(current, name, {
          ...{ size, mtime: new Date(modified), mode: 0o100600 },
          ...(level === 0 || size === 0 ? { compress: false } : { compressionLevel: level }),
        })
        if (output.destroyed) current.destroy()
        await done
      }
      zip.end()
    }
    add().catch(fail)
    return webStream(output)
  }

  async open(content: ReadableStream<Uint8Array>): Promise<OpenArchive> {
    const { records, minFreeMb, bodyTimeoutMs } = this.#options
    await requireSpace(records.data, minFreeMb())
    const path = records.pathOf(`archive-${randomUUID()}.tmp`)
    const handle = await withDiskErrors('The archive', () => open(path, 'wx+', 0o600))
    try {
      // Without a name it is gone with the service.
      await rm(path)
      const limits = { directory: records.data, minFreeMb, bodyTimeoutMs, fate: 'nothing was imported' }
      await withDiskErrors('The archive', () => receive(content, handle, limits))
      return await ZipArchive.read(handle)
    } catch (error) {
      await handle.close()
      throw error
    }
  }
}

class ZipArchive implements OpenArchive {
  readonly members: ReadonlyMap<string, number>
  readonly #handle: FileHandle
  readonly #zip: ZipReader
  readonly #entries: ReadonlyMap<string, Entry>

  private constructor(handle: FileHandle, zip: ZipReader, entries: ReadonlyMap<string, Entry>) {
    this.#handle = handle
    this.#zip = zip
    this.#entries = entries
    this.members = new Map([...entries].map(([name, { uncompressedSize }]) => [name, uncompressedSize]))
  }

  static async read(handle: FileHandle): Promise<ZipArchive> {
    const { size } = await handle.stat()
    const zip = await fromFd(handle.fd, { lazyEntries: true, autoClose: false, strictFileNames: true }).catch(noZip)
    if (zip.entryCount > maxMembers) throw tooLarge(`${zip.entryCount} files, expected at most ${maxMembers}`)
    const entries = new Map<string, Entry>()
    let [stored, total] = [0, 0]
    for await (const entry of entriesOf(zip)) {
      const { fileName: name } = entry
      requireReadable(entry)
      stored += entry.compressedSize
      total += entry.uncompressedSize
      // Files that share their bytes make much of little.
      if (stored > size)
        throw badRequest('The archive says that it has more bytes than came: it is damaged, or made to')
      if (total > maxBytes || (total > freeBytes && total > size * maxRatio))
        throw tooLarge(`files of more than ${total} bytes in ${size}`)
      if (name.endsWith('/')) continue
      if (entries.has(name)) throw badRequest(`The archive has ${shown(name)} twice`)
      entries.set(name, entry)
    }
    return new ZipArchive(handle, zip, entries)
  }

  async read(name: string): Promise<ReadableStream<Uint8Array>> {
    const entry = this.#entries.get(name) as Entry
    const bytes = await promisify<Entry, Readable>(this.#zip.openReadStream.bind(this.#zip))(entry).catch(noZip)
    // It may fail before it is read.
    bytes.on('error', () => {})
    return webStream(Readable.from(checked(bytes, entry), { objectMode: false, highWaterMark: bufferBytes }))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close()
  }
}

const fromFd = promisify<number, yauzl.Options, ZipReader>(yauzl.fromFd)

async function* entriesOf(zip: ZipReader): AsyncGenerator<Entry> {
  for (;;) {
    const entry = await new Promise<Entry | undefined>((resolve, reject) => {
      zip.removeAllListeners()
      zip.once('entry', resolve).once('end', resolve).once('error', reject)
      zip.readEntry()
    }).catch(noZip)
    if (entry === undefined) return
    yield entry
  }
}

/** The bytes of a member; the number of them is checked by yauzl. */
async function* checked(bytes: Readable, { fileName, crc32: expected }: Entry): AsyncGenerator<Uint8Array> {
  let sum = 0
  try {
    for await (const piece of bytes as AsyncIterable<Uint8Array>) {
      sum = crc32(piece, sum)
      yield piece
    }
  } catch (error) {
    noZip(bytes.errored ?? error)
  }
  if (sum !== expected) throw badRequest(`The file ${shown(fileName)} of the archive is damaged: its CRC-32 is another`)
}

/** Types of files, in the upper half of the attributes (inode(7), `S_IFMT`). */
const typeMask = 0o170000
const types = new Set([0, 0o100000, 0o040000])
/** APPNOTE.TXT 4.4.5. */
const [stored, deflated] = [0, 8]

function requireReadable({ fileName, externalFileAttributes, generalPurposeBitFlag, compressionMethod }: Entry): void {
  const why = (text: string) => badRequest(`The file ${shown(fileName)} of the archive ${text}`)
  if (Buffer.byteLength(fileName) > maxNameBytes) throw why(`has a name of more than ${maxNameBytes} bytes`)
  // APPNOTE.TXT 4.4.4: bit 0 is set when a file is encrypted.
  if ((generalPurposeBitFlag & 1) !== 0) throw why('is encrypted: make the archive without a password')
  if (compressionMethod !== stored && compressionMethod !== deflated)
    throw why(`is compressed by method ${compressionMethod}: make the archive with compression zip or none`)
  if (!types.has((externalFileAttributes >>> 16) & typeMask)) throw why('is a link or a device, expected a file')
}

const shown = (name: string): string => JSON.stringify(name.slice(0, 120))
const tooLarge = (what: string): ApiError => new ApiError(413, `The archive would become ${what}`)

function noZip(cause: unknown): never {
  if (cause instanceof ApiError) throw cause
  throw badRequest(`No zip archive, or one that is cut, damaged or unsafe: ${(cause as Error).message}`, {
    cause: cause as Error,
  })
}
