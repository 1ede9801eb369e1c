import { type FileHandle, open, rm } from 'node:fs/promises'
import { join, parse } from 'node:path'
import type { CapturedFrame, CaptureReader } from '../../../src/packets/capture-reader.ts'
import { packetBlocks, pcapngHead } from '../../../src/packets/pcapng.ts'
import { pcapHeader } from '../dataplane/capture/pcap-file.ts'
import { reasonOf } from '../os/system/error-reason.ts'
import type { FlagValues } from './command.ts'
import type { capturing } from './command-flags.ts'
import { CommandError, exits } from './exits.ts'
import { RowOutput } from './row-output.ts'

const stdoutFd = 1

/** A piece of a capture. */
interface CapturePiece {
  /** Whole records of the stream. */
  readonly bytes: Uint8Array
  /** The frames that end in this piece and are to be kept. */
  readonly frames: readonly CapturedFrame[]
  /** Some records of the stream report losses and hold no frame. */
  readonly hasLosses: boolean
}

/** Where frames go: to a file, a pipe or a terminal. */
export interface Sink {
  write(piece: CapturePiece): Promise<void> | void
  /** Frames that were not shown, as the terminal was too slow. */
  readonly skipped: number
  /** Ends with all that was taken. */
  end(): Promise<void>
}

/** When a file is full, and how many files are kept. */
export interface Rotation {
  readonly bytes: number
  readonly files: number
}

/** How frames are written. */
interface CaptureForm {
  /** What every file begins with. */
  head(): Uint8Array
  frames(frames: readonly CapturedFrame[]): Uint8Array
  /** Whether it can say that frames were lost. */
  readonly hasLosses: boolean
}

/** Classic pcap, of one link. */
export const pcapForm = (linkType: number): CaptureForm => ({
  head: () => pcapHeader(linkType),
  frames: (frames) =>
    Buffer.concat(
      frames.flatMap(({ seconds, nanos, length, bytes }) => {
        const head = new DataView(new ArrayBuffer(16))
        head.setUint32(0, seconds, true)
        head.setUint32(4, Math.trunc(nanos / 1000), true)
        head.setUint32(8, bytes.length, true)
        head.setUint32(12, length, true)
        return [new Uint8Array(head.buffer), bytes]
      }),
    ),
  hasLosses: false,
})

/** pcapng, of the interfaces that a reader has. */
export const pcapngForm = (reader: CaptureReader, comment: string): CaptureForm => ({
  head: () => pcapngHead(reader.interfaces, comment),
  frames: packetBlocks,
  hasLosses: true,
})

interface SinkOptions {
  readonly form: CaptureForm
  /** All frames are kept, so the bytes of the stream can be written unchanged, except records of losses. */
  readonly isWhole: boolean
  readonly rotation?: Rotation | undefined
  /** The name of the link of a frame, where there are several. */
  readonly nameOf?: ((interfaceNumber: number) => string) | undefined
}

/** The sink that the flags name. */
export async function sinkOf(
  { write, json }: Pick<FlagValues<typeof capturing>, 'write' | 'json'>,
  options: SinkOptions,
): Promise<Sink> {
  if (write === '-') return pipe(bytesOf(options))
  if (write !== undefined) return await FileSink.open(write, options)
  const { rows } = await import('./capture-rows.ts')
  const { nameOf } = options
  return rows(new RowOutput(stdoutFd), { isTerminal: process.stdout.isTTY === true, json, nameOf })
}

type BytesOf = (piece: CapturePiece) => Uint8Array

/** A capture in a file, or in the last ones of several: `lab-00001.pcapng` and so on for `lab.pcapng`. */
class FileSink implements Sink {
  readonly skipped = 0
  readonly #path: string
  readonly #options: SinkOptions
  readonly #bytesOf: BytesOf
  #handle: FileHandle | undefined
  #number = 0
  #size = 0

  private constructor(path: string, options: SinkOptions) {
    this.#path = path
    this.#options = options
    this.#bytesOf = bytesOf(options)
  }

  /** CommandError 1 when the file cannot be written. */
  static async open(path: string, options: SinkOptions): Promise<FileSink> {
    const sink = new FileSink(path, options)
    await sink.#next()
    return sink
  }

  async write(piece: CapturePiece): Promise<void> {
    const { rotation, form } = this.#options
    const bytes = this.#bytesOf(piece)
    if (bytes.length === 0) return
    if (rotation !== undefined && this.#size > 0 && this.#size + bytes.length > rotation.bytes) {
      await this.#next()
      await this.#append(form.head())
    }
    await this.#append(bytes)
  }

  end = async (): Promise<void> => this.#handle?.close()

  async #append(bytes: Uint8Array): Promise<void> {
    this.#size += bytes.length
    await this.#handle?.writeFile(bytes).catch((error) => this.#refused(error))
  }

  /** Begins the next file, and removes the oldest one beyond those that are kept. */
  async #next(): Promise<void> {
    await this.end()
    this.#number += 1
    this.#size = 0
    const { rotation } = this.#options
    const gone = this.#number - (rotation?.files ?? Number.POSITIVE_INFINITY)
    if (gone > 0) await rm(this.#pathOf(gone), { force: true }).catch((error) => this.#refused(error))
    const path = rotation === undefined ? this.#path : this.#pathOf(this.#number)
    this.#handle = await open(path, 'w').catch((error) => this.#refused(error))
  }

  #pathOf(number: number): string {
    const { dir, name, ext } = parse(this.#path)
    return join(dir, `${name}-${String(number).padStart(5, '0')}${ext}`)
  }

  #refused(error: unknown): never {
    throw new CommandError(exits.failed, `${this.#path}: ${reasonOf(error)}`)
  }
}

/** Frames into a pipe. A reader that is slow holds the stream up, and the service then leaves frames out. */
function pipe(bytesOf: BytesOf): Sink {
  const output = new RowOutput(stdoutFd)
  return {
    skipped: 0,
    async write(piece) {
      const bytes = bytesOf(piece)
      if (bytes.length > 0) output.offer(bytes)
      await output.written()
    },
    async end() {},
  }
}

/** Frames as bytes, the head first. */
function bytesOf({ form, isWhole }: SinkOptions): BytesOf {
  let isBegun = false
  return ({ bytes, frames, hasLosses }) => {
    const had = isBegun
    isBegun = true
    if (!isWhole || (hasLosses && !form.hasLosses)) {
      const written = form.frames(frames)
      return had ? written : Buffer.concat([form.head(), written])
    }
    // Its head comes with the stream.
    if (bytes.length === 0) isBegun = had
    return bytes
  }
}
