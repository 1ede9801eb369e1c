import { ignore } from '../async/ignore.ts'
import { ApiError, badRequest } from '../errors/api-error.ts'
import type { Exchange } from './exchange.ts'
import type { ClientLimits } from './options.ts'
import type { ComputeAnswer } from './transport.ts'

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
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          exchange.within(idleMs)
          const { done, value } = await exchange.until(reader.read())
          exchange.within(undefined)
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
export class Upload {
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
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          exchange.within(undefined)
          try {
            const { done, value } = await exchange.until(this.#reader.read())
            this.#sent += value?.byteLength ?? 0
            if (done && this.#size !== undefined && this.#sent !== this.#size) {
              throw badRequest(`The body ended after ${this.#sent} of ${this.#size} bytes`)
            }
            exchange.within(done ? workMs : idleMs)
            if (done) controller.close()
            else controller.enqueue(value)
          } catch (error) {
            if (exchange.ending === undefined) {
              this.#failure = error instanceof ApiError ? error : badRequest('The body broke off', { cause: error })
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
