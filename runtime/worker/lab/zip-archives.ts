import {
  configure,
  type Entry,
  type FileEntry,
  Reader,
  registerCodec,
  ZipReader,
  ZipWriter,
} from '@zip.js/zip.js/lib/zip-core-custom.js'
import { checkedMembers, noZip, zstdMethod } from '../../../src/labs/archives/archive-check.ts'
import type { ArchiveMember, OpenArchive, ZipArchives } from '../../../src/labs/archives/zip-archives.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { withTimeout } from '../../../src/lib/async/timeout.ts'
import { ApiError, badRequest, tooMany } from '../../../src/lib/errors/api-error.ts'
import { ZstdDecompressionStream } from '../../../src/lib/zip/zstd.ts'

/** Bytes of a row, and most rows of an archive: 2 GiB, and as much again for a snapshot in it. The database of an object has at most 10 GB. */
const pieceBytes = 512 * 1024
const maxPieces = 4096
export const maxArchiveBytes = maxPieces * pieceBytes
/** Timeout of a body without data, ms. */
const bodyTimeoutMs = 60_000

// No workers are used, but zip.js counts each open member as one. A snapshot is a member that is an archive, which writes members of its
// own meanwhile: with the default limit, one for each processor, both could wait for each other for ever.
configure({ useWebWorkers: false, useCompressionStream: true, chunkSize: pieceBytes, maxWorkers: 1000 })

registerCodec({ compressionMethod: zstdMethod, format: 'zstd', DecompressionStream: ZstdDecompressionStream })

/**
 * Zip archives by zip.js and the deflate of the platform. An upload is stored in a table of the object first: its directory is at its end,
 * and it may be larger than the memory.
 */
export class TableZipArchives implements ZipArchives {
  readonly #sql: SqlStorage
  readonly #begins: () => Promise<void>
  #isBusy = false

  /** `begins`: called before an upload is stored. */
  constructor(sql: SqlStorage, begins: () => Promise<void>) {
    this.#sql = sql
    this.#begins = begins
    // Removes an upload that ended with an earlier program.
    for (const table of tables) sql.exec(`DROP TABLE IF EXISTS ${table}`)
  }

