import { open } from 'node:fs/promises'
import type { CapturedFrame } from '../../../src/packets/capture-reader.ts'
import { pcapHeader } from '../switch/capture/pcap-file.ts'
import { reasonOf } from '../system/error-reason.ts'
import type { FlagValues } from './command.ts'
import type { capturing } from './command-flags.ts'
import { CommandError, exits } from './exits.ts'
import { RowOutput } from './row-output.ts'

const stdoutFd = 1

/** A piece of a capture. */
export interface Piece {
  readonly bytes: Uint8Array
  /** The frames that are to be kept of those that it made whole. */
  readonly frames: readonly CapturedFrame[]
  /** Bytes of the stream at its end that are of a record which is not whole. */
  readonly unfinished: number
}

/** Where frames go: to a file, a pipe or a terminal. */
export interface Sink {
  take(piece: Piece): Promise<void> | void
  /** Frames that were not shown, as the terminal was too slow. */
  readonly skipped: number
  /** Ends with all that was taken. */
  end(): Promise<void>
}

/** The sink that the flags name. `isWhole`: all frames are kept, so that the bytes of the stream are those of the file. */
export async function sinkOf(
  { write, json }: Pick<FlagValues<typeof capturing>, 'write' | 'json'>,
  isWhole: boolean,
  linkType: number,
): Promise<Sink> {
  const bytesOf = isWhole ? ({ bytes }: Piece) => bytes : records(linkType)
  if (write === '-') return pipe(bytesOf)
  if (write !== undefined) return file(write, bytesOf, isWhole)
  const { rows } = await import('./capture-rows.ts')
  return rows(new RowOutput(stdoutFd), { isTerminal: process.stdout.isTTY === true, json })
}

type BytesOf = (piece: Piece) => Uint8Array

/** Pcap into a file, which ends with a whole record. */
async function file(path: string, bytesOf: BytesOf, isWhole: boolean): Promise<Sink> {
  const refused = (error: unknown): never => {
    throw new CommandError(exits.failed, `${path}: ${reasonOf(error)}`)
  }
  const handle = await open(path, 'w').catch(refused)
  let length = 0
  let unfinished = 0
  return {
    skipped: 0,
    async take(piece) {
      const bytes = bytesOf(piece)
      if (isWhole) ({ unfinished } = piece)
      if (bytes.length > 0) await handle.writeFile(bytes).catch(refused)
      length += bytes.length
    },
    async end() {
      // A pipe or a device cannot be made shorter.
      if (unfinished > 0 && (await handle.stat()).isFile()) await handle.truncate(length - unfinished)
      await handle.close()
    },
  }
}

/** Pcap into a pipe. A reader that is slow holds the stream up, and the service then leaves frames out. */
function pipe(bytesOf: BytesOf): Sink {
  const output = new RowOutput(stdoutFd)
  return {
    skipped: 0,
    async take(piece) {
      const bytes = bytesOf(piece)
      if (bytes.length > 0) output.offer(bytes)
      await output.written()
    },
    async end() {},
  }
}

/** Chosen frames as pcap: the header first. */
function records(linkType: number): BytesOf {
  let header: Uint8Array | undefined = pcapHeader(linkType)
  return ({ frames }) => {
    const parts = frames.flatMap(({ seconds, nanos, length, bytes }) => {
      const head = new DataView(new ArrayBuffer(16))
      head.setUint32(0, seconds, true)
      head.setUint32(4, Math.trunc(nanos / 1000), true)
      head.setUint32(8, bytes.length, true)
      head.setUint32(12, length, true)
      return [new Uint8Array(head.buffer), bytes]
    })
    if (header !== undefined) parts.unshift(header)
    header = undefined
    return Buffer.concat(parts)
  }
}
