import { write } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'

const writeTo = promisify(write)
/** Text that waits for a terminal, bytes: about a thousand lines. */
const maxWaiting = 128 << 10
const againMs = 10

/**
 * Writes lines without ever stopping the program: a write to a terminal that is slow, or stopped by Ctrl-S, blocks a thread of the
 * pool and not the event loop. Lines beyond what may wait are refused.
 */
export class RowOutput {
  readonly #fd: number
  #waiting: Uint8Array[] = []
  #size = 0
  #running: Promise<void> | undefined
  #error: unknown

  constructor(fd: number) {
    this.#fd = fd
  }

  /** False when too much waits already. Throws when an earlier write failed, such as EPIPE. */
  offer(text: string | Uint8Array): boolean {
    if (this.#error !== undefined) throw this.#error
    if (this.#size > maxWaiting) return false
    const bytes = typeof text === 'string' ? Buffer.from(text) : text
    this.#waiting.push(bytes)
    this.#size += bytes.length
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
    })
    return true
  }

  /** Resolves when all that was taken is written; rejects when it cannot be. */
  async written(): Promise<void> {
    await this.#running
    if (this.#error !== undefined) throw this.#error
  }

  async #run(): Promise<void> {
    try {
      while (this.#waiting.length > 0) {
        const bytes = Buffer.concat(this.#waiting.splice(0))
        for (let at = 0; at < bytes.length; ) at += await this.#write(bytes.subarray(at))
        this.#size -= bytes.length
      }
    } catch (error) {
      this.#error = error
    }
  }

  async #write(bytes: Uint8Array): Promise<number> {
    try {
      return (await writeTo(this.#fd, bytes)).bytesWritten
    } catch (error) {
      // Another program may have made the pipe non-blocking.
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
      await pause(againMs)
      return 0
    }
  }
}
