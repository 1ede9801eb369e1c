import { joined } from '../../lib/http/body.ts'
import type { Socket } from '../../lib/http/socket.ts'
import { TunnelClose } from '../../model/tunnel.ts'
import { decodeJson, frameFlags } from './frames.ts'
import { closeReason } from './link.ts'
import type { Stream } from './stream.ts'

/** Longest message, bytes. */
const largestMessage = 1 << 20
/** `drained` waits while more than `maxBuffered` bytes wait; more than `maxWaiting` resets the stream. */
const maxBuffered = 256 * 1024
const maxWaiting = 8 << 20
/** How long the other end may take to answer a close, ms. */
const closeMs = 5000

/** A websocket on a stream, open and paused: whole messages in both directions, and a close with a code. */
export class Messages implements Socket {
  readonly #stream: Stream
  readonly #receivers: ((data: string | Uint8Array) => void)[] = []
  readonly #closeListeners: ((code: number) => void)[] = []
  readonly #queue: { readonly bytes: Uint8Array; readonly flags: number }[] = []
  #waiting = 0
  #isPumping = false
  #closing: TunnelClose | undefined
  /** The code of the close; undefined before it. */
  #code: number | undefined
  #late: ReturnType<typeof setTimeout> | undefined
  #paused: Promise<void> | undefined
  #resume = () => {}
  readonly #drainers = new Set<() => void>()

  constructor(stream: Stream) {
    this.#stream = stream
    this.pause()
    stream.onStop(() => this.#broke())
    if (stream.failure !== undefined) queueMicrotask(() => this.#broke())
    else void this.#read()
  }

  get #isOpen(): boolean {
    return this.#code === undefined && this.#closing === undefined
  }

  onMessage(receive: (data: string | Uint8Array) => void): void {
    this.#receivers.push(receive)
  }

  onClose(closed: (code: number) => void): void {
    const code = this.#code
    if (code === undefined) this.#closeListeners.push(closed)
    else queueMicrotask(() => closed(code))
  }

  send(data: string | Uint8Array): void {
    if (!this.#isOpen) return
    const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data
    this.#waiting += bytes.length
    if (this.#waiting > maxWaiting) return this.#stream.reset(new Error('the other end reads too slowly'))
    this.#queue.push({ bytes, flags: frameFlags.last | (typeof data === 'string' ? frameFlags.text : 0) })
    void this.#pump()
  }

  /** Closes after the messages that wait. */
  close(code = 1000, reason = ''): void {
    if (!this.#isOpen) return
    this.#closing = { code, reason: closeReason(reason) }
    this.#late = setTimeout(() => this.#stream.reset(new Error('the close was not answered')), closeMs)
    this.resume()
    void this.#pump()
  }

  /** Delivers nothing until `resume`; the other end is slowed down. */
  pause(): void {
    if (!this.#isOpen) return
    this.#paused ??= new Promise((resolve) => {
      this.#resume = resolve
    })
  }

  resume(): void {
    this.#paused = undefined
    this.#resume()
  }

  /** Resolves when few bytes wait to be sent, or the stream has ended. */
  async drained(): Promise<void> {
    while (this.#waiting > maxBuffered && this.#code === undefined) {
      await new Promise<void>((resolve) => this.#drainers.add(resolve))
    }
  }

  async #pump(): Promise<void> {
    if (this.#isPumping) return
    this.#isPumping = true
    try {
      for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
        await this.#stream.write(next.bytes, next.flags)
        this.#waiting -= next.bytes.length
        if (this.#waiting <= maxBuffered) this.#wakeDrainers()
      }
      if (this.#closing !== undefined) this.#stream.end(encoded(this.#closing))
    } catch {
      // The stream reports the reason.
    } finally {
      this.#isPumping = false
    }
  }

  async #read(): Promise<void> {
    try {
      for (;;) {
        await this.#paused
        const message = await this.#next()
        if (message === undefined) break
        await this.#paused
        if (this.#closing === undefined) for (const receive of this.#receivers) receive(message)
      }
      this.#ended(decodeJson(this.#stream.ending ?? new Uint8Array(), TunnelClose))
    } catch (error) {
      this.#stream.reset(error as Error)
      this.#broke()
    }
  }

  /** The next whole message; undefined after the last one. */
  async #next(): Promise<string | Uint8Array | undefined> {
    const pieces: Uint8Array[] = []
    let size = 0
    for (;;) {
      const piece = await this.#stream.read()
      if (piece === undefined) return undefined
      size += piece.bytes.length
      if (size > largestMessage) throw new Error('a message is too long')
      pieces.push(piece.bytes)
      if ((piece.flags & frameFlags.last) === 0) continue
      const bytes = joined(pieces, size)
      return (piece.flags & frameFlags.text) === 0 ? bytes : new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    }
  }

  /** Takes the close of the other end, or its answer to ours. */
  #ended(theirs: TunnelClose): void {
    this.#queue.length = 0
    this.#stream.end(encoded(this.#closing ?? theirs))
    this.#finish(theirs.code)
  }

  #broke(): void {
    if (this.#stream.failure !== undefined) this.#finish(1006)
  }

  #finish(code: number): void {
    if (this.#code !== undefined) return
    this.#code = code
    clearTimeout(this.#late)
    this.#queue.length = 0
    this.#wakeDrainers()
    this.resume()
    for (const closed of this.#closeListeners) closed(code)
  }

  #wakeDrainers(): void {
    for (const wake of this.#drainers) wake()
    this.#drainers.clear()
  }
}

const encoded = (close: TunnelClose): Uint8Array => new TextEncoder().encode(JSON.stringify(close))
