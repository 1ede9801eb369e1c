import { causeOf, jsonIn } from '../compute/remote/answer.ts'
import { path as pathOf, search } from '../compute/remote/paths.ts'
import { errorHeader } from '../lib/errors/error-codes.ts'
import { bytesOfText } from '../lib/http/header-text.ts'
import { organizationHeader } from '../model/access/organization-header.ts'
import type { Calls } from './calls.ts'
import { type ByteStreams, openByteStreams, type WebSocketMaker } from './console.ts'
import { type FeedOptions, feedLines } from './feed.ts'
import type { FeedLine, LabLine, ServiceLine } from './feed-line.ts'
import { listCalls } from './list-calls.ts'
import { type lostCodes, PatchbayError } from './patchbay-error.ts'

export type * from './calls.ts'
export type { ByteStreams } from './console.ts'
export type { FeedOptions } from './feed.ts'
export type { FeedLine, LabLine, OtherLine, ServiceLine } from './feed-line.ts'
export { lostCodes, PatchbayError } from './patchbay-error.ts'

/** Default timeout of a call, ms. The service has its own, shorter timeouts. */
const defaultTimeoutMs = 600_000

/** The part of a `Response` that this client reads. */
export interface Answer extends Pick<Response, 'ok' | 'status' | 'body' | 'text'> {
  readonly headers: Pick<Headers, 'get'>
}

export interface PatchbayOptions {
  /** Such as http://127.0.0.1:3080. */
  readonly server: string | URL
  /** The token of the client. */
  readonly token?: string | undefined
  /** The organization in which the administrator of a gateway acts. Default: that of the token. */
  readonly organization?: string | undefined
  /** Default: the global one. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Answer>
  /** Opens consoles. Default: the global one, which Node has since version 22. */
  readonly WebSocket?: WebSocketMaker
  /** Says why `fetch` failed. Default: the message of the innermost cause. */
  readonly reasonOf?: (error: unknown) => string
}

/** `METHOD /path`, such as `GET /v2/projects/{project_id}`. */
export type CallName = keyof Calls
/** Calls whose answer is a stream of bytes. */
export type StreamName = { [K in CallName]: Calls[K]['reply'] extends ReadableStream ? K : never }[CallName]
export type Reply<K extends CallName> = Calls[K]['reply']

/** What a call takes: the members that its declaration has. */
export type CallInput<K extends CallName> = Omit<Calls[K], 'reply'> & {
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
  /** Timeout, ms; default: 10 minutes. Of a stream: until it begins. */
  readonly timeoutMs?: number
  /** Statuses beside 2xx that are not errors. */
  readonly accepts?: readonly number[]
}
/** The input may be absent when none of its members is needed. */
type Input<K extends CallName> = object extends CallInput<K> ? [input?: CallInput<K>] : [input: CallInput<K>]

/** The members of every input, without the types of a call. */
interface AnyInput {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number | undefined>>
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
  readonly accepts?: readonly number[]
}

/**
 * A client of a service. Every method rejects with PatchbayError, or with the reason of the caller's signal. What the caller must correct,
 * such as an option that is missing, is a TypeError.
 */
export class Patchbay {
  /** Origin of the service. */
  readonly server: string
  readonly #options: PatchbayOptions

  constructor(options: PatchbayOptions) {
    this.server = new URL(options.server).origin
    this.#options = options
  }

  /** A call with a JSON answer, or none. */
  async call<K extends Exclude<CallName, StreamName>>(name: K, ...[input]: Input<K>): Promise<Reply<K>> {
    const response = await this.#send(name, input as AnyInput)
    const text = await response.text().catch((cause) => {
      throw this.#lost('lost', `ended its answer early: ${this.#reasonOf(cause)}`, cause)
    })
    const value = text === '' ? undefined : jsonIn(text)
    const isWhole = text === '' || (typeof value === 'object' && value !== null)
    if (!isWhole || (response.ok && listCalls.has(name) !== Array.isArray(value)))
      throw this.#notPatchbay(response.status)
    return value as Reply<K>
  }