  /** Level 0 stores; every other level is that of the platform. */
  write(members: AsyncIterable<ArchiveMember>, level: number): ReadableStream<Uint8Array> {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
    const zip = new ZipWriter(writable, { bufferedWrite: false, keepOrder: true, extendedTimestamp: false })
    const add = async () => {
      for await (const { name, size, modified, content } of members) {
        const how = { lastModDate: new Date(modified), unixMode: 0o100600 }
        const packs = size !== undefined && size > 0
        await zip.add(name, size === undefined ? content : { readable: content, size }, {
          level: packs ? Math.min(level, 6) : 0,
          ...how,
        })
      }
      await zip.close()
    }
    const reader = readable.getReader()
    let failure: unknown
    add().catch((error: unknown) => {
      failure = error
      // The library does not report this error to the reader.
      reader.cancel(error).catch(ignore('the stream has failed already'))
    })
    return new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          const { done, value } = await reader.read()
          if (failure !== undefined) throw failure
          if (done) controller.close()
          else controller.enqueue(value)
        },
        cancel: (reason) => reader.cancel(reason),
      },
      { highWaterMark: 0 },
    )
  }

  async open(content: ReadableStream<Uint8Array>, outer?: OpenArchive): Promise<OpenArchive> {
    if (outer === undefined) {
      if (this.#isBusy) throw tooMany('Another import of this project runs; wait for it')
      this.#isBusy = true
      await this.#begins()
    }
    const pieces = new Pieces(this.#sql, outer === undefined ? 'archive_pieces' : 'inner_archive_pieces')
    const close = async () => {
      if (outer === undefined) this.#isBusy = false
      pieces.remove()
    }
    try {
      await receive(outer === undefined ? uploaded(content) : content, pieces)
      const zip = new ZipReader(pieces, { checkCrc32: true, filenameValidation: 'tolerant' })
      const entries = await checkedMembers(zip.getEntriesGenerator(), factsOf, pieces.size).catch(noZip)
      return {
        members: new Map([...entries].map(([name, { uncompressedSize }]) => [name, uncompressedSize])),
        read: async (name) => contentOf(entries.get(name) as FileEntry),
        [Symbol.asyncDispose]: close,
      }
    } catch (error) {
      await close()
      throw error
    }
  }
}

const factsOf = (entry: Entry) => ({
  name: entry.filename,
  method: entry.compressionMethod,
  isEncrypted: entry.encrypted,
  attributes: entry.externalFileAttributes,
  compressedSize: entry.compressedSize,
  size: entry.uncompressedSize,
})

/** The bytes of a member; the library checks the CRC-32 and the size. */
function contentOf(entry: FileEntry): ReadableStream<Uint8Array> {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const got = entry.getData(writable).catch(noZip)
  got.catch(ignore('the reader gets the error'))
  const reader = readable.getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read().catch(noZip)
        if (!done) return controller.enqueue(value)
        await got
        controller.close()
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

/** The pieces of an upload. */
async function* uploaded(content: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  // A reader without a buffer gets pieces of 4 KiB from workerd.
  const reader = content.getReader({ mode: 'byob' })
  const late = () => {
    throw new ApiError(408, `The body sent no data for ${bodyTimeoutMs} ms; nothing was imported`)
  }
  try {
    for (let buffer = new ArrayBuffer(pieceBytes); ; ) {
      const reading = reader.read(new Uint8Array(buffer)).catch((cause: unknown) => {
        throw badRequest('The request body ended early; nothing was imported', { cause: cause as Error })
      })
      const { done, value } = await withTimeout(reading, bodyTimeoutMs, late)
      if (done || value === undefined) break
      yield value
      buffer = value.buffer as ArrayBuffer
    }
  } catch (error) {
    reader.cancel().catch(ignore('the body has failed already'))
    throw error
  }
}

async function receive(content: AsyncIterable<Uint8Array>, pieces: Pieces): Promise<void> {
  for await (const piece of content) pieces.append(piece)
  pieces.end()
}

/** The tables of an archive, and of one that is in it: a snapshot. */
const tables = ['archive_pieces', 'inner_archive_pieces'] as const

/** The bytes of an archive, in a table that is dropped with it. */
class Pieces extends Reader<void> {
  readonly #sql: SqlStorage
  readonly #table: (typeof tables)[number]
  readonly #last = new Uint8Array(pieceBytes)
  #filled = 0
  #count = 0
  #read: { n: number; bytes: Uint8Array } | undefined

  constructor(sql: SqlStorage, table: (typeof tables)[number]) {
    super()
    this.#sql = sql
    this.#table = table
    this.size = 0
    this.remove()
    sql.exec(`CREATE TABLE ${table} (n INTEGER PRIMARY KEY, bytes BLOB NOT NULL)`)
  }

  append(bytes: Uint8Array): void {
    this.size += bytes.byteLength
    for (let at = 0; at < bytes.byteLength; ) {
      const part = bytes.subarray(at, at + pieceBytes - this.#filled)
      this.#last.set(part, this.#filled)
      this.#filled += part.byteLength
      at += part.byteLength
      if (this.#filled === pieceBytes) this.#save()
    }
  }

  end(): void {
    if (this.#filled > 0) this.#save()
  }

  override async readUint8Array(index: number, length: number): Promise<Uint8Array> {
    const found = new Uint8Array(Math.max(0, Math.min(length, this.size - index)))
    for (let at = 0; at < found.byteLength; ) {
      const n = Math.floor((index + at) / pieceBytes)
      const from = index + at - n * pieceBytes
      const part = this.#piece(n).subarray(from, from + found.byteLength - at)
      found.set(part, at)
      at += part.byteLength
    }
    return found
  }

  remove(): void {
    this.#sql.exec(`DROP TABLE IF EXISTS ${this.#table}`)
  }

  #save(): void {
    if (this.#count === maxPieces)
      throw new ApiError(413, `The archive is larger than ${maxArchiveBytes} bytes: import it at a service on Node`)
    try {
      this.#sql.exec(`INSERT INTO ${this.#table} VALUES (?, ?)`, this.#count, this.#last.slice(0, this.#filled))
    } catch (cause) {
      if (!String(cause).includes('SQLITE_FULL')) throw cause
      throw new ApiError(507, 'The storage of the project is full; nothing was imported', { cause })
    }
    this.#count += 1
    this.#filled = 0
  }

  #piece(n: number): Uint8Array {
    if (this.#read?.n !== n) {
      const { bytes } = this.#sql.exec<{ bytes: ArrayBuffer }>(`SELECT bytes FROM ${this.#table} WHERE n = ?`, n).one()
      this.#read = { n, bytes: new Uint8Array(bytes) }
    }
    return this.#read.bytes
  }
}
