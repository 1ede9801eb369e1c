import type { ComputeAnswer } from '../../../src/compute/remote/transport.ts'
import { isolateHeader } from './feed-message.ts'
import { wholeBody } from './fixed-length-bodies.ts'
import { packedHeader, packHeaders } from './packed-headers.ts'
import type { EncodedError } from './rpc-error.ts'

/*
 * How a request for a compute passes from its sender (`ObjectTunnels`) to the object of the compute, and the answer back: unchanged, by
 * `fetch` of the object.
 */

export const objectOrigin = 'http://object'
/** Before the path of a request for the compute. */
export const askOrigin = `${objectOrigin}/ask`
/** The same for a request with packed headers. An object of an earlier version refuses it. */
export const packedOrigin = `${objectOrigin}/joint`
/** The path of a tunnel that opens. */
export const joinPath = '/join'
/** The path of a feed. */
export const feedsPath = '/feeds'

/** Says that the answer may be idle without a limit; see `Outgoing.longLived`. */
export const longLivedHeader = 'x-patchbay-rests'
/** Says that the object must record the digest of an image in the body; without it, the sender does that. */
export const watchHeader = 'x-patchbay-watch'
/** The kind of fault, in place of an answer of the compute. */
const faultHeader = 'x-patchbay-fault'

/** Why there is no answer. `absent`: the compute did not get the request; `lost`: the tunnel ended; `refused`: an error for the client. */
export type TunnelFault =
  | { readonly kind: 'absent' | 'lost'; readonly message: string }
  | ({ readonly kind: 'refused' } & EncodedError)

/** Headers that are about the call of the object, and not for the compute. */
const ofCall: ReadonlySet<string> = new Set([
  ...[isolateHeader, longLivedHeader, watchHeader, packedHeader],
  ...['upgrade', 'connection', 'host'],
])

/** The headers for the compute in a request whose headers are not packed. */
export function headersForCompute({ headers }: Request): Record<string, string> {
  const found: Record<string, string> = {}
  for (const [name, value] of headers) if (!ofCall.has(name) && !name.startsWith('sec-websocket-')) found[name] = value
  return found
}

/** The answer of a compute for the sender. */
export function encodeAnswer(answer: ComputeAnswer): Response {
  // As an object, since each name occurs once and a list of headers takes workerd four times as long. A compute must not send `faultHeader`.
  const headers: Record<string, string> = {}
  for (const [name, value] of answer.headers.entries?.() ?? []) if (name !== faultHeader) headers[name] = value
  const body = answer.whole ?? wholeBody(answer.body, answer.headers)
  return new Response(body, { status: answer.status, headers, encodeBody: 'manual' })
}

/** The same with packed headers. workerd decodes a body by `Content-Encoding` alone, and so for an isolate, too. */
export function encodePackedAnswer({ status, headers, whole, body }: ComputeAnswer): Response {
  const own: Record<string, string> = { [packedHeader]: packHeaders(headers.entries?.() ?? []) }
  const encoding = headers.get('content-encoding')
  if (encoding !== null) own['content-encoding'] = encoding
  return new Response(whole ?? wholeBody(body, headers), { status, headers: own, encodeBody: 'manual' })
}

export function encodeFault(fault: TunnelFault): Response {
  return new Response(JSON.stringify(fault), { status: 502, headers: { [faultHeader]: fault.kind } })
}

/** The fault in an answer of the object; undefined for an answer of the compute. */
export function decodeFault(answer: Response): Promise<TunnelFault> | undefined {
  return answer.headers.has(faultHeader) ? answer.json() : undefined
}
