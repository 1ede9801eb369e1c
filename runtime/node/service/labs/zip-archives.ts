import { randomUUID } from 'node:crypto'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { type Duplex, Readable } from 'node:stream'
import { finished, pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import zlib, { crc32, createInflateRaw } from 'node:zlib'
import yauzl, { type Entry, type ZipFile as ZipReader } from 'yauzl'
import { ZipFile } from 'yazl'
import {
  checkedMembers,
  damaged,
  type MemberFacts,
  noZip,
  storedMethod,
  zstdMethod,
} from '../../../../src/labs/archives/archive-check.ts'
import type { ArchiveMember, OpenArchive, ZipArchives } from '../../../../src/labs/archives/zip-archives.ts'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { maxWindowBytes, unpackedZstd } from '../../../../src/lib/zip/zstd.ts'
import { bufferBytes } from '../../engine/storage/buffers.ts'
import { requireSpace, withDiskErrors } from '../../engine/storage/disk.ts'
import { freeRange } from '../../engine/storage/free-range.ts'
import { receive } from '../../engine/storage/receive.ts'
import type { ServiceRecords } from '../../engine/storage/service-records.ts'
import { readPiece } from '../../engine/storage/stored-file.ts'
import { webStream } from '../../os/system/web-stream.ts'

/** What is freed of an archive, bytes: whole blocks, as the system does not free the memory of a part of one. */
const freedBytes = 2 ** 20
/** Pieces in which members are inflated, bytes. */
const inflatedBytes = 2 ** 18

export interface ZipArchivesOptions {
  readonly records: ServiceRecords
  readonly minFreeMb: () => number
  readonly bodyTimeoutMs: number
}

/** At each step yazl looks for the first entry that is not written, from the first of all: with 65,000 entries that takes a minute. */
interface ListedZipFile extends ZipFile {
  entries: unknown[]
}

/** Zip archives by yazl and yauzl. An upload goes to an unlinked file first, as the directory of a zip file is at its end. */
export class FileZipArchives implements ZipArchives {
  readonly #options: ZipArchivesOptions

  constructor(options: ZipArchivesOptions) {
    this.#options = options
  }

  write(members: AsyncIterable<ArchiveMember>, level: number): ReadableStream<Uint8Array> {
    const zip = new ZipFile() as ListedZipFile
    const output = zip.outputStream as Readable
    const fail = (error: unknown) => void output.destroy(error as Error)
    zip.on('error', fail)
    // The reader gets the error; this handler keeps an error before the first read from ending the process.
    output.on('error', fail)
    let current: Readable | undefined
    output.once('close', () => current?.destroy())
    const written: unknown[] = []
    const add = async () => {
      for await (const { name, size, modified, content } of members) {
        current = Readable.from(content, { objectMode: false, highWaterMark: bufferBytes })
        const done = finished(current)
        zip.addReadStream(current, name, {
          mtime: new Date(modified),
          mode: 0o100600,
          // A member of an unknown size may be longer than 4 GiB.
          ...(size === undefined ? { forceZip64Format: true } : { size }),
          ...(level === 0 || size === 0 || size === undefined ? { compress: false } : { compressionLevel: level }),
        })
        if (output.destroyed) current.destroy()
        await done
        // Those before it are written, but the last has its end ahead of it.
        written.push(...zip.entries.splice(0, zip.entries.length - 1))
      }
      zip.entries = [...written, ...zip.entries]
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
      // An unlinked file is freed when the service ends.
      await rm(path)
      const limits = { directory: records.data, minFreeMb, bodyTimeoutMs, fate: 'nothing was imported', lasts: false }
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
  readonly #unread: Map<string, Entry>

  private constructor(handle: FileHandle, zip: ZipReader, entries: ReadonlyMap<string, Entry>) {
    this.#handle = handle
    this.#zip = zip
    this.#unread = new Map(entries)
    this.members = new Map([...entries].map(([name, { uncompressedSize }]) => [name, uncompressedSize]))
  }

  static async read(handle: FileHandle): Promise<ZipArchive> {
    const { size } = await handle.stat()
    const zip = await fromFd(handle.fd, { lazyEntries: true, autoClose: false, strictFileNames: true }).catch(noZip)
    const entries = await checkedMembers(entriesOf(zip), factsOf, size)
    return new ZipArchive(handle, zip, entries)
  }

  async read(name: string): Promise<ReadableStream<Uint8Array>> {
    const entry = this.#unread.get(name)
    if (entry === undefined) throw new Error(`${name}: no member, or it was read before`)
    this.#unread.delete(name)
    const { fileDataStart: start } = await this.#zip.readLocalFileHeaderPromise(entry, { minimal: true }).catch(noZip)
    // Read without the streams of yauzl: its pieces of 16 KiB cost twice as much CPU time.
    const packed = this.#piecesOf(start, start + entry.compressedSize)
    if (entry.compressionMethod === storedMethod)
      return webStream(Readable.from(checked(packed, entry), { highWaterMark: 1 }))
    const bytes =
      entry.compressionMethod === zstdMethod ? unpackedZstdOf(packed) : piped(packed, createInflateRaw(pieces))
    return webStream(Readable.from(checked(bytes, entry), { highWaterMark: 1 }))
  }

  /** Content of the file. It is freed as it is read: its memory and its disk space are used for what is made of it. */
  async *#piecesOf(first: number, end: number): AsyncGenerator<Uint8Array> {
    let freed = Math.ceil(first / freedBytes) * freedBytes
    for (let at = first; at < end; ) {
      const piece = await readPiece(this.#handle, at, end)
      if (piece.byteLength === 0) return
      at += piece.byteLength
      const read = Math.floor(at / freedBytes) * freedBytes
      if (read > freed) freeRange(this.#handle, freed, read - freed)
      freed = Math.max(freed, read)
      yield piece
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close()
  }
}

const pieces = { chunkSize: inflatedBytes }

function piped(packed: AsyncIterable<Uint8Array>, bytes: Duplex): AsyncIterable<Uint8Array> {
  pipeline(packed, bytes).catch(ignore('the reader of `bytes` gets the error'))
  return bytes
}

/** By Node, which has zstd since 22.15, or by a library. */
function unpackedZstdOf(packed: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  // A static import would fail in a Node that does not have it.
  const { createZstdDecompress: native, constants } = zlib as Partial<Pick<typeof zlib, 'createZstdDecompress'>> &
    Pick<typeof zlib, 'constants'>
  if (native === undefined) return unpackedZstd(packed)
  const params = { [constants.ZSTD_d_windowLogMax]: Math.log2(maxWindowBytes) }
  return piped(packed, native({ ...pieces, params }))
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

/** The bytes of a member; 400 when their number or CRC-32 is not that of its entry. */
async function* checked(bytes: AsyncIterable<Uint8Array>, entry: Entry): AsyncGenerator<Uint8Array> {
  const { fileName, crc32: expected, uncompressedSize } = entry
  let [sum, size] = [0, 0]
  try {
    for await (const piece of bytes) {
      sum = crc32(piece, sum)
      size += piece.byteLength
      if (size > uncompressedSize) throw damaged(fileName, `too many bytes, expected ${uncompressedSize}`)
      yield piece
    }
  } catch (error) {
    noZip(error)
  }
  if (size < uncompressedSize) throw damaged(fileName, `${size} bytes, expected ${uncompressedSize}`)
  if (sum !== expected) throw damaged(fileName)
}

const factsOf = (entry: Entry): MemberFacts => ({
  name: entry.fileName,
  method: entry.compressionMethod,
  // APPNOTE.TXT 4.4.4: bit 0 is set when a file is encrypted.
  isEncrypted: (entry.generalPurposeBitFlag & 1) !== 0,
  attributes: entry.externalFileAttributes,
  compressedSize: entry.compressedSize,
  size: entry.uncompressedSize,
})
