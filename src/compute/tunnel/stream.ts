import { largestWindow, TunnelReset } from '../../model/tunnel.ts'
import { ConnectionLost } from '../remote/transport.ts'
import {
  decodeAnswer,
  decodeJson,
  decodeWindow,
  encodeAnswer,
  encodeJson,
  encodeTunnelFrame,
  encodeWindow,
  frameFlags,
  frameKinds,
  maxPieceBytes,
  ProtocolError,
  pieceCost,
  type TunnelFrame,
} from './frames.ts'
import type { Outbox, OutboxSource } from './outbox.ts'

/** A piece of a body or of a message. */
export interface StreamPiece {
  readonly bytes: Uint8Array
  readonly flags: number
}

export interface StreamOptions {
  readonly id: number
  readonly outbox: Outbox
  /** First credit of either direction, bytes. */
  readonly window: { readonly theirs: number; readonly ours: number }
  /** Called when both directions have ended and all data was read. */
  readonly over: () => void
}

interface Writing {
  readonly bytes: Uint8Array
  readonly flags: number
  at: number
  readonly done: () => void
  readonly failed: (error: Error) => void
}

/** The other end reads no more of a stream. */
class Unwanted extends Error {
  override readonly name = 'Unwanted'
}

const longestReason = 300
/** Half of the least window: no end grants less at once. */
const leastGrant = 8192
const nothing = new Uint8Array()
/** The reason of every stream that ended well: an error with a stack of its own costs more than the rest of a stream. */
const over = new Unwanted('it is over')

/** One end of a stream: pieces in both directions, with flow control. */
export class Stream implements OutboxSource {
  readonly id: number
  readonly #options: StreamOptions

  #credit: number
  /** What was sent and not granted again, bytes. */
  #spent = 0
  #writing: Writing | undefined
  #hasSentEnd = false

  readonly #pieces: StreamPiece[] = []
  /** Credit of the other end, and the bytes that were read and not yet granted again. */
  #room: number
  #taken = 0
  #wake = () => {}
  #ending: Uint8Array | undefined
  #whole: Uint8Array<ArrayBuffer> | undefined
  #head: Uint8Array | undefined
  #requester: { answered(head: Uint8Array): void; refused(error: Error): void } | undefined

  #stopReason: Error | undefined
  readonly #stopListeners = new Set<() => void>()
  #stop: AbortController | undefined
  #failure: Error | undefined
  #isOver = false

  constructor(options: StreamOptions) {
    this.id = options.id
    this.#options = options
    this.#credit = options.window.theirs
    this.#room = options.window.ours
  }

  /** The answer to an OPEN. Only the end that asks waits for it. */
  head(): Promise<Uint8Array> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    if (this.#head !== undefined) return Promise.resolve(this.#head)
    return new Promise((answered, refused) => {
      this.#requester = { answered, refused }
    })
  }

  /** The payload of the END of the other end. */
  get ending(): Uint8Array | undefined {
    return this.#ending
  }

  /** The body of an ANSWER. */
  get whole(): Uint8Array<ArrayBuffer> | undefined {
    return this.#whole
  }

  /** The error that ended the stream early. */
  get failure(): Error | undefined {
    return this.#failure
  }

  /** Why the other end takes no more data; undefined while it does. */
  get stopReason(): Error | undefined {
    return this.#stopReason
  }

  /** Calls `run` once when the other end takes no more data, at once if that is so already. The result cancels that. */
  onStop(run: () => void): () => void {
    if (this.#stopReason !== undefined) {
      run()
      return () => {}
    }
    this.#stopListeners.add(run)
    return () => void this.#stopListeners.delete(run)
  }

