import { type Static, type TObject, Type } from '@sinclair/typebox'
import { badRequest } from '../errors.ts'
import { created, type Endpoint, endpoint, noContent, ok } from '../http/endpoint.ts'
import { portOf, portParams } from '../http/params.ts'
import { check } from '../http/validate.ts'
import { Nio, NioState, nioSchemas, nioTypes } from '../model/nio.ts'
import { type NodeKindName, type NodeRef, nioTypesOf } from '../model/node.ts'

/** The body of a NIO request, as far as it is known before its type was looked at. */
const anyNio = Type.Record(Type.String(), Type.Unknown())
const noSuchPort = 'There is no such node, adapter, port or device'
const nothingAttached = `${noSuchPort}, or nothing is attached`
const taken = 'The local port or the device is taken, or a privilege is missing'

/** {node}/adapters/{adapter_number}/ports/{port_number}/nio: the same in both faces and for every kind. */
export function linkEndpoints<P extends TObject>(
  node: string,
  tag: string,
  params: P,
  kind: NodeKindName,
  ref: (params: Static<P>) => NodeRef,
): readonly Endpoint[] {
  const path = `${node}/adapters/{adapter_number}/ports/{port_number}/nio`
  const withPort = Type.Object({ ...params.properties, ...portParams })
  // The parameters of the node are among those of its ports.
  const nodeOf = (all: unknown) => ref(all as Static<P>)
  return [
    endpoint({
      method: 'GET',
      path,
      tag,
      summary: 'Read the NIO of a port: what is known of its link, its counters and its capture',
      params: withPort,
      replies: { 200: { description: 'The NIO', schema: NioState } },
      errors: { 404: nothingAttached },
      handle: async ({ params }, { agent }) => ok(await agent.nodes.nioState(nodeOf(params), portOf(params))),
    }),
    endpoint({
      method: 'POST',
      path,
      tag,
      summary: 'Attach a NIO to a port; it replaces the one that is attached',
      params: withPort,
      body: anyNio,
      bodyShown: Nio,
      replies: { 201: { description: 'Attached', schema: Nio } },
      errors: { 404: noSuchPort, 409: taken },
      handle: async ({ params, body }, { agent }) =>
        created(await agent.nodes.attachNio(nodeOf(params), portOf(params), nioOf(body, kind))),
    }),
    endpoint({
      method: 'PUT',
      path,
      tag,
      summary: 'Change the NIO of a port in place; what is not named keeps its value',
      params: withPort,
      body: anyNio,
      bodyShown: Nio,
      replies: { 201: { description: 'Changed', schema: Nio } },
      errors: { 404: nothingAttached, 409: taken },
      handle: async ({ params, body }, { agent }) =>
        created(await agent.nodes.updateNio(nodeOf(params), portOf(params), nioOf(body, kind))),
    }),
    endpoint({
      method: 'DELETE',
      path,
      tag,
      summary: 'Remove the NIO of a port',
      params: withPort,
      replies: { 204: { description: 'Removed' } },
      errors: { 404: nothingAttached },
      async handle({ params }, { agent }) {
        await agent.nodes.detachNio(nodeOf(params), portOf(params))
        return noContent
      },
    }),
  ]
}

const articleOf = (word: string) => (/^[aeiou]/.test(word) ? 'an' : 'a')

/** The NIO in a body; 400 that names the types the kind takes, or the field that is wrong. */
function nioOf(body: Record<string, unknown>, kind: NodeKindName): Nio {
  const { type } = body
  const takes = nioTypesOf[kind]
  const wanted = takes.find((it) => it === type)
  if (wanted !== undefined) return check(nioSchemas[wanted], body)
  const isKnown = typeof type === 'string' && (nioTypes as readonly string[]).includes(type)
  const unknown = `unknown NIO type ${JSON.stringify(type)?.slice(0, 40) ?? 'missing'}`
  throw badRequest(
    `type: ${isKnown ? `${articleOf(kind)} ${kind} node does not take ${type}` : unknown}, expected one of ${takes.join(', ')}`,
  )
}
