import type { Writable } from 'node:stream'
import { maxInputBytes } from './runner.ts'

/** Number of unread input bytes after which clients have to wait. */
const windowBytes = 64 * 1024

/** The result of typed input. */
export interface InputTaken {
  /** false: the guest has not read for a long time, and the bytes are discarded. */
  readonly isTaken: boolean
  /** Resolves when the client may type more; absent: at once. */
  readonly room?: Promise<void>
}

/** Flow control of console input: counts the typed bytes that the guest has not read yet. */
export class InputWindow {
  #pending = 0
  #room: Promise<void> | undefined
  #open = () => {}

  /** Registers bytes that are about to be sent. If `isTaken` is false, the caller must not send them. */
  offer(bytes: number): InputTaken {
    const isTaken = this.#pending + bytes <= maxInputBytes
    if (isTaken) this.#pending += bytes
    if (this.#pending < windowBytes) return { isTaken }
    this.#room ??= new Promise((resolve) => {
      this.#open = resolve
    })
    return { isTaken, room: this.#room }
  }

  /** Writes to a guest. Bytes count as read when they have left the stream. */
  send(stream: Writable, bytes: Uint8Array): InputTaken {
    const offer = this.offer(bytes.length)
    if (offer.isTaken) stream.write(bytes, () => this.taken(bytes.length))
    return offer
  }

  /** The guest has read this number of bytes. */
  taken(bytes: number): void {
    this.#pending -= bytes
    if (this.#pending < windowBytes) this.close()
  }

  /** Resolves all waits. */
  close(): void {
    this.#room = undefined
    this.#open()
  }
}
