import { open } from 'node:fs/promises'
import type { CapturedFrame } from '../../../src/packets/capture-reader.ts'
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

/** The sink that the flags name. `isWhole`: all frames are kept, so the bytes of the stream can be written unchanged, except records of losses. */
export async function sinkOf(
  { write, json }: Pick<FlagValues<typeof capturing>, 'write' | 'json'>,
  isWhole: boolean,
  linkType: number,
): Promise<Sink> {
  const bytesOf = records(linkType, isWhole)
  if (write === '-') return pipe(bytesOf)
  if (write !== undefined) return file(write, bytesOf)
  const { rows } = await import('./capture-rows.ts')
  return rows(new RowOutput(stdoutFd), { isTerminal: process.stdout.isTTY === true, json })
}

type BytesOf = (piece: CapturePiece) => Uint8Array

/** Pcap into a file. */
async function file(path: string, bytesOf: BytesOf): Promise<Sink> {
  const refused = (error: unknown): never => {
    throw new CommandError(exits.failed, `${path}: ${reasonOf(error)}`)
  }
  const handle = await open(path, 'w').catch(refused)
  return {
    skipped: 0,
    async write(piece) {
      const bytes = bytesOf(piece)
      if (bytes.length > 0) await handle.writeFile(bytes).catch(refused)
    },
    end: () => handle.close(),
  }
}

/** Pcap into a pipe. A reader that is slow holds the stream up, and the service then leaves frames out. */
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

/** Frames as pcap, the header first. `isWhole`: as they came, where nothing else came with them. */
function records(linkType: number, isWhole: boolean): BytesOf {
  let header: Uint8Array | undefined = pcapHeader(linkType)
  return ({ bytes, frames, hasLosses }) => {
    if (isWhole && !hasLosses) {
      if (bytes.length > 0) header = undefined
      return bytes
    }
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
