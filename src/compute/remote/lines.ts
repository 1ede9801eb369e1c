import { ignore } from '../../lib/async/ignore.ts'
import type { FeedLimit } from '../../model/feed-limit.ts'

/** The lines of a body, one after the other; empty ones are skipped. */
export class Lines {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #decoder = new TextDecoder()
  readonly #most: number
  readonly #tooLong: () => Error
  readonly #limit: FeedLimit | undefined
  readonly #over = new AbortController()
  readonly #whole: string[] = []
  /** Parts of a line that has not ended. */
  #parts: string[] = []
  #size = 0

  /** A line of more than `most` characters is the error of `tooLong`. `limit` limits how fast the body is read. */
  constructor(body: ReadableStream<Uint8Array>, most: number, tooLong: () => Error, limit?: FeedLimit) {
    this.#reader = body.getReader()
    this.#most = most
    this.#tooLong = tooLong
    this.#limit = limit
  }

  /** Undefined at the end. */
  async next(): Promise<string | undefined> {
    for (;;) {
      const line = this.#whole.shift()
      if (line !== undefined) {
        await this.#limit?.line(this.#over.signal)
        return line
      }
      const { done, value } = await this.#reader.read()
      // An incomplete last line is dropped.
      if (done) return undefined
      await this.#limit?.bytes(value.byteLength, this.#over.signal)
      this.#push(this.#decoder.decode(value, { stream: true }))
    }
  }

  /** Nothing more is read. */
  cancel(): void {
    this.#over.abort()
    this.#reader.cancel().catch(ignore('nothing more is read'))
  }

  #push(text: string): void {
    const [first = '', ...others] = text.split('\n')
    this.#add(first)
    for (const other of others) {
      const line = this.#parts.join('')
      if (line.trim() !== '') this.#whole.push(line)
      this.#parts = []
      this.#size = 0
      this.#add(other)
    }
  }

  #add(part: string): void {
    this.#size += part.length
    if (this.#size > this.#most) throw this.#tooLong()
    if (part !== '') this.#parts.push(part)
  }
}
