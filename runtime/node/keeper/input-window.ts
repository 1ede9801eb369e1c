import type { Writable } from 'node:stream'
import { maxInputBytes } from './runner.ts'

/** So many bytes may be under way to a guest before those who type wait. */
const windowBytes = 64 * 1024

/** What a console says to bytes that were typed. */
export interface InputTaken {
  /** false: the guest has not read for long, and they are thrown away. */
  readonly isTaken: boolean
  /** Resolves when more may be typed; absent: at once. */
  readonly room?: Promise<void>
}

/** Counts the typed bytes that a guest has not read yet, so that who types faster than it reads waits for it. */
export class InputWindow {
  #pending = 0
  #room: Promise<void> | undefined
  #open = () => {}

  /** So many bytes are to be sent; not when `isTaken` is false. */
  offer(bytes: number): InputTaken {
    const isTaken = this.#pending + bytes <= maxInputBytes
    if (isTaken) this.#pending += bytes
    if (this.#pending < windowBytes) return { isTaken }
    this.#room ??= new Promise((resolve) => {
      this.#open = resolve
    })
    return { isTaken, room: this.#room }
  }

  /** Writes to a guest; what it has read is what the stream has got rid of. */
  send(stream: Writable, bytes: Uint8Array): InputTaken {
    const offer = this.offer(bytes.length)
    if (offer.isTaken) stream.write(bytes, () => this.taken(bytes.length))
    return offer
  }

  /** The guest has read so many. */
  taken(bytes: number): void {
    this.#pending -= bytes
    if (this.#pending < windowBytes) this.close()
  }

  /** Nobody needs to wait any more. */
  close(): void {
    this.#room = undefined
    this.#open()
  }
}
