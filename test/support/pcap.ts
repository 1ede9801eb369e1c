import { readFile } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, vi } from 'vitest'
import { pcapHeader } from '../../runtime/node/dataplane/capture/pcap-file.ts'
import { freshDirectory } from './directory.ts'
import { hangMs } from './limits.ts'

interface PcapRecord {
  /** Milliseconds since 1970. */
  readonly time: number
  /** Of the frame as it passed. */
  readonly length: number
  readonly frame: Buffer
}

export interface Pcap {
  readonly linkType: number
  readonly records: readonly PcapRecord[]
  /** How many bytes come after the last whole record. */
  readonly rest: number
}

/** Reads classic pcap; fails when it does not begin as one. */
export function readPcap(bytes: Buffer): Pcap {
  expect(bytes.readUInt32LE(0)).toBe(0xa1b2c3d4)
  expect([bytes.readUInt16LE(4), bytes.readUInt16LE(6)]).toEqual([2, 4])
  const records: PcapRecord[] = []
  let place = 24
  while (place + 16 <= bytes.length) {
    const length = bytes.readUInt32LE(place + 8)
    const end = place + 16 + length
    if (end > bytes.length) break
    records.push({
      time: bytes.readUInt32LE(place) * 1000 + bytes.readUInt32LE(place + 4) / 1000,
      length: bytes.readUInt32LE(place + 12),
      frame: bytes.subarray(place + 16, end),
    })
    place = end
  }
  return { linkType: bytes.readUInt32LE(20), records, rest: bytes.length - place }
}

/** A capture of frames, a second apart. */
export const pcapOf = (linkType: number, frames: readonly Buffer[]): Buffer =>
  Buffer.concat([
    pcapHeader(linkType),
    ...frames.flatMap((frame, index) => [recordHead(index, 0, frame.length), frame]),
  ])

/** The head of a record whose frame has all its bytes. */
export function recordHead(seconds: number, micros: number, length: number): Buffer {
  const head = Buffer.alloc(16)
  for (const [index, value] of [seconds, micros, length, length].entries()) head.writeUInt32LE(value, index * 4)
  return head
}

export const textsOf = ({ records }: Pcap): string[] => records.map(({ frame }) => String(frame))

/** A pcap file that must end with a whole record. */
export async function readWhole(file: string): Promise<Pcap> {
  const pcap = readPcap(await readFile(file))
  expect(pcap.rest).toBe(0)
  return pcap
}

/** Resolves when a file that is being written holds so many records. */
export function holds(file: string, count: number): Promise<Pcap> {
  return vi.waitFor(
    async () => {
      const pcap = readPcap(await readFile(file))
      expect(pcap.records.length).toBeGreaterThanOrEqual(count)
      return pcap
    },
    { timeout: hangMs, interval: 5 },
  )
}

/** A stream of pcap as it comes. */
export interface PcapStream {
  readonly ended: Promise<unknown>
  readonly bytes: () => Buffer
  /** Resolves when so many records have come. */
  holds(count: number): Promise<Pcap>
}

/** Collects what comes in a body. */
export function collect({ body }: Response): PcapStream {
  const pieces: Uint8Array[] = []
  const read = async () => {
    for await (const piece of body ?? []) pieces.push(piece)
  }
  const ended = read()
  ended.catch(() => {})
  return { ended, ...growing(pieces) }
}

/** A pair of connected sockets, as the keeper and its service have one, whose far end collects what comes. */
export interface Reader extends PcapStream {
  /** The end that is written to. */
  readonly socket: Socket
  readonly far: Socket
}

export async function openReader(): Promise<Reader> {
  const server = createServer()
  const path = join(await freshDirectory(), 'socket')
  await new Promise<void>((resolve) => server.listen(path, resolve))
  const accepted = new Promise<Socket>((resolve) => server.once('connection', resolve))
  const far = connect(path)
  const socket = await accepted
  server.close()
  for (const end of [socket, far]) end.on('error', () => {})
  // As the keeper does it, so that it learns of the end.
  socket.resume()
  onTestFinished(() => {
    socket.destroy()
    far.destroy()
  })
  const pieces: Uint8Array[] = []
  far.on('data', (piece) => pieces.push(piece))
  return { socket, far, ended: new Promise((resolve) => far.once('close', resolve)), ...growing(pieces) }
}

function growing(pieces: readonly Uint8Array[]): Pick<PcapStream, 'bytes' | 'holds'> {
  const bytes = () => Buffer.concat(pieces)
  return {
    bytes,
    holds: (count) =>
      vi.waitFor(
        () => {
          const pcap = readPcap(bytes())
          expect(pcap.records.length).toBeGreaterThanOrEqual(count)
          return pcap
        },
        { timeout: hangMs, interval: 10 },
      ),
  }
}
