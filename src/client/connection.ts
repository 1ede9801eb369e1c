import type { Static, TSchema } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { ignore } from '../async/ignore.ts'
import { ApiError } from '../errors/api-error.ts'
import type { ErrorWord } from '../errors/words.ts'
import type { Method } from '../http/endpoint.ts'
import { complaint } from '../http/validate.ts'
import { causeOf, readText } from './answer.ts'
import { received, type Upload } from './bodies.ts'
import { Exchange } from './exchange.ts'
import { faultOf } from './faults.ts'
import { isRedirect } from './greeting.ts'
import { type ClientLimits, defaultClientLimits, type RemoteOptions } from './options.ts'
import { tolerant } from './tolerant.ts'
import type { ComputeAnswer } from './transport.ts'
import { ConnectionLost, jsonBody, type Outgoing, type Send } from './transport.ts'

const maxRetries = 2
/** Times between tries are between these, ms; the second one is twice as long. */
const retryMs = [50, 150] as const
const faultBytes = 64 << 10

/** One call of the interface. */
export interface Call {
  readonly method: Method
  /** With its query. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** Becomes the JSON body. */
  readonly input?: unknown
  readonly upload?: Upload
  readonly signal?: AbortSignal
  /** `read`: tells what is known; `work`: takes its time, or waits for its turn. Without it GETs read and all else works. */
  readonly pace?: 'read' | 'work'
  /** See `Outgoing.rests`. */
  readonly rests?: boolean
  /** Statuses of answers beside 2xx. */
  readonly accepts?: readonly number[]
}

/** What may be said to a compute, and how it is heard: with bounds, retries, and errors that a client may be told. */
export class Connection {
  readonly limits: ClientLimits
  /** See `RemoteOptions.isWatched`. */
  readonly isWatched: boolean
  readonly #name: string
  readonly #transport: Send

  constructor({ name, send, limits, isWatched = false }: RemoteOptions) {
    this.limits = { ...defaultClientLimits, ...limits }
    this.isWatched = isWatched
    this.#name = name
    this.#transport = send
  }

  /** A call that is answered with JSON; 502 unless it fits the schema. */
  async json<T extends TSchema>(schema: T, call: Call): Promise<Static<T>> {
    return (await this.answer(schema, call)).value
  }

  /** The same with the status. */
  async answer<T extends TSchema>(schema: T, call: Call): Promise<{ value: Static<T>; status: number }> {
    const { response, exchange } = await this.#send(call)
    const text = await this.#text(response, exchange)
    if (text === undefined)
      throw this.wrong(`more than the ${this.limits.answerBytes} bytes that are read of an answer, or no UTF-8`)
    return { value: this.fitting(schema, this.parse(text)), status: response.status }
  }

  /** A call of whose answer only the head counts; it is over when the body has ended. */
  async done(call: Call): Promise<ComputeAnswer> {
    const { response, exchange } = await this.#send(call)
    await this.#text(response, exchange)
    return response
  }

  /** A call that is answered with a stream. `idleMs`: how long it may stand still; undefined: for ever. */
  async stream(
    call: Call,
    { idleMs, size }: { idleMs: number | undefined; size?: (response: ComputeAnswer) => number | undefined },
  ): Promise<{ response: ComputeAnswer; body: ReadableStream<Uint8Array> }> {
    const { response, exchange } = await this.#send(call)
    exchange.within(undefined)
    try {
      const expected = size?.(response)
      const lost = (error: unknown) => this.lost(error, exchange, 'broke off')
      return { response, body: received(response, exchange, { idleMs, size: expected, lost }) }
    } catch (error) {
      exchange.abort()
      throw error
    }
  }

  /** A text that must be JSON; 502. */
  parse(text: string): unknown {
    try {
      return JSON.parse(text)
    } catch (cause) {
      throw this.wrong(text === '' ? 'an empty answer' : 'no JSON', cause)
    }
  }

  /** A value that must fit the schema, but for members that are not known; 502. */
  fitting<T extends TSchema>(schema: T, value: unknown): Static<T> {
    const wanted = tolerant(schema)
    if (Check(wanted, value)) return value
    throw this.wrong(complaint(wanted, value, 'answer'))
  }

