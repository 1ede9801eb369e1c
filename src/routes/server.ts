import { Type } from '@sinclair/typebox'
import { conflict } from '../errors/api-error.ts'
import { created, type Endpoint, endpoint, ok } from '../http/endpoint.ts'
import { view } from '../http/params.ts'
import { ticketLifeMs } from '../http/tickets.ts'
import { Capabilities, Diagnosis, Load, NetworkInterface, Ports, Reloaded, Version } from '../model/host.ts'
import { closedSchema, objectSchema } from '../schema/fields.ts'
import { hostFeed } from './host-feed.ts'

const VersionCheck = closedSchema('VersionCheck', 'The version a client wants to be the same', {
  version: Type.String({ minLength: 1, maxLength: 100 }),
  local: Type.Optional(Type.Boolean()),
})
export const Ticket = objectSchema(
  'Ticket',
  'A single-use ticket that a browser sends as ?ticket= when it opens a websocket',
  { ticket: Type.String(), expires_in_ms: Type.Integer({ description: 'Life of the ticket, ms' }) },
)

const versions = ['/v1/version', '/v2/version', '/v2/compute/version'].flatMap((path) => [
  endpoint({
    method: 'GET',
    path,
    owner: 'self',
    tag: 'server',
    summary: 'Version of the service',
    replies: { 200: { description: 'The version', schema: Version } },
    handle: async (_, { agent }) => ok(await agent.host.version()),
  }),
  endpoint({
    method: 'POST',
    path,
    owner: 'self',
    role: 'read',
    tag: 'server',
    summary: 'Check that the version is the same',
    body: VersionCheck,
    replies: { 200: { description: 'It is', schema: Version } },
    errors: { 409: 'It is another one' },
    async handle({ body }, { agent }) {
      const ours = await agent.host.version()
      if (body.version !== ours.version) {
        throw conflict(`version: this service is ${ours.version}, the client is ${body.version}`)
      }
      return ok(ours)
    },
  }),
])

const interfaces = ['/v1/interfaces', '/v2/compute/network/interfaces'].map((path) =>
  endpoint({
    method: 'GET',
    path,
    owner: 'all',
    tag: 'server',
    summary: 'Network interfaces of the host, by name',
    replies: { 200: { description: 'The interfaces', schema: Type.Array(NetworkInterface) } },
    handle: async (_, { agent }) => ok(await agent.host.interfaces()),
  }),
)

const feeds = hostFeed('/v2/compute/notifications', {
  tag: 'server',
  summary: 'Feed of the events of all projects; each line names its project',
})

/** Where single-use tickets are given. */
export const ticketPath = '/v2/compute/tickets'

export const serverEndpoints: readonly Endpoint[] = [
  ...versions,
  ...interfaces,
  ...feeds,
  endpoint({
    method: 'POST',
    path: '/v1/config/reload',
    owner: 'self',
    role: 'admin',
    tag: 'server',
    summary: 'Read the configuration file again',
    bodyKind: 'ignored',
    replies: { 201: { description: 'In force; headers X-Changed and X-Needs-Restart name the keys' } },
    errors: {
      403: 'The service is not in local mode, as no gateway is',
      409: 'The file is not valid; the old values stay',
    },
    async handle(_, { agent }) {
      const { changed, needs_restart } = await agent.host.reloadConfig()
      const headers = {
        'X-Changed': changed.join(','),
        'X-Needs-Restart': needs_restart.join(','),
        'Content-Length': '0',
      }
      return new Response(null, { status: 201, headers })
    },
  }),
  endpoint({
    method: 'POST',
    path: '/v2/compute/config/reload',
    owner: 'self',
    role: 'admin',
    tag: 'server',
    summary: 'Read the configuration file again, and say what changed',
    bodyKind: 'ignored',
    replies: { 200: { description: 'In force', schema: Reloaded } },
    errors: {
      403: 'The service is not in local mode, as no gateway is',
      409: 'The file is not valid; the old values stay',
    },
    handle: async (_, { agent }) => ok(await agent.host.reloadConfig()),
  }),
  endpoint({
    method: 'GET',
    path: '/v2/compute/capabilities',
    owner: 'all',
    tag: 'server',
    summary: 'What this compute can do',
    query: Type.Object(view),
    replies: { 200: { description: 'The capabilities', schema: Capabilities } },
    async handle({ query }, { agent, aliasOf }) {
      const { node_types, ...rest } = await agent.host.capabilities()
      return ok({ ...rest, node_types: query.view === 'full' ? node_types : node_types.map(aliasOf) })
    },
  }),
  endpoint({
    method: 'GET',
    path: '/v2/compute/network/ports',
    owner: 'all',
    tag: 'server',
    summary: 'Port ranges and the ports in use',
    replies: { 200: { description: 'The ports', schema: Ports } },
    handle: async (_, { agent }) => ok(await agent.host.ports()),
  }),
  endpoint({
    method: 'GET',
    path: '/v2/compute/load',
    owner: 'all',
    tag: 'server',
    summary: 'Load of the host',
    replies: { 200: { description: 'The load', schema: Load } },
    handle: async (_, { agent }) => ok(await agent.host.load()),
  }),
  endpoint({
    method: 'GET',
    path: '/v2/compute/doctor',
    owner: 'all',
    tag: 'server',
    summary: 'What labs need on this machine, what was found, and what mends it',
    replies: { 200: { description: 'The findings', schema: Diagnosis } },
    handle: async ({ request }, { agent }) => ok(await agent.host.doctor(request.signal)),
  }),
  endpoint({
    method: 'POST',
    path: ticketPath,
    owner: 'self',
    tag: 'server',
    summary: 'A single-use ticket for opening a websocket from a browser',
    bodyKind: 'ignored',
    replies: { 201: { description: 'The ticket', schema: Ticket } },
    handle: async (_, { tickets, identity }) =>
      created({ ticket: await tickets.issue(identity), expires_in_ms: ticketLifeMs }),
  }),
]
