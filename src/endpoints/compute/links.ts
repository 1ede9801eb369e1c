import { type TObject, Type } from '@sinclair/typebox'
import type { NodeAgent, PortRef } from '../../host-agent.ts'
import { badRequest, conflict } from '../../lib/errors/api-error.ts'
import { nearest } from '../../lib/text/nearest-word.ts'
import { ownLinkHeader } from '../../model/access/caller.ts'
import type { Identity } from '../../model/access/identity.ts'
import { kindOf, type NodeKindName, type NodeRef } from '../../model/kinds/node.ts'
import { Filters } from '../../model/schema/filters.ts'
import { LinkNio, Nio, NioState, nioSchemas, nioTypes } from '../../model/schema/nio.ts'
import { type InputWithReadOnly, withReadOnly } from '../../model/validation/read-only-members.ts'
import { insidePeer, type Peer } from '../../server/access/peer.ts'
import { created, type Endpoint, endpoint, ok } from '../../server/http/endpoint.ts'
import { portParams, portRefOf } from '../../server/http/params.ts'
import { noContentAfter } from './no-content.ts'
import type { NodeForm } from './node-form.ts'

/** The body of a NIO request, before its type is known. */
const anyNio = Type.Record(Type.String(), Type.Unknown())
/** The input of a NIO of that type: its settings, and the read-only state of its link. */
function inputOf(type: keyof typeof nioSchemas): InputWithReadOnly {
  const shown = NioState.anyOf.find(({ properties }) => properties.type.const === type)
  if (shown === undefined) throw new Error(`no NIO of the type ${type} is shown`)
  return withReadOnly(nioSchemas[type] as TObject, shown)
}
const inputs = Object.entries(nioSchemas).map(([type, { $id }]) => ({
  $id,
  schema: inputOf(type as keyof typeof nioSchemas).schema as TObject,
}))
const NioInput = Type.Union(
  inputs.map(({ $id, schema }) => ({ ...schema, $id: `${$id}Input` })),
  { $id: 'NioInput', description: 'The NIO that a port is attached to' },
)
const NioChange = Type.Union(
  inputs.map(({ $id, schema }) => Type.Partial(schema, { additionalProperties: false, $id: `${$id}Change` })),
  { $id: 'NioChange', description: 'Changes to a NIO; absent members keep their values' },
)
const noSuchPort = 'There is no such node, adapter, port or device'
const nothingAttached = `${noSuchPort}, or nothing is attached`
const notAllowed = 'The device or the host may not be used outside local mode'
const taken = 'The local port or the device is taken, or a privilege is missing'

/** Whether the NIO is that of a link which this service or its gateway makes, see `ownLinkHeader`. */
const isOwnLink = ({ headers }: Request, { role }: Identity, peer: Peer): boolean =>
  headers.has(ownLinkHeader) && (role === 'admin' || peer === insidePeer)

/** {node}/adapters/{adapter_number}/ports/{port_number}/nio: the same in both API versions and for every kind. */
export function linkEndpoints({ version, path: node, kind, tag, params, ref: nodeOf }: NodeForm): readonly Endpoint[] {
  const portPath = `${node}/adapters/{adapter_number}/ports/{port_number}`
  const all = { tag, params: Type.Object({ ...params.properties, ...portParams }) }
  const port = { path: `${portPath}/nio`, ...all }
  return [
    endpoint({
      ...port,
      method: 'GET',
      summary: 'Read the NIO of a port, with the state of its link, its counters and its capture',
      replies: { 200: { description: 'The NIO', schema: NioState } },
      errors: { 404: nothingAttached },
      handle: async ({ params }, { agent }) => ok(await agent.nodes.nioState(nodeOf(params), portRefOf(params))),
    }),
    endpoint({
      ...port,
      method: 'POST',
      summary: 'Attach a NIO to a port, in place of its current one',
      body: anyNio,
      bodyShown: NioInput,
      replies: { 201: { description: 'Attached', schema: Nio } },
      errors: { 403: notAllowed, 404: noSuchPort, 409: taken },
      handle: async ({ params, body, request }, { agent, identity, peer }) => {
        const origin = isOwnLink(request, identity, peer) ? 'service' : 'client'
        return created(await agent.nodes.attachNio(nodeOf(params), portRefOf(params), await nioOf(body, kind), origin))
      },
    }),
    endpoint({
      ...port,
      method: 'PUT',
      summary: 'Change the NIO of a port in place; absent members keep their values',
      body: anyNio,
      bodyShown: NioChange,
      replies: { 201: { description: 'Changed', schema: Type.Union([Nio, LinkNio]) } },
      errors: { 403: notAllowed, 404: nothingAttached, 409: taken },
      async handle({ params, body }, { agent }) {
        const node = nodeOf(params)
        const port = portRefOf(params)
        const whole = isWhole(body, kind) ? body : { ...(await attached(agent.nodes, node, port, body)), ...body }
        if (whole.type === 'nio_link') return created(await unchangedLink(agent.nodes, node, port, body))
        return created(await agent.nodes.updateNio(node, port, await nioOf(whole, kind)))
      },
    }),
    endpoint({
      ...port,
      method: 'DELETE',
      summary: 'Remove the NIO of a port',
      replies: { 204: { description: 'Removed' } },
      errors: { 404: nothingAttached },
      handle: ({ params }, { agent }) => noContentAfter(agent.nodes.detachNio(nodeOf(params), portRefOf(params))),
    }),
    ...(version === 'v1'
      ? []
      : [
          endpoint({
            method: 'POST',
            path: `${portPath}/check_filters`,
            ...all,
            summary: 'Check filters for a port without applying them; the error says what is wrong, and where',
            body: Filters,
            replies: { 204: { description: 'A NIO of the port can have these filters' } },
            errors: { 404: noSuchPort, 409: 'The compute cannot compile a filter; the message says what it lacks' },
            handle: ({ params, body }, { agent }) =>
              noContentAfter(agent.nodes.checkFilters(nodeOf(params), portRefOf(params), body)),
          }),
        ]),
  ]
}

