import type { Socket } from '../../lib/http/socket.ts'
import type { ComputeRecord } from '../../model/compute.ts'
import { originOf } from './address.ts'

/** A request to a compute. */
export interface Outgoing {
  readonly method: string
  /** With the query, still percent-encoded; it begins with a slash. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** The headers have its length if that is known. */
  readonly body: ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer> | null
  readonly signal: AbortSignal
  /** The answer may be idle without a limit: a tunnel needs no heartbeats for it. */
  readonly longLived?: boolean
}

/**
 * The answer of a compute, such as a `Response`. A faster runtime gives headers that can only be looked up, and a short body in one
 * piece.
 */
export interface ComputeAnswer {
  readonly status: number
  readonly headers: Pick<Headers, 'get' | 'has'> & { entries?(): Iterable<[string, string]> }
  readonly body: ReadableStream<Uint8Array> | null
  /** A short body in one piece; `body` has the same bytes. */
  readonly whole?: Uint8Array<ArrayBuffer> | undefined
}

/**
 * Sends a request to one compute. Redirects are given back, not followed, and so are the bytes of a body as they came. Rejects
 * when no answer came: with ConnectionLost when the compute had been reached. An abort of the signal also ends the body of
 * the answer. A body that was not taken to its end is left as it is: its sender may still want an answer.
 */
export type Send = (request: Outgoing) => Promise<ComputeAnswer>

/** The address of a compute; the transport of joined computes uses the id only. */
export type ComputeAddress = Pick<ComputeRecord, 'compute_id' | 'protocol' | 'host' | 'port'>
export type Transport = (address: ComputeAddress) => Send

/**
 * Opens a websocket to one compute: it is open, and paused where it can be. An answer: the compute refuses. Rejects as `Send`
 * does. An abort of the signal also breaks the open socket off.
 */
export type OpenSocket = (request: Pick<Outgoing, 'path' | 'headers' | 'signal'>) => Promise<Socket | ComputeAnswer>
export type SocketTransport = (address: ComputeAddress) => OpenSocket

/** Whether a compute refused to open a websocket. */
export const isRefusal = (opened: Socket | ComputeAnswer): opened is ComputeAnswer => 'status' in opened

/** The compute had the request, or a part of it, and the connection ended before an answer came. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost'
}

/** A request on an idle connection that the server has just ended fails within a round trip; this is its limit, ms. */
export const raceMs = 5000

/**
 * Most bytes of the names and values of the headers of an answer. Clients refuse more than 16 KiB (nodejs.org/api/cli.html,
 * `--max-http-header-size`), and this service adds headers of its own.
 */
export const maxHeaderBytes = 8 * 1024

/** The statuses of answers that have no body. */
export const bodiless: ReadonlySet<number> = new Set([204, 205, 304])

/** JSON as the body of a request. */
export function jsonBody(value: unknown): Pick<Outgoing, 'headers' | 'body'> {
  const bytes = new TextEncoder().encode(JSON.stringify(value))
  const headers = { 'Content-Type': 'application/json', 'Content-Length': String(bytes.byteLength) }
  return { headers, body: bytes }
}

/**
 * A `fetch` that sends a request without an effect once more if it fails at once: a server may end an idle connection just when it is
 * used again, and a browser breaks off what is under way when the network of its machine changes.
 */
export const repeatingFetch =
  (fetch: (url: string, init: RequestInit) => Promise<Response>) =>
  (url: string, init: RequestInit): Promise<Response> => {
    const { method = 'GET', body = null, signal } = init
    if ((method !== 'GET' && method !== 'HEAD') || body !== null) return fetch(url, init)
    const began = Date.now()
    return fetch(url, init).catch((error: unknown) => {
      if (signal?.aborted || Date.now() - began > raceMs) throw error
      return fetch(url, init)
    })
  }

/** The transport of runtimes that have only `fetch`. */
export const fetchTransport = (fetch: (url: string, init: RequestInit) => Promise<Response>): Transport => {
  const ask = repeatingFetch(fetch)
  return (address) => {
    const origin = originOf(address)
    return ({ method, path, headers, body, signal }) => {
      const init: RequestInit = { method, headers, signal, redirect: 'manual' }
      return ask(origin + path, body === null ? init : ({ ...init, body, duplex: 'half' } as RequestInit))
    }
  }
}
