import { ignore } from '../async/ignore.ts'
import { ApiError, badRequest } from '../errors/api-error.ts'
import type { Exchange } from './exchange.ts'
import type { ClientLimits } from './options.ts'
import type { ComputeAnswer } from './transport.ts'

interface Received {
  /** How long it may stand still while somebody reads, ms; undefined: for ever. */
  readonly idleMs: number | undefined
  /** Bytes that were announced. */
  readonly size: number | undefined
  /** The error for a reader. */
  readonly lost: (error: unknown) => unknown
}

/** The body of an answer as it is read: an error when it stands still or ends at another place than was announced. */
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

/** What is sent to a compute as it comes from somebody else. */
export class Upload {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #size: number | undefined
  #sent = 0
  #failure: unknown

  constructor(content: ReadableStream<Uint8Array>, size?: number) {
    this.#reader = content.getReader()
    this.#size = size
  }

  /** Why the content did not come to its end. */
  get failure(): unknown {
    return this.#failure
  }

  /** Bytes that were taken. */
  get sent(): number {
    return this.#sent
  }

  /** The body of the request; what the exchange waits for is bounded while it is the compute's turn. */
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
              this.#failure =
                error instanceof ApiError ? error : badRequest('The body ended before its time', { cause: error })
            }
            controller.error(error)
          }
        },
      },
      { highWaterMark: 0 },
    )
  }

  /** Nothing more is taken: the answer has come, or none will. */
  end(): void {
    this.#reader.cancel().catch(ignore('the body has failed, or is not wanted any more'))
  }
}
