import { ApiError, conflict } from '../errors.ts'
import type { Compute, ComputeRecord } from '../model/compute.ts'
import { nameOf } from './address.ts'
import { type Bounds, reasonOf, Session } from './session.ts'
import { ConnectionLost, type Outgoing, type Send, type Transport } from './transport.ts'

export interface RemoteComputeOptions {
  readonly transport: Transport
  readonly version: string
  readonly bounds: Bounds
  readonly upkeep: boolean
  /** Something that is shown is another. */
  readonly changed: (compute: RemoteCompute) => void
  readonly warn: (message: string) => void
}

/** A compute on another machine: its record, its session, and the requests that are under way to it. */
export class RemoteCompute {
  readonly #options: RemoteComputeOptions
  readonly #flights = new Set<AbortController>()
  #record: ComputeRecord
  #send: Send
  #session: Session

  /** `waiting`: why it cannot be connected yet. */
  constructor(record: ComputeRecord, options: RemoteComputeOptions, waiting?: string) {
    this.#options = options
    this.#record = record
    this.#send = senderOf(this.#options.transport, this.#record)
    this.#session = this.#newSession(waiting)
  }

  get record(): ComputeRecord {
    return this.#record
  }

  get name(): string {
    return nameOf(this.#record)
  }

  get state(): 'connected' | 'disconnected' | 'refusing' {
    if (this.#session.isConnected) return 'connected'
    return this.#session.isRefusing ? 'refusing' : 'disconnected'
  }

  show(): Compute {
    const { compute_id, protocol, host, port, user } = this.#record
    const { isConnected, load, capabilities, lastError } = this.#session
    return {
      compute_id,
      name: this.name,
      protocol,
      host,
      port,
      user,
      connected: isConnected,
      cpu_usage_percent: load?.cpu_usage_percent ?? null,
      memory_usage_percent: load?.memory_usage_percent ?? null,
      capabilities,
      last_error: lastError,
    }
  }

  /** See `Session.connect`; what failed before does not count. */
  connect(): Promise<void> {
    this.#session.forgive()
    return this.#session.connect()
  }

  start(delayMs?: number): void {
    this.#session.start(delayMs)
  }

  /** Another record: the session ends and a new one begins. Requests that are under way go on. */
  change(record: ComputeRecord, waiting?: string): void {
    this.#record = record
    this.#send = senderOf(this.#options.transport, this.#record)
    this.#session.close()
    this.#session = this.#newSession(waiting)
    this.#session.start()
  }

  /**
   * Sends a request with the credentials of the compute, connecting first. 409 when it cannot be reached, 503 when that has
   * failed again and again, 504 when the compute goes away before it answers.
   */
  async send(request: Outgoing): Promise<Response> {
    await this.#ready()
    const session = this.#session
    try {
      // Without upkeep nothing would be known that could end it early.
      return await (this.#options.upkeep ? this.#fly(request) : this.#send(request))
    } catch (error) {
      if (error instanceof ApiError || request.signal.aborted) throw error
      const reason = reasonOf(error)
      if (error instanceof ConnectionLost) throw goneAway(this.name, reason, error)
      session.lose(reason)
      throw conflict(`The compute ${this.name} cannot be reached: ${reason}`, { cause: error })
    }
  }

  close(): void {
    this.#session.close()
    this.#giveUp('it was removed')
  }

  /** Sends a request that ends when the compute is found to be gone. */
  async #fly(request: Outgoing): Promise<Response> {
    const flight = new AbortController()
    const leave = () => flight.abort(request.signal.reason)
    const done = () => {
      request.signal.removeEventListener('abort', leave)
      this.#flights.delete(flight)
    }
    request.signal.addEventListener('abort', leave, { once: true })
    if (request.signal.aborted) leave()
    this.#flights.add(flight)
    try {
      return tracked(await this.#send({ ...request, signal: flight.signal }), flight.signal, done)
    } catch (error) {
      done()
      throw flight.signal.aborted ? flight.signal.reason : error
    }
  }

  async #ready(): Promise<void> {
    for (;;) {
      const session = this.#session
      try {
        return await session.ready()
      } catch (error) {
        // The record was changed meanwhile: it may be right now.
        if (session === this.#session) throw error
      }
    }
  }

  #giveUp(reason: string): void {
    for (const flight of this.#flights) flight.abort(goneAway(this.name, reason))
  }

  #newSession(waiting: string | undefined): Session {
    const { version, bounds, upkeep, changed, warn } = this.#options
    return new Session({
      name: this.name,
      send: this.#send,
      version,
      bounds,
      upkeep,
      ...(waiting !== undefined && { waiting }),
      changed: () => changed(this),
      unreachable: (reason) => this.#giveUp(reason),
      warn,
    })
  }
}

const goneAway = (name: string, reason: string, cause?: Error): ApiError =>
  new ApiError(504, `The compute ${name} went away before it had answered: ${reason}`, { cause })

/** Asks a compute with its credentials. */
export function senderOf(transport: Transport, record: ComputeRecord): Send {
  const { user, password } = record
  const send = transport(record)
  const own: Record<string, string> = { 'Accept-Encoding': 'identity' }
  if (user !== null) own.Authorization = `Basic ${base64(`${user}:${password ?? ''}`)}`
  return (request) => send({ ...request, headers: { ...request.headers, ...own } })
}

/** Basic credentials are UTF-8 (RFC 7617). */
const base64 = (text: string): string => btoa(String.fromCharCode(...new TextEncoder().encode(text)))

/** The same answer; `done` is called when its body has ended, however that was, and the signal ends it. */
function tracked(response: Response, signal: AbortSignal, done: () => void): Response {
  const { status, headers } = response
  if (response.body === null) {
    done()
    return response
  }
  const reader = response.body.getReader()
  let abort = () => {}
  const end = () => {
    signal.removeEventListener('abort', abort)
    done()
  }
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        abort = () => {
          end()
          controller.error(signal.reason)
          reader.cancel(signal.reason).catch(() => {})
        }
        signal.addEventListener('abort', abort, { once: true })
        if (signal.aborted) abort()
      },
      async pull(controller) {
        try {
          const { done: isOver, value } = await reader.read()
          if (signal.aborted) return
          if (!isOver) return controller.enqueue(value)
          end()
          controller.close()
        } catch (error) {
          end()
          if (!signal.aborted) controller.error(error)
        }
      },
      async cancel(reason) {
        end()
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
  return new Response(body, { status, headers })
}