/** The link of a port, when the body is what a read has shown. 409 for a change: the link has to be changed instead. */
async function unchangedLink(nodes: NodeAgent, node: NodeRef, port: PortRef, body: object): Promise<LinkNio> {
  const nio = await nodes.nioState(node, port)
  const isSame = Object.entries(body).every(
    ([name, value]) => !(name in LinkNio.properties) || nio[name as 'type'] === value,
  )
  if (nio.type === 'nio_link' && isSame) {
    const { type, link_id, suspend } = nio
    if (Object.keys(body).every((name) => name in nio)) return { type, link_id, ...(suspend === true && { suspend }) }
  }
  throw conflict(
    nio.type === 'nio_link'
      ? `The port is joined by the link ${nio.link_id}: change that, or POST a NIO, which takes the port over`
      : 'type: nio_link is read-only; join two ports with PUT .../links/ and a new id',
  )
}

/** Whether a body has all required members of its type; else the attached NIO supplies them. */
function isWhole({ type, ...rest }: Record<string, unknown>, kind: NodeKindName): boolean {
  const wanted = kindOf(kind).nioTypes.find((it) => it === type)
  if (wanted === undefined) return type !== undefined
  return (nioSchemas[wanted].required ?? []).every((name) => name === 'type' || Object.hasOwn(rest, name))
}

/** The attached NIO; `{}` when it is of another type than the body. 404. */
async function attached(
  nodes: NodeAgent,
  node: NodeRef,
  port: PortRef,
  { type }: Record<string, unknown>,
): Promise<object> {
  const nio = await nodes.nioState(node, port)
  return type === undefined || nio.type === type ? nio : {}
}

const articleOf = (word: string) => (/^[aeiou]/.test(word) ? 'an' : 'a')

/** The NIO in a body. 400 names the types that the kind takes, or the wrong field. */
async function nioOf(body: Record<string, unknown>, kind: NodeKindName): Promise<Nio> {
  const { type } = body
  if (type === 'nio_link')
    throw badRequest('type: nio_link is read-only; join two ports with PUT .../links/ and a new id')
  const takes = kindOf(kind).nioTypes
  const wanted = takes.find((it) => it === type)
  if (wanted !== undefined) return inputOf(wanted).read(body) as Promise<Nio>
  const isKnown = typeof type === 'string' && (nioTypes as readonly string[]).includes(type)
  const guess =
    typeof type === 'string' && !isKnown ? (nearest(type, takes) ?? nearest(`nio_${type}`, takes)) : undefined
  const fault =
    type === undefined
      ? 'missing'
      : isKnown
        ? `${articleOf(kind)} ${kind} node does not support ${type}`
        : `unknown NIO type ${JSON.stringify(type).slice(0, 40)}`
  const meant = guess === undefined ? '' : `, did you mean ${guess}?`
  throw badRequest(`type: ${fault}, expected one of ${takes.join(', ')}${meant}`)
}
