import { Kind, type Static, Type, TypeRegistry } from '@sinclair/typebox'
import { ComputeId } from './compute.ts'

/** Version of the protocol of `src/tunnel`. */
export const tunnelProtocol = 1

const plain = '^[^\\u0000-\\u001f\\u007f]*$'
const text = (most: number) => Type.String({ maxLength: most, pattern: plain })

/** Names and values of headers. A kind of its own: every request has some, and the general check takes 1 us for each text. */
const Headers = Type.Unsafe<[name: string, value: string][]>({ [Kind]: 'TunnelHeaders' })
TypeRegistry.Set('TunnelHeaders', (_, value) => Array.isArray(value) && value.length <= 200 && value.every(isHeader))

const isPlain = new RegExp(plain)
const isHeader = (header: unknown): boolean =>
  Array.isArray(header) &&
  header.length === 2 &&
  typeof header[0] === 'string' &&
  header[0].length <= 255 &&
  isPlain.test(header[0]) &&
  typeof header[1] === 'string' &&
  header[1].length <= 65_536

/** The limits of an end: waiting bytes of a stream, and open streams. */
export type TunnelLimits = Static<typeof TunnelLimits>
export const TunnelLimits = Type.Object({
  window: Type.Integer({ minimum: 16_384, maximum: 2 ** 30 }),
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
})

/** The first frame of a compute. */
export type ComputeHello = Static<typeof ComputeHello>
export const ComputeHello = Type.Object({
  ...Type.Omit(GatewayHello, ['answers']).properties,
  compute_id: ComputeId,
  name: Type.Intersect([text(255), Type.String({ minLength: 1 })]),
})

/** A request, without its body. */
export type TunnelRequest = Static<typeof TunnelRequest>
export const TunnelRequest = Type.Object({
  method: Type.String({ pattern: '^[A-Z]{1,20}$' }),
  path: Type.String({ maxLength: 16_384, pattern: '^/[\\u0021-\\u007e]*$' }),
  headers: Headers,
  /** Whether a body follows. */
  body: Type.Boolean(),
})

/** An answer, without its body. 101: the stream is a websocket from here on. */
export type TunnelAnswer = Static<typeof TunnelAnswer>
export const TunnelAnswer = Type.Object({
  status: Type.Integer({ minimum: 101, maximum: 599 }),
  headers: Headers,
  body: Type.Boolean(),
})

/** How a websocket was closed. */
export type TunnelClose = Static<typeof TunnelClose>
export const TunnelClose = Type.Object({
  code: Type.Integer({ minimum: 1000, maximum: 4999 }),
  reason: Type.String({ maxLength: 123 }),
})

/** Why a stream was reset. */
export const TunnelReset = Type.Object({ reason: Type.String({ maxLength: 1000 }) })
