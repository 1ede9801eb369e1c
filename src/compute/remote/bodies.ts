import { ignore } from '../../lib/async/ignore.ts'
import { ApiError, badRequest } from '../../lib/errors/api-error.ts'
import type { Exchange } from './exchange.ts'
import type { ClientLimits } from './options.ts'
import type { ComputeAnswer } from './transport.ts'

/** Least speed of a body of a known size, bytes a ms. */
export const minBytesPerMs = 16

/**
 * The waits for the pieces of a body: each has a timeout, and with one byte in each wait a body would never end. Waits spend the time that the
 * bytes before them earned, at `minBytesPerMs`, up to one timeout.
 */
class Waits {
  readonly #idleMs: number
  #spareMs: number
  #began = 0

  constructor(idleMs: number) {
    this.#idleMs = idleMs
    this.#spareMs = idleMs
  }

  begin(exchange: Exchange): void {
    this.#began = Date.now()
    const isSlow = this.#spareMs < this.#idleMs / 2
    exchange.within(isSlow ? Math.max(0, this.#spareMs) : this.#idleMs, isSlow)
  }

  /** Ends a wait, if one has begun, after which so many bytes have passed. */
  end(exchange: Exchange, bytes: number): void {
    exchange.within(undefined)
    if (this.#began === 0) return
    const waitedMs = Math.max(0, Date.now() - this.#began)
    this.#began = 0
    this.#spareMs = Math.min(this.#idleMs, this.#spareMs - waitedMs + bytes / minBytesPerMs)
  }
}

interface Received {
  /** Timeout of the next piece, ms; undefined: none. */
  readonly idleMs: number | undefined
  /** The announced size, bytes. */
  readonly size: number | undefined
  /** Makes the error for a reader. */
  readonly lost: (error: unknown) => unknown
}

/** The body of an answer; an error after the timeout, or when its size is not the announced one. */
export function received(
  response: ComputeAnswer,
  exchange: Exchange,
  { idleMs, size, lost }: Received,
): ReadableStream<Uint8Array> {
  const reader = (response.body ?? new Blob([]).stream()).getReader()
  let left = size ?? Number.POSITIVE_INFINITY
  // A feed has no size, and may be slow.
  const waits = size === undefined || idleMs === undefined ? undefined : new Waits(idleMs)
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          if (waits === undefined) exchange.within(idleMs)
          else waits.begin(exchange)
          const { done, value } = await exchange.until(reader.read())
          if (waits === undefined) exchange.within(undefined)
          else waits.end(exchange, value?.byteLength ?? 0)
          left -= value?.byteLength ?? 0
          if (left < 0 || (done && size !== undefined && left > 0)) throw new Error(`${size} bytes were announced`)
          if (value !== undefined) return controller.enqueue(value)
          exchange.release()
          controller.close()
        } catch (error) {
          const reason = lost(error)
          reader.cancel().catch(ignore('the body has failed, or is not wanted any more'))
          exchange.abort()
          controller.error(reason)
        }
      },
      async cancel() {
        reader.cancel().catch(ignore('the body has failed, or is not wanted any more'))
        exchange.abort()
      },
    },
    { highWaterMark: 0 },
  )
}

/** The body of a request that comes from a client. */
export class RequestUpload {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #size: number | undefined
  #sent = 0
  #failure: unknown

  constructor(content: ReadableStream<Uint8Array>, size?: number) {
    this.#reader = content.getReader()
    this.#size = size
  }

  /** The error of the client's content. */
  get failure(): unknown {
    return this.#failure
  }

  /** Bytes that were read. */
  get sent(): number {
    return this.#sent
  }

  /** The body of the request. The timeout runs while the compute has to read or answer, not while the client has to send. */
  begin(exchange: Exchange, { idleMs, workMs }: ClientLimits): ReadableStream<Uint8Array> {
    const waits = new Waits(idleMs)
    let given = 0
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          waits.end(exchange, given)
          try {
            const { done, value } = await exchange.until(this.#reader.read())
            this.#sent += value?.byteLength ?? 0
            if (done && this.#size !== undefined && this.#sent !== this.#size) {
              throw badRequest(`The body ended after ${this.#sent} of ${this.#size} bytes`)
            }
            given = value?.byteLength ?? 0
            if (done) exchange.within(workMs)
            else waits.begin(exchange)
            if (done) controller.close()
            else controller.enqueue(value)
          } catch (error) {
            if (exchange.ending === undefined) {
              this.#failure = error instanceof ApiError ? error : badRequest('The body ended early', { cause: error })
            }
            controller.error(error)
          }
        },
      },
      { highWaterMark: 0 },
    )
  }

  /** Stops reading: the answer has come, or none will. */
  end(): void {
    this.#reader.cancel().catch(ignore('the body has failed, or is not wanted any more'))
  }
}
