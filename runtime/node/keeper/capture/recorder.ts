import type { Socket } from 'node:net'
import { KeeperError } from '../error.ts'
import type { CaptureState } from '../protocol.ts'
import { newRing, RingReader } from '../switch/capture-ring.ts'
import { at, type Counters } from '../switch/counters.ts'
import type { PacketPath } from '../switch/path.ts'
import { PcapFile, pcapHeader } from './pcap-file.ts'

/** What a live stream may lag behind before it misses frames, bytes. */
const mostLag = 4 << 20

/** The captures of one port: a file, and streams. Frames are taken from the path while there is at least one of them. */
export class Recorder {
  readonly #path: PacketPath
  readonly #counters: Counters
  readonly #row: number
  readonly #failed: (file: string, message: string) => void
  readonly #streams = new Set<Socket>()
  #reader: RingReader | null = null
  #file: PcapFile | null = null
  /** Counters at the start of the file. */
  #base = { frames: 0, missed: 0 }
  #draining: Promise<void> | null = null
  #isMore = false

  constructor(path: PacketPath, counters: Counters, row: number, failed: (file: string, message: string) => void) {
    this.#path = path
    this.#counters = counters
    this.#row = row
    this.#failed = failed
  }

  get state(): CaptureState | null {
    if (this.#file === null) return null
    const { frames, missed } = this.#count()
    return {
      file: this.#file.path,
      link_type: this.#file.linkType,
      frames: frames - this.#base.frames,
      missed: missed - this.#base.missed,
    }
  }

  /** `exists` when there is a file already. */
  async start(file: string, linkType: number, floorMb: number): Promise<void> {
    if (this.#file !== null) throw new KeeperError('exists', `the port is captured already, into ${this.#file.path}`)
    this.#file = await PcapFile.create(file, linkType, floorMb)
    this.#base = this.#count()
    await this.#begin()
  }

  /** Resolves when the file holds all that was captured. */
  async stop(): Promise<void> {
    const file = this.#file
    if (file === null) return
    // What passed is in the ring, told of or not.
    await this.drain()
    this.#file = null
    await file.complete().catch((error: unknown) => this.#failed(file.path, (error as Error).message))
    await this.#endWhenUnused()
  }

  /** Writes the file from its beginning into a socket, which ends with the capture. `begin` is called first. */
  follow(socket: Socket, begin: () => void): void {
    const file = this.#file
    if (file === null) throw new KeeperError('not_running', 'the port is not captured')
    begin()
    const over = new AbortController()
    socket.on('close', () => over.abort())
    void (async () => {
      for await (const piece of file.follow(over.signal)) {
        if (!socket.write(piece)) await drained(socket)
      }
      socket.end()
    })().catch(() => socket.destroy())
  }

  /** Writes what passes from now on into a socket. A reader that is too slow misses frames and holds nobody up. */
  async stream(socket: Socket, linkType: number, begin: () => void): Promise<void> {
    begin()
    socket.write(pcapHeader(linkType))
    this.#streams.add(socket)
    socket.on('close', () => {
      this.#streams.delete(socket)
      void this.#endWhenUnused()
    })
    await this.#begin()
  }

  /** Ends everything. */
  async close(): Promise<void> {
    await this.drain()
    await this.stop()
    for (const socket of this.#streams) socket.end()
    this.#streams.clear()
    await this.#endWhenUnused()
  }

  /** To be called when the path says that there is something in the ring. */
  drain(): Promise<void> {
    this.#isMore = true
    this.#draining ??= this.#drainAll().finally(() => {
      this.#draining = null
    })
    return this.#draining
  }

  async #drainAll(): Promise<void> {
    while (this.#isMore && this.#reader !== null) {
      this.#isMore = false
      const reader = this.#reader
      for (let pieces = reader.pieces(); pieces.length > 0; pieces = reader.pieces()) {
        for (const socket of this.#streams) {
          // Whole records or none, so that what comes later is still read right.
          if (socket.writableLength > mostLag) continue
          for (const piece of pieces) socket.write(Uint8Array.from(piece))
        }
        await this.#store(pieces)
        reader.consume(pieces.reduce((sum, { length }) => sum + length, 0))
      }
    }
  }

  async #store(pieces: readonly Uint8Array[]): Promise<void> {
    const file = this.#file
    if (file === null) return
    try {
      await file.append(pieces)
    } catch (error) {
      this.#file = null
      await file.complete().catch(() => {})
      this.#failed(file.path, (error as Error).message)
      // Not awaited: ending waits for the draining that this is part of.
      setImmediate(() => void this.#endWhenUnused())
    }
  }

  async #begin(): Promise<void> {
    if (this.#reader !== null) return
    const ring = newRing()
    this.#reader = new RingReader(ring)
    await this.#path.capture(this.#row, ring)
  }

  async #endWhenUnused(): Promise<void> {
    if (this.#file !== null || this.#streams.size > 0 || this.#reader === null) return
    // Now, so that a capture that begins meanwhile has a ring of its own.
    this.#reader = null
    await this.#path.capture(this.#row, null)
  }

  #count(): { frames: number; missed: number } {
    return {
      frames: this.#counters.get(this.#row, at.captured),
      missed: this.#counters.get(this.#row, at.captureMissed),
    }
  }
}

/** Resolves when a socket takes more, or has ended. */
function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      socket.off('drain', done)
      socket.off('close', done)
      resolve()
    }
    socket.on('drain', done)
    socket.on('close', done)
  })
}