  /** 502: it answered, and not as a Patchbay would. */
  wrong(what: string, cause?: unknown): ApiError {
    return this.#error(502, `answered something else than expected: ${what}`, cause)
  }

  /** Why an exchange came to nothing: 503 when it could not be asked, 504 when it took too long, 502 when the answer broke off. */
  lost(error: unknown, exchange: Exchange, broke?: 'broke off'): unknown {
    if (error instanceof ApiError) return error
    if (exchange.ending === 'cancelled') return exchange.reason ?? error
    if (exchange.ending === 'late') {
      return this.#error(504, `did not ${broke === undefined ? 'answer' : 'go on'} within ${exchange.bound} ms`, error)
    }
    if (broke !== undefined) return this.wrong(`the answer broke off: ${causeOf(error)}`, error)
    return this.#error(503, `cannot be reached: ${causeOf(error)}`, error, 'compute-unreachable')
  }

  async #send(call: Call): Promise<{ response: ComputeAnswer; exchange: Exchange }> {
    const { method, upload, accepts = [], pace = method === 'GET' ? 'read' : 'work' } = call
    const exchange = new Exchange(call.signal)
    exchange.within(pace === 'read' ? this.limits.readMs : this.limits.workMs)
    const body = upload?.begin(exchange, this.limits)
    try {
      const response = await this.#tries(call, exchange, body)
      const isAnswer =
        (response.status >= 200 && response.status < 300) ||
        (accepts.includes(response.status) && !isRedirect(response))
      if (isAnswer) return { response, exchange }
      const text = await exchange.until(readText(response, faultBytes)).catch(() => undefined)
      throw faultOf(response, text ?? '', this.#name)
    } catch (error) {
      exchange.abort()
      throw error
    } finally {
      upload?.end()
    }
  }

  async #tries(call: Call, exchange: Exchange, body: ReadableStream<Uint8Array> | undefined): Promise<ComputeAnswer> {
    const isSafe = call.method === 'GET'
    for (let tries = 0; ; tries++) {
      try {
        return await this.#ask(call, exchange, body)
      } catch (error) {
        if (call.upload?.failure !== undefined) throw call.upload.failure
        const isFinal = !isSafe || tries === maxRetries || exchange.ending !== undefined || !mayPass(error)
        if (isFinal) throw this.lost(error, exchange)
        const [least, most] = retryMs
        await exchange.pause((least + Math.random() * (most - least)) * (tries + 1))
      }
    }
  }

  #ask(call: Call, exchange: Exchange, stream: ReadableStream<Uint8Array> | undefined): Promise<ComputeAnswer> {
    const { method, path, headers, input, rests = false } = call
    const json: Partial<Outgoing> = input === undefined ? {} : jsonBody(input)
    const answer = this.#transport({
      method,
      path,
      headers: { ...json.headers, ...headers },
      body: stream ?? json.body ?? null,
      signal: exchange.signal,
      ...(rests && { rests }),
    })
    // What comes when nobody waits any more is let go.
    answer.then(
      (late) =>
        void (
          exchange.ending !== undefined && late.body?.cancel().catch(ignore('nobody waits for this answer any more'))
        ),
      ignore('who waits for it is told'),
    )
    return exchange.until(answer)
  }

  /** Undefined: it is too long, or no UTF-8. */
  async #text(response: ComputeAnswer, exchange: Exchange): Promise<string | undefined> {
    try {
      return await exchange.until(readText(response, this.limits.answerBytes))
    } catch (error) {
      const lost = this.lost(error, exchange, 'broke off')
      exchange.abort()
      throw lost
    } finally {
      exchange.release()
    }
  }

  #error(status: number, words: string, cause?: unknown, word?: ErrorWord): ApiError {
    return new ApiError(status, `The compute ${this.#name} ${words}`, { cause, ...(word !== undefined && { word }) })
  }
}

/** Whether another try may do better: what a fleet refuses stays refused, but for a connection that just ended. */
const mayPass = (error: unknown): boolean => !(error instanceof ApiError) || error.cause instanceof ConnectionLost
