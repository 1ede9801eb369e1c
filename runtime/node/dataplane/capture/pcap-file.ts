import { type FileHandle, open, rm, statfs } from 'node:fs/promises'
import { onAbort } from '../../../../src/lib/async/abort.ts'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { KeeperError } from '../../keeper/protocol/error.ts'

/** Bytes that are written between two checks of the free space. */
const checkBytes = 4 << 20

const full: ReadonlySet<string | undefined> = new Set(['ENOSPC', 'EDQUOT'])

/** Paths of the files that captures currently write. */
const written = new Set<string>()

/** The 24-byte header of a classic pcap file with times in microseconds. */
export function pcapHeader(linkType: number): Uint8Array {
  const header = new DataView(new ArrayBuffer(24))
  header.setUint32(0, 0xa1b2c3d4, true)
  header.setUint16(4, 2, true)
  header.setUint16(6, 4, true)
  // snaplen: larger than any frame.
  header.setUint32(16, 262_144, true)
  header.setUint32(20, linkType, true)
  return new Uint8Array(header.buffer)
}

/**
 * A record without bytes: its original length is the number of frames that a reader lost. No frame is cut to nothing, so that a
 * `CaptureReader` knows it.
 */
export function lossRecord(lost: number, now = Date.now()): Uint8Array {
  const record = new DataView(new ArrayBuffer(16))
  record.setUint32(0, Math.trunc(now / 1000), true)
  record.setUint32(4, (now % 1000) * 1000, true)
  record.setUint32(12, lost, true)
  return new Uint8Array(record.buffer)
}

/** A pcap file that is being written. It always ends with a complete record. */
export class PcapFile {
  readonly path: string
  readonly linkType: number
  readonly #handle: FileHandle
  readonly #floorBytes: number
  readonly #waiting = new Set<() => void>()
  #checkAt = 0
  #length: number
  #isComplete = false
  /** Number of users of the handle: the writer and the followers. They share it because the path may name another file by now. */
  #users = 1

  private constructor(path: string, linkType: number, handle: FileHandle, length: number, floorBytes: number) {
    this.path = path
    this.linkType = linkType
    this.#handle = handle
    this.#length = length
    this.#floorBytes = floorBytes
  }

  /** Replaces the file at the path; its readers keep the old file. `port_taken` while another capture writes it, `disk_full`. */
  static async create(path: string, linkType: number, minFreeMb: number): Promise<PcapFile> {
    if (written.has(path)) throw new KeeperError('port_taken', 'another capture writes that file')
    written.add(path)
    try {
      return await PcapFile.#create(path, linkType, minFreeMb)
    } catch (cause) {
      written.delete(path)
      if (full.has((cause as NodeJS.ErrnoException).code))
        throw new KeeperError('disk_full', 'the disk is full', { cause })
      throw cause
    }
  }

  static async #create(path: string, linkType: number, minFreeMb: number): Promise<PcapFile> {
    await rm(path, { force: true })
    const handle = await open(path, 'wx+', 0o600)
    const header = pcapHeader(linkType)
    try {
      await handle.writev([header], 0)
    } catch (error) {
      await handle.close().catch(ignore('the caller gets the failure of the write'))
      await rm(path, { force: true })
      throw error
    }
    return new PcapFile(path, linkType, handle, header.length, minFreeMb * 2 ** 20)
  }

  /** Appends complete records. Rejects when the disk is full, or less than the limit would be free. */
  async append(pieces: readonly Uint8Array[]): Promise<void> {
    const total = pieces.reduce((sum, { length }) => sum + length, 0)
    if (this.#length >= this.#checkAt) {
      const { bavail, bsize } = await statfs(this.path)
      if (bavail * bsize < this.#floorBytes) throw new Error('the disk is nearly full')
      this.#checkAt = this.#length + checkBytes
    }
    let written = 0
    while (written < total) {
      const { bytesWritten } = await this.#handle.writev(after(pieces, written), this.#length + written)
      written += bytesWritten
    }
    this.#length += total
    this.#wake()
  }

  /** Closes the file after the last complete record. */
  async complete(): Promise<void> {
    if (this.#isComplete) return
    this.#isComplete = true
    try {
      await this.#handle.truncate(this.#length)
    } finally {
      written.delete(this.path)
      this.#wake()
      await this.#release()
    }
  }

  /** The file from its beginning, then appended records, until it is complete or `signal` aborts. */
  async *follow(signal: AbortSignal): AsyncGenerator<Uint8Array> {
    this.#users += 1
    try {
      let position = 0
      while (!signal.aborted) {
        const isComplete = this.#isComplete
        const room = Math.min(this.#length - position, 256 << 10)
        if (room > 0) {
          const { buffer, bytesRead } = await this.#handle.read(new Uint8Array(room), 0, room, position)
          if (bytesRead === 0) return
          position += bytesRead
          yield buffer.subarray(0, bytesRead)
        } else if (isComplete) return
        else await this.#grown(signal)
      }
    } finally {
      await this.#release()
    }
  }

  async #release(): Promise<void> {
    this.#users -= 1
    if (this.#users === 0) await this.#handle.close()
  }

  #grown(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      let forget = () => {}
      const done = () => {
        this.#waiting.delete(done)
        forget()
        resolve()
      }
      this.#waiting.add(done)
      forget = onAbort(signal, done)
    })
  }

  #wake(): void {
    for (const done of [...this.#waiting]) done()
  }
}

/** The rest of the pieces after `skip` bytes. */
function after(pieces: readonly Uint8Array[], skip: number): Uint8Array[] {
  const rest: Uint8Array[] = []
  for (const piece of pieces) {
    if (skip < piece.length) rest.push(skip > 0 ? piece.subarray(skip) : piece)
    skip = Math.max(0, skip - piece.length)
  }
  return rest
}
