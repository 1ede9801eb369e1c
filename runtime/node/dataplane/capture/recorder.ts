import type { Socket } from 'node:net'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { KeyedMutex } from '../../../../src/lib/async/keyed-mutex.ts'
import { KeeperError } from '../../keeper/protocol/error.ts'
import type { CaptureState } from '../../keeper/protocol/protocol.ts'
import { CaptureSlots } from '../switch/core/capture-slots.ts'
import { at, type Counters } from '../switch/core/counters.ts'
import type { PacketPath } from '../switch/core/path.ts'
import { lossRecord, PcapFile, pcapHeader } from './pcap-file.ts'

/** Maximum backlog of a live stream before it loses frames, bytes. */
const maxLag = 4 << 20

/** The losses of a live stream. */
interface Losses {
  /** Whether its reader gets the numbers of lost frames. */
  readonly areTold: boolean
  /** Frames that it lost since its reader got the last number. */
  untold: number
  /** The counter of frames that the path could not deliver, as far as `untold` has it. */
  missed: number
}

/** The captures of one port: a file, and streams. The path delivers frames while there is at least one of them. */
export class Recorder {
  readonly #path: Pick<PacketPath, 'capture'>
  readonly #counters: Counters
  readonly #row: number
  readonly #failed: (file: string, message: string) => void
  readonly #streams = new Map<Socket, Losses>()
  /** Set while the path delivers frames. All stored frames are in these slots. */
  #slots: CaptureSlots | null = null
  readonly #serial = new KeyedMutex()
  #file: PcapFile | null = null
  /** Counters at the start of the file. */
  #base = { frames: 0, missed: 0 }
  #taken: { slot: number; length: number }[] = []
  #takenCount = 0
  #storedCount = 0
  #isStoring = false
  #batch: Promise<void> = Promise.resolve()

