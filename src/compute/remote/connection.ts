import type { Static, TSchema } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { ignore } from '../../lib/async/ignore.ts'
import { ApiError } from '../../lib/errors/api-error.ts'
import type { ErrorCode } from '../../lib/errors/error-codes.ts'
import type { Method } from '../../lib/http/method.ts'
import { formatIssue } from '../../model/validation/validate.ts'
import { causeOf, quoteText, readText } from './answer.ts'
import { minBytesPerMs, type RequestUpload, received } from './bodies.ts'
import { apiErrorOf } from './compute-error.ts'
import { Exchange } from './exchange.ts'
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
  readonly upload?: RequestUpload
  readonly signal?: AbortSignal
  /** The timeout: `readMs` or `workMs`. Default: `read` for a GET, else `work`. */
  readonly pace?: 'read' | 'work'
  /** See `Outgoing.longLived`. */
  readonly longLived?: boolean
  /** Statuses of answers beside 2xx. */
  readonly accepts?: readonly number[]
}

/** Sends calls to a compute, with timeouts, limits and retries. Its errors are errors for the client. */
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

  /** A call with a JSON answer; 502 unless the answer fits the schema. */
  async json<T extends TSchema>(schema: T, call: Call): Promise<Static<T>> {
    return (await this.answer(schema, call)).value
  }

  /** As `json`, with the status. */
  async answer<T extends TSchema>(schema: T, call: Call): Promise<{ value: Static<T>; status: number }> {
    const { response, exchange } = await this.#send(call)
    const text = await this.#text(response, exchange)
    if (text === undefined) throw this.wrong(`more than ${this.limits.answerBytes} bytes, or not UTF-8`)
    return { value: this.fitting(schema, this.parse(text)), status: response.status }
  }

  /** A call whose answer is read to its end, and of which only the head counts. */
  async done(call: Call): Promise<ComputeAnswer> {
    const { response, exchange } = await this.#send(call)
    await this.#text(response, exchange)
    return response
  }

  /** A call with a stream as its answer. `idleMs`: the timeout of the next piece; undefined: none. */
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
      throw this.wrong(text === '' ? 'an empty answer' : 'not JSON', cause)
    }
  }

  /** The value if it fits the schema, apart from unknown members; else 502. */
  fitting<T extends TSchema>(schema: T, value: unknown): Static<T> {
    const wanted = tolerant(schema)
    if (Check(wanted, value)) return value
    throw this.wrong(formatIssue(wanted, value, 'answer'))
  }

  /** 502 for an answer about another resource than the one that was asked for: the caller would take it for that one. */
  requireId(wanted: string, answered: string): void {
    if (answered.toLowerCase() !== wanted.toLowerCase())
      throw this.wrong(`${quoteText(answered)} in place of ${quoteText(wanted)}`)
  }

  /** 502: the answer is not that of a Patchbay. */
  wrong(what: string, cause?: unknown): ApiError {
    return this.#error(502, `sent a malformed answer: ${what}`, cause)
  }

  /** The error of a failed exchange: 503 without a connection, 504 after a timeout, 502 when the answer broke off. */
  lost(error: unknown, exchange: Exchange, broke?: 'broke off'): unknown {
    if (error instanceof ApiError) return error
    if (exchange.ending === 'cancelled') return exchange.reason ?? error
    if (exchange.ending === 'late' && exchange.isSlow)
      return this.#error(504, `transfers less than ${minBytesPerMs} KB of a body per second`, error)
    if (exchange.ending === 'late') {
      return this.#error(
        504,
        `did not ${broke === undefined ? 'answer' : 'continue'} within ${exchange.bound} ms`,
        error,
      )
    }
    if (broke !== undefined) return this.wrong(`the answer ended early: ${causeOf(error)}`, error)
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
      throw apiErrorOf(response, text ?? '', this.#name)
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
    const { method, path, headers, input, longLived = false } = call
    const json: Partial<Outgoing> = input === undefined ? {} : jsonBody(input)
    const answer = this.#transport({
      method,
      path,
      headers: { ...json.headers, ...headers },
      body: stream ?? json.body ?? null,
      signal: exchange.signal,
      ...(longLived && { longLived }),
    })
    // An answer after the end of the exchange is dropped.
    answer.then(
      (late) => void (exchange.ending !== undefined && late.body?.cancel().catch(ignore('the exchange has ended'))),
      ignore('`until` rejects with it'),
    )
    return exchange.until(answer)
  }

  /** Undefined for a body that is too long, or not in UTF-8. */
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

  #error(status: number, words: string, cause?: unknown, code?: ErrorCode): ApiError {
    return new ApiError(status, `The compute ${this.#name} ${words}`, { cause, ...(code !== undefined && { code }) })
  }
}

/** Whether a retry may succeed: a refusal of the fleet stays, except for a connection that just ended. */
const mayPass = (error: unknown): boolean => !(error instanceof ApiError) || error.cause instanceof ConnectionLost
