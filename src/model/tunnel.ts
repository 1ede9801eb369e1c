import { Kind, type Static, Type, TypeRegistry } from '@sinclair/typebox'
import { ComputeId } from './compute.ts'

/** Version of the protocol of `src/compute/tunnel`. */
export const tunnelProtocol = 1

const plain = '^[^\\u0000-\\u001f\\u007f]*$'
const text = (most: number) => Type.String({ maxLength: most, pattern: plain })

/** Names and values of headers. */
type Headers = [name: string, value: string][]

const areHeaders = (value: unknown): value is Headers =>
  Array.isArray(value) && value.length <= 200 && value.every(isHeader)

const isPlain = new RegExp(plain)
const isHeader = (header: unknown): boolean =>
  Array.isArray(header) &&
  header.length === 2 &&
  typeof header[0] === 'string' &&
  header[0].length <= 255 &&
  isPlain.test(header[0]) &&
  typeof header[1] === 'string' &&
  header[1].length <= 65_536

/** Most credit of a stream, bytes: what was sent may wait in a websocket that is not read, where not every runtime has a limit of its own. */
export const largestWindow = 2 ** 22

/** The limits of an end: waiting bytes of a stream, and open streams. */
export type TunnelLimits = Static<typeof TunnelLimits>
export const TunnelLimits = Type.Object({
  window: Type.Integer({ minimum: 16_384, maximum: largestWindow }),
  streams: Type.Integer({ minimum: 1, maximum: 2 ** 20 }),
})

/** The members that the HELLO of every version has. */
export const AnyHello = Type.Object({ protocol: Type.Integer() })

/** The first frame of a gateway. */
export type GatewayHello = Static<typeof GatewayHello>
export const GatewayHello = Type.Object({
  protocol: Type.Literal(tunnelProtocol),
  version: text(100),
  ...TunnelLimits.properties,
  /** Whether it takes ANSWER frames. */
  answers: Type.Optional(Type.Boolean()),
  /** Whether it takes BATCH frames: a gateway those of ANSWERs, a compute those of OPENs. */
  batches: Type.Optional(Type.Boolean()),
})

/** The first frame of a compute. */
export type ComputeHello = Static<typeof ComputeHello>
export const ComputeHello = Type.Object({
  ...Type.Omit(GatewayHello, ['answers']).properties,
  compute_id: ComputeId,
  name: Type.Intersect([text(255), Type.String({ minLength: 1 })]),
})

/** A request, without its body. */
export interface TunnelRequest {
  /** `^[A-Z]{1,20}$` */
  readonly method: string
  /** It begins with a slash, and has printable ASCII characters without spaces; at most 16 KiB. */
  readonly path: string
  readonly headers: Headers
  /** Whether a body follows. */
  readonly body: boolean
}

/** An answer, without its body. 101: the stream is a websocket from here on. */
export interface TunnelAnswer {
  /** 101 to 599. */
  readonly status: number
  readonly headers: Headers
  readonly body: boolean
}

// Kinds of their own: every request has one of each, and the general check takes 1 us for each member and text.
export const TunnelRequest = Type.Unsafe<TunnelRequest>({ [Kind]: 'TunnelRequest' })
export const TunnelAnswer = Type.Unsafe<TunnelAnswer>({ [Kind]: 'TunnelAnswer' })
TypeRegistry.Set('TunnelRequest', (_, value) => isRequest(value))
TypeRegistry.Set('TunnelAnswer', (_, value) => isAnswer(value))

const methodForm = /^[A-Z]{1,20}$/
const pathForm = /^\/[\u0021-\u007e]*$/

function isRequest(value: unknown): boolean {
  const { method, path, headers, body } = membersOf(value)
  const isTarget = typeof path === 'string' && path.length <= 16_384 && pathForm.test(path)
  const isMethod = typeof method === 'string' && methodForm.test(method)
  return isMethod && isTarget && areHeaders(headers) && typeof body === 'boolean'
}

function isAnswer(value: unknown): boolean {
  const { status, headers, body } = membersOf(value)
  const isStatus = typeof status === 'number' && Number.isInteger(status) && status >= 101 && status <= 599
  return isStatus && areHeaders(headers) && typeof body === 'boolean'
}

const membersOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}

/** How a websocket was closed. */
export type TunnelClose = Static<typeof TunnelClose>
export const TunnelClose = Type.Object({
  code: Type.Integer({ minimum: 1000, maximum: 4999 }),
  reason: Type.String({ maxLength: 123 }),
})

/** Why a stream was reset. */
export const TunnelReset = Type.Object({ reason: Type.String({ maxLength: 1000 }) })