  /** Aborts likewise. For those who need a signal: its abort costs workerd more than the rest of a short stream. */
  get stopped(): AbortSignal {
    this.#stop ??= new AbortController()
    if (this.#stopReason !== undefined) this.#stop.abort(this.#stopReason)
    return this.#stop.signal
  }

  sendHead(value: unknown): void {
    if (this.#failure === undefined) this.#options.outbox.control(encodeJson(frameKinds.head, this.id, value))
  }

  /** Sends head, body and end in one frame; false when they are too long for it. `isBatched`: with those of other streams; see `Outbox.batch`. */
  sendAnswer(head: unknown, body: Uint8Array, isBatched: boolean): boolean {
    const frame = encodeAnswer(this.id, head, body)
    if (frame === undefined) return false
    const { outbox } = this.#options
    if (this.#failure === undefined) isBatched ? outbox.batch(frame) : outbox.control(frame)
    this.endSilently()
    return true
  }

  /** Resolves when all bytes are sent; the last piece of a message has `flags.last`. One call at a time. */
  async write(bytes: Uint8Array, flagged = 0): Promise<void> {
    this.#requireWritable()
    if (bytes.length === 0 && flagged === 0) return
    await new Promise<void>((done, failed) => {
      this.#writing = { bytes, flags: flagged, at: 0, done, failed }
      this.#options.outbox.add(this)
    })
  }

  /** Ends this direction, after the last `write`. */
  end(payload?: Uint8Array): void {
    if (this.#hasSentEnd || this.#failure !== undefined) return
    this.#hasSentEnd = true
    // No data may follow the END: when the other end has closed a websocket, a message of this end may be half sent.
    this.#options.outbox.remove(this)
    this.#writing?.failed(new Unwanted('the stream has ended'))
    this.#writing = undefined
    this.#options.outbox.control(encodeTunnelFrame(frameKinds.end, this.id, payload))
    this.#settle()
  }

  /** As `end`, but without a frame: the OPEN or HEAD before announced the end. */
  endSilently(): void {
    this.#hasSentEnd = true
    this.#settle()
  }

  next(): Uint8Array | undefined {
    const writing = this.#writing
    if (writing === undefined || this.#credit <= pieceCost) return undefined
    const { bytes, at } = writing
    const piece = bytes.subarray(at, at + Math.min(maxPieceBytes, this.#credit - pieceCost))
    writing.at += piece.length
    const isWhole = writing.at === bytes.length
    this.#credit -= piece.length + pieceCost
    this.#spent += piece.length + pieceCost
    if (isWhole) {
      this.#writing = undefined
      writing.done()
    }
    return encodeTunnelFrame(
      frameKinds.data,
      this.id,
      piece,
      isWhole ? writing.flags : writing.flags & ~frameFlags.last,
    )
  }

  /** The next piece; undefined after the last one. Rejects when the stream was reset. */
  async read(): Promise<StreamPiece | undefined> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure
      const piece = this.#pieces.shift()
      if (piece !== undefined) {
        this.#give(piece)
        return piece
      }
      if (this.#ending !== undefined) return undefined
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /** Resets the stream: the other end gets a RESET, and readers and writers of this end get the error. */
  reset(error: Error): void {
    if (this.#isOver || this.#failure !== undefined) return
    const reason = error.message.slice(0, longestReason)
    this.#options.outbox.control(encodeJson(frameKinds.reset, this.id, { reason }))
    this.fail(error)
  }

  /** Fails the stream without a RESET: the tunnel is closed. */
  fail(error: Error): void {
    if (this.#failure !== undefined) return
    this.#failure = error
    this.#pieces.length = 0
    this.#options.outbox.remove(this)
    this.#writing?.failed(error)
    this.#writing = undefined
    this.#requester?.refused(error)
    this.#wake()
    this.#endUse(error)
    this.#finish()
  }

  /** Takes the end that an OPEN or HEAD without a body announced. */
  takeEnd(): void {
    this.receive({ kind: frameKinds.end, flags: 0, stream: this.id, payload: nothing })
  }

  /** Whether credit limits how many such frames can come: data, and a WINDOW that grants again what this end has sent. */
  isCovered({ kind, payload }: TunnelFrame): boolean {
    if (kind !== frameKinds.window) return kind === frameKinds.data
    const credit = decodeWindow(payload)
    return credit >= leastGrant && credit <= this.#spent
  }

  /** Takes a frame. */
  receive({ kind, flags, payload }: TunnelFrame): void {
    if (this.#failure !== undefined) return
    if (kind === frameKinds.reset) return this.#takeReset(decodeJson(payload, TunnelReset).reason)
    if (kind === frameKinds.window) return this.#takeWindow(decodeWindow(payload))
    if (this.#ending !== undefined) throw new ProtocolError('more came after the end of a stream')
    if (kind === frameKinds.head) this.#takeHead(payload)
    else if (kind === frameKinds.answer) this.#takeAnswer(payload)
    else if (kind === frameKinds.data) this.#takePiece(payload, flags)
    else if (kind === frameKinds.end) this.#takeEnd(payload)
  }

  #takeHead(payload: Uint8Array): void {
    this.#head = payload
    this.#requester?.answered(payload)
  }

  #takeAnswer(payload: Uint8Array): void {
    const { head, body } = decodeAnswer(payload)
    this.#whole = body
    this.#takeHead(head)
    this.#takeEnd(nothing)
  }

  #takePiece(bytes: Uint8Array, flagged: number): void {
    this.#room -= bytes.length + pieceCost
    if (this.#room < 0) throw new ProtocolError('more was sent than the window allows')
    this.#pieces.push({ bytes, flags: flagged })
    this.#wake()
  }

  #takeEnd(payload: Uint8Array): void {
    this.#ending = payload
    if (this.#head === undefined) this.#requester?.refused(new ConnectionLost('it ended without an answer'))
    this.#wake()
    this.#settle()
  }

  #takeReset(reason: string): void {
    if (this.#ending === undefined) return this.fail(new ConnectionLost(reason))
    // The answer is complete: the RESET only refuses more of the request.
    this.#hasSentEnd = true
    this.#options.outbox.remove(this)
    const unwanted = new Unwanted(reason)
    this.#writing?.failed(unwanted)
    this.#writing = undefined
    this.#endUse(unwanted)
    this.#settle()
  }

  #takeWindow(credit: number): void {
    this.#credit += credit
    this.#spent = Math.max(0, this.#spent - credit)
    if (this.#credit > largestWindow) throw new ProtocolError('a window is too large')
    if (this.#writing !== undefined) this.#options.outbox.add(this)
  }

  /** Grants the credit of read bytes again, when it is worth a frame. */
  #give({ bytes }: StreamPiece): void {
    this.#taken += bytes.length + pieceCost
    if (this.#ending !== undefined) return this.#settle()
    if (this.#taken < this.#options.window.ours / 2) return
    this.#options.outbox.control(encodeWindow(this.id, this.#taken))
    this.#room += this.#taken
    this.#taken = 0
  }

  #requireWritable(): void {
    if (this.#failure !== undefined) throw this.#failure
    if (this.#hasSentEnd) throw new Unwanted('the stream has ended')
  }

  #settle(): void {
    if (this.#hasSentEnd && this.#ending !== undefined && this.#pieces.length === 0) this.#finish()
  }

  #finish(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#options.over()
    this.#endUse(over)
  }

  #endUse(reason: Error): void {
    if (this.#stopReason !== undefined) return
    this.#stopReason = reason
    this.#stop?.abort(reason)
    for (const run of this.#stopListeners) run()
    this.#stopListeners.clear()
  }
}
