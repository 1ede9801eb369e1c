import { Type } from '@sinclair/typebox'
import { badRequest } from '../errors.ts'
import { check } from '../http/validate.ts'
import { Nio, nioTypes } from '../model/nio.ts'
import type { NodeKindName } from '../model/node.ts'

/** NIO types that each kind takes. */
const accepted: Readonly<Record<NodeKindName, readonly string[]>> = { pc: ['nio_udp'] }

/** The body of a NIO request, as far as it is known before its type was looked at. */
export const anyNio = Type.Record(Type.String(), Type.Unknown())

/** The NIO in a body; 400 that names the types the kind takes, or the field that is wrong. */
export function nioOf(body: Record<string, unknown>, kind: NodeKindName): Nio {
  const { type } = body
  const takes = accepted[kind]
  if (typeof type !== 'string' || !takes.includes(type)) {
    const known = typeof type === 'string' && (nioTypes as readonly string[]).includes(type)
    const reason = known
      ? `a ${kind} node does not take ${type}`
      : `unknown NIO type ${JSON.stringify(type)?.slice(0, 40) ?? 'missing'}`
    throw badRequest(`type: ${reason}, expected one of ${takes.join(', ')}`)
  }
  return check(Nio, body)
}