  /** A call with a stream of bytes as its answer. */
  async stream<K extends StreamName>(name: K, ...[input]: Input<K>): Promise<ReadableStream<Uint8Array>> {
    return (await this.#send(name, input as AnyInput)).body ?? new Blob([]).stream()
  }

  /** A call whose status and headers matter; the caller reads or cancels the body. */
  async answer<K extends CallName>(name: K, ...[input]: Input<K>): Promise<Answer> {
    return this.#send(name, input as AnyInput)
  }

  /**
   * The events of a project, or of all projects; the `action` of a line tells what its `event` is. The feed resumes after a lost
   * connection; a line `resync` then says that events were missed. It ends with the signal, and rejects when the project is gone.
   */
  feed(options: FeedOptions & { readonly project: string }): AsyncGenerator<LabLine, void, undefined>
  feed(options?: FeedOptions & { readonly project?: never }): AsyncGenerator<ServiceLine, void, undefined>
  feed(options?: FeedOptions): AsyncGenerator<FeedLine, void, undefined>
  feed(options: FeedOptions = {}): AsyncGenerator<FeedLine, void, undefined> {
    return feedLines((input) => this.#feed(options.project, input), options)
  }

  /** The console of a node as streams of bytes: the scroll-back (its last `lines`; none when `replay` is false), then live. */
  async console(
    { project, node }: { readonly project: string; readonly node: string },
    {
      replay = true,
      lines,
      name,
      terminal,
      signal,
    }: {
      readonly replay?: boolean
      readonly lines?: number
      readonly name?: string
      /** What a request for `console/size` calls the terminal of a further console. */
      readonly terminal?: string
      readonly signal?: AbortSignal
    } = {},
  ): Promise<ByteStreams> {
    // As a property: it is not defined where there is none.
    const { WebSocket: Maker = globalThis.WebSocket as WebSocketMaker | undefined } = this.#options
    if (Maker === undefined)
      throw new TypeError(
        'WebSocket: this runtime has none (Node has it from version 22): pass one as the option WebSocket, for example from the package ws',
      )
    const path = pathOf`/v2/projects/${project}/nodes/${node}/console/ws`
    // A browser's websocket cannot send headers: a ticket stands for them.
    const { token } = this.#options
    const ticket = token === undefined ? undefined : (await this.call('POST /v2/compute/tickets')).ticket
    const query = search({ ticket, replay: replay ? undefined : '0', lines, name, terminal })
    const url = `${this.server.replace(/^http/, 'ws')}${path}${query}`
    const lost = (what: string) => this.#lost('lost', what)
    return openByteStreams(new Maker(url), { lost, signal })
  }

  #feed(project: string | undefined, { since, signal }: { since: number | undefined; signal: AbortSignal }) {
    const query = search({ since })
    const path = project === undefined ? '/v2/notifications' : pathOf`/v2/projects/${project}/notifications`
    return this.#fetch('GET', path + query, { signal })
  }

  #send(name: CallName, input: AnyInput = {}): Promise<Answer> {
    const [method = '', path = ''] = name.split(' ')
    const filled = path.replace(/\{(\w+)\}/g, (_, key: string) => {
      const value = input.params?.[key] ?? ''
      // Slashes in the path of a file are not encoded.
      return key === 'path' || key === 'filename'
        ? value
            .split('/')
            .map((segment) => pathOf`${segment}`)
            .join('/')
        : pathOf`${value}`
    })
    return this.#fetch(method, filled + search(input.query ?? {}), input)
  }

  async #fetch(
    method: string,
    path: string,
    { body, headers, signal, timeoutMs = defaultTimeoutMs, accepts = [] }: AnyInput,
  ): Promise<Answer> {
    const { token, organization, fetch: ask = fetch } = this.#options
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(), timeoutMs)
    const sent = bodyOf(body)
    const init: RequestInit & { duplex?: 'half' } = {
      method,
      headers: {
        ...sent.headers,
        ...(token !== undefined && { authorization: bytesOfText(`Bearer ${token}`) }),
        ...(organization !== undefined && { [organizationHeader]: organization }),
        ...headers,
      },
      ...(sent.body !== undefined && { body: sent.body, duplex: 'half' }),
      redirect: 'manual',
      signal: signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]),
    }
    let response: Answer
    try {
      response = await ask(this.server + path, init)
    } catch (cause) {
      signal?.throwIfAborted()
      throw late.signal.aborted
        ? this.#lost('lost', `did not answer within ${timeoutMs / 1000} s`, cause)
        : this.#lost('unreachable', `cannot be reached: ${this.#reasonOf(cause)}`, cause)
    } finally {
      clearTimeout(timer)
    }
    if (response.ok || accepts.includes(response.status)) return response
    throw await this.#refused(response)
  }

  /** The error of an answer. */
  async #refused(response: Answer): Promise<PatchbayError> {
    const { status, headers } = response
    const said = jsonIn(await response.text().catch(() => ''))
    const answer = (typeof said === 'object' && said !== null ? said : {}) as Readonly<Record<string, unknown>>
    const code = headers.get(errorHeader)
    if (code === null || typeof answer.message !== 'string') return this.#notPatchbay(status)
    return new PatchbayError(answer.message, { status, code, answer })
  }

  #notPatchbay(status: number): PatchbayError {
    return this.#lost('not-patchbay', `sent an unexpected response (status ${status}); is it a Patchbay service?`)
  }

  #reasonOf(error: unknown): string {
    return (this.#options.reasonOf ?? causeOf)(error)
  }

  #lost(code: keyof typeof lostCodes, what: string, cause?: unknown): PatchbayError {
    return new PatchbayError(`The service ${this.server} ${what}`, { status: 0, code, cause })
  }
}

/** The body of a request: bytes as they are, everything else as JSON. */
function bodyOf(body: unknown): {
  headers?: Readonly<Record<string, string>>
  body?: NonNullable<RequestInit['body']>
} {
  if (body === undefined) return {}
  if (body instanceof ReadableStream || body instanceof Blob || body instanceof Uint8Array || typeof body === 'string')
    return { body: body as NonNullable<RequestInit['body']>, headers: { 'content-type': 'application/octet-stream' } }
  return { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
}
