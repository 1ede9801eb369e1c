import { lookup } from 'node:dns'
import {
  type ClientRequest,
  type ClientRequestArgs,
  Agent as HttpAgent,
  request as http,
  type IncomingMessage,
} from 'node:http'
import { Agent as HttpsAgent, request as https } from 'node:https'
import type { LookupFunction } from 'node:net'
import { connectHost, isForbidden } from '../../../src/client/address.ts'
import {
  bodiless,
  type ComputeAddress,
  ConnectionLost,
  type Outgoing,
  raceMs,
  type Transport,
} from '../../../src/client/transport.ts'
import { webStream } from '../system/web-stream.ts'

export const connectMs = 20_000
/** Connections to a compute that wait for another request: a gateway's clients come together. */
const maxIdle = 64

/**
 * Requests to computes by node:http. Not `fetch`: that ends a body that brings nothing for five minutes, cannot say whether a
 * compute was reached, and looks names up where an address that is forbidden cannot be seen.
 */
export function httpTransport(): { readonly transport: Transport; close(): void } {
  const options = { keepAlive: true, maxFreeSockets: maxIdle }
  const agents = { http: new HttpAgent(options), https: new HttpsAgent(options) }
  const transport: Transport = (address) => {
    const target = targetOf(address)
    return async (outgoing) => {
      const begin = (): ClientRequest => {
        const { method, path, headers, signal } = outgoing
        const all: ClientRequestArgs = { ...target, method, path, headers: { ...headers }, signal }
        return address.protocol === 'https'
          ? https({ ...all, agent: agents.https })
          : http({ ...all, agent: agents.http })
      }
      return answered(begin, outgoing, address)
    }
  }
  return {
    transport,
    close() {
      agents.http.destroy()
      agents.https.destroy()
    },
  }
}

async function answered(begin: () => ClientRequest, outgoing: Outgoing, address: ComputeAddress): Promise<Response> {
  for (let attempt = 0; ; attempt++) {
    const began = performance.now()
    const request = begin()
    const isReached = watchConnection(request, address)
    try {
      return await exchange(request, outgoing)
    } catch (error) {
      if (outgoing.signal.aborted) throw outgoing.signal.reason
      // A server may end an idle connection just when it is used again. Whether it has read the request is not known, so only
      // what changes nothing is asked again: a second start or reload would act twice (RFC 9110, section 9.2.2).
      const mayBeUnread = request.reusedSocket && performance.now() - began < raceMs
      if (mayBeUnread && isSafe(outgoing) && attempt === 0) continue
      const { message } = error as Error
      throw isReached() ? new ConnectionLost(message, { cause: error }) : error
    }
  }
}

const isSafe = ({ method, body }: Outgoing): boolean => (method === 'GET' || method === 'HEAD') && body === null

/** Bounds the time until there is a connection; the result says whether there was one. */
export function watchConnection(request: ClientRequest, { protocol }: ComputeAddress): () => boolean {
  let isReached = false
  const reached = () => {
    isReached = true
    clearTimeout(timer)
  }
  const timer = setTimeout(() => request.destroy(new Error(`no connection within ${connectMs / 1000} s`)), connectMs)
  request.once('close', () => clearTimeout(timer))
  request.once('socket', (socket) => {
    if (request.reusedSocket || !socket.connecting) reached()
    else socket.once(protocol === 'https' ? 'secureConnect' : 'connect', reached)
  })
  return () => isReached
}

function exchange(request: ClientRequest, { method, body }: Outgoing): Promise<Response> {
  return new Promise((resolve, reject) => {
    // It stays: an error after the answer began is told by the answer's body.
    request.on('error', reject)
    request.once('close', () => reject(new Error('the connection ended without an answer')))
    request.once('response', (message) => {
      // An answer before all was sent is a refusal: what is left of the body is of no use.
      message.once('end', () => void (request.writableFinished || request.destroy()))
      try {
        resolve(responseOf(message, method))
      } catch (error) {
        request.destroy(error as Error)
      }
    })
    if (body === null || body instanceof Uint8Array) request.end(body ?? undefined)
    else {
      // By itself Node frames no body of a DELETE whose length is not known.
      request.useChunkedEncodingByDefault = true
      void pump(body, request)
    }
  })
}

/** What node:http is told of where a compute is. */
export const targetOf = ({ host, port }: ComputeAddress) => ({ host: connectHost(host), port, lookup: guarded(lookup) })

export function responseOf(message: IncomingMessage, method: string): Response {
  const headers = new Headers()
  for (let index = 0; index + 1 < message.rawHeaders.length; index += 2) {
    headers.append(message.rawHeaders[index] ?? '', message.rawHeaders[index + 1] ?? '')
  }
  const status = message.statusCode ?? 0
  const isBodiless = method === 'HEAD' || bodiless.has(status)
  const response = new Response(isBodiless ? null : webStream(message), { status, headers })
  if (isBodiless) message.resume()
  return response
}

/** Sends a body. When the request ends first the rest of it is left: to cancel it would end the client's connection, too. */
async function pump(body: ReadableStream<Uint8Array>, request: ClientRequest): Promise<void> {
  const reader = body.getReader()
  let wake = () => {}
  const ended = () => {
    reader.releaseLock()
    wake()
  }
  request.once('close', ended)
  request.on('drain', () => wake())
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      if (request.destroyed) return
      if (request.write(value)) continue
      await new Promise<void>((resolve) => {
        wake = resolve
      })
      if (request.destroyed) return
    }
    request.end()
  } catch (error) {
    if (!request.destroyed) request.destroy(error as Error)
  } finally {
    request.off('close', ended)
  }
}

/** As usual, without the addresses that no compute can have: a name may lead to any. */
export const guarded =
  (lookUp: typeof lookup): LookupFunction =>
  (hostname, options, callback) => {
    lookUp(hostname, { ...options, all: true }, (error, found) => {
      if (error !== null) return callback(error, '')
      const allowed = found.filter(({ address }) => !isForbidden(address))
      const [first] = allowed
      if (first === undefined) {
        return callback(new Error(`${hostname} leads to an address that no compute can have`), '')
      }
      if (options.all === true) callback(null, allowed)
      else callback(null, first.address, first.family)
    })
  }