  constructor(
    path: Pick<PacketPath, 'capture'>,
    counters: Counters,
    row: number,
    failed: (file: string, message: string) => void,
  ) {
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

  /** `exists` when the port already has a file capture. */
  async start(file: string, linkType: number, minFreeMb: number): Promise<void> {
    if (this.#file !== null)
      throw new KeeperError('exists', `the port is already being captured, to ${this.#file.path}`)
    const created = await PcapFile.create(file, linkType, minFreeMb)
    // Earlier frames belong to the streams only.
    await this.#settle()
    this.#file = created
    this.#base = this.#count()
    try {
      await this.#adjust()
    } catch (error) {
      this.#file = null
      await created.complete().catch(ignore('the failure before it is reported'))
      throw error
    }
  }

  /** Resolves when the file has all captured frames. */
  async stop(): Promise<void> {
    const file = this.#file
    if (file === null) return
    await this.#settle()
    this.#file = null
    // One batch may still be written.
    await this.#batch
    await file.complete().catch((error: unknown) => this.#failed(file.path, (error as Error).message))
    await this.#adjust()
  }

  /** Writes the file from its beginning to a socket, until the capture ends. Calls `begin` first. */
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

  /**
   * Writes frames from now on to a socket. A slow reader loses frames and delays nothing; `tellsLosses`: records without bytes say
   * how many.
   */
  async stream(socket: Socket, linkType: number, begin: () => void, tellsLosses = false): Promise<void> {
    begin()
    socket.write(pcapHeader(linkType))
    const losses = { areTold: tellsLosses, untold: 0, missed: this.#count().missed }
    this.#streams.set(socket, losses)
    // It has caught up: more frames may not come for long.
    socket.on('drain', () => {
      if (this.#streams.has(socket)) this.#sendLosses(socket, losses)
    })
    socket.on('close', () => {
      this.#streams.delete(socket)
      void this.#adjust()
    })
    try {
      await this.#adjust()
    } catch (error) {
      this.#streams.delete(socket)
      throw error
    }
  }

  /** Ends everything. */
  async close(): Promise<void> {
    await this.#settle()
    await this.stop()
    for (const [socket, losses] of this.#streams) {
      this.#sendLosses(socket, losses)
      socket.end()
    }
    this.#streams.clear()
    await this.#adjust()
  }

  /** Stores a slot of the path. */
  record(slot: number, length: number): void {
    if (this.#slots === null) return
    this.#taken.push({ slot, length })
    this.#takenCount += 1
    if (!this.#isStoring) void this.#storeAll(this.#slots)
  }

  async #storeAll(slots: CaptureSlots): Promise<void> {
    this.#isStoring = true
    while (this.#taken.length > 0) {
      this.#batch = this.#storeBatch(slots, this.#taken.splice(0))
      await this.#batch
    }
    // In the same turn as the check of the queue: later frames start a new run.
    this.#isStoring = false
  }

  async #storeBatch(slots: CaptureSlots, taken: readonly { slot: number; length: number }[]): Promise<void> {
    const pieces = taken.map(({ slot, length }) => slots.read(slot, length))
    let dropped: number | undefined
    for (const [socket, losses] of this.#streams) {
      // Complete records or none, so that the stream stays valid.
      if (socket.writableLength > maxLag) {
        losses.untold += dropped ??= pieces.reduce((sum, piece) => sum + recordsIn(piece), 0)
        continue
      }
      this.#sendLosses(socket, losses)
      for (const piece of pieces) socket.write(Uint8Array.from(piece))
    }
    await this.#store(pieces)
    for (const { slot } of taken) slots.free(slot)
    this.#storedCount += taken.length
  }

  #sendLosses(socket: Socket, losses: Losses): void {
    if (!losses.areTold) return
    const { missed } = this.#count()
    const lost = losses.untold + missed - losses.missed
    if (lost === 0) return
    socket.write(lossRecord(lost))
    losses.untold = 0
    losses.missed = missed
  }

  async #store(pieces: readonly Uint8Array[]): Promise<void> {
    const file = this.#file
    if (file === null) return
    try {
      await file.append(pieces)
    } catch (error) {
      this.#file = null
      await file.complete().catch(ignore('the failure that ended the capture is reported'))
      this.#failed(file.path, (error as Error).message)
      // Not awaited: it waits until everything is stored.
      void this.#adjust()
    }
  }

  /** Resolves when all frames up to now are stored; does not wait for later frames. */
  #settle(): Promise<void> {
    return this.#serial.run('path', async () => {
      if (this.#slots !== null) await this.#path.capture(this.#row, this.#slots.memory)
      await this.#stored()
    })
  }

  /** Has the path deliver frames exactly while there is a capture. */
  #adjust(): Promise<void> {
    return this.#serial.run('path', async () => {
      const isWanted = this.#file !== null || this.#streams.size > 0
      if (isWanted === (this.#slots !== null)) return
      if (this.#slots === null) {
        // Frames come before `capture` resolves.
        this.#slots = CaptureSlots.borrow()
        try {
          await this.#path.capture(this.#row, this.#slots.memory)
        } catch (error) {
          await this.#endDelivery(this.#slots).catch(ignore('the failure before it is reported'))
          this.#slots = null
          throw error
        }
        return
      }
      await this.#endDelivery(this.#slots)
      this.#slots = null
    })
  }

  async #endDelivery(slots: CaptureSlots): Promise<void> {
    await this.#path.capture(this.#row, null)
    // The last frames have just been delivered and are still in these slots.
    await this.#stored()
    slots.giveBack()
  }

  async #stored(): Promise<void> {
    const goal = this.#takenCount
    while (this.#storedCount < goal) await this.#batch
  }

  #count(): { frames: number; missed: number } {
    const get = (column: number) => this.#counters.get(this.#row, column)
    return { frames: get(at.captured), missed: get(at.captureMissed) }
  }
}

/** How many records are in a piece of pcap. */
function recordsIn(piece: Uint8Array): number {
  const view = new DataView(piece.buffer, piece.byteOffset, piece.byteLength)
  let count = 0
  for (let at = 0; at < piece.length; at += 16 + view.getUint32(at + 8, true)) count += 1
  return count
}

/** Resolves when the socket is writable again or closed. */
const drained = (socket: Socket): Promise<void> =>
  new Promise((resolve) => {
    // The socket has already emitted `close`.
    if (socket.destroyed) return resolve()
    const done = () => {
      socket.off('drain', done).off('close', done)
      resolve()
    }
    socket.on('drain', done).on('close', done)
  })
