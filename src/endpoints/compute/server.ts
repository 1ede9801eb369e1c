import { type TSchema, Type } from '@sinclair/typebox'
import type { FleetAgent } from '../../host-agent.ts'
import { conflict } from '../../lib/errors/api-error.ts'
import {
  Capabilities,
  capabilitiesPath,
  Diagnosis,
  HostLoad,
  NetworkInterface,
  Ports,
  Reloaded,
  Version,
} from '../../model/host.ts'
import { closedSchema, objectSchema } from '../../model/schema/fields.ts'
import { created, type Endpoint, endpoint, ok } from '../../server/http/endpoint.ts'
import { view } from '../../server/http/params.ts'
import { ticketLifeMs } from '../../server/http/tickets.ts'
import { hostFeed } from './host-feed.ts'

const VersionCheck = closedSchema('VersionCheck', 'The version that a client expects', {
  version: Type.String({ minLength: 1, maxLength: 100 }),
  local: Type.Optional(Type.Boolean()),
})
const Ticket = objectSchema(
  'Ticket',
  'A single-use ticket that a browser sends as ?ticket= when it opens a websocket',
  { ticket: Type.String(), expires_in_ms: Type.Integer({ description: 'Lifetime of the ticket, ms' }) },
)

const all = { owner: 'all', tag: 'server' } as const
const self = { owner: 'self', tag: 'server' } as const
const admin = { ...self, role: 'admin' } as const

const versions = ['/v1/version', '/v2/version', '/v2/compute/version'].flatMap((path) => [
  endpoint({
    method: 'GET',
    path,
    ...self,
    scope: 'shared',
    summary: 'Version of the service',
    replies: { 200: { description: 'The version', schema: Version } },
    handle: async (_, { agent }) => ok(await agent.host.version()),
  }),
  endpoint({
    method: 'POST',
    path,
    ...self,
    scope: 'shared',
    role: 'read',
    summary: 'Check that the version is the same',
    body: VersionCheck,
    replies: { 200: { description: 'The versions are equal', schema: Version } },
    errors: { 409: 'The service has another version' },
    async handle({ body }, { agent }) {
      const ours = await agent.host.version()
      if (body.version !== ours.version) {
        throw conflict(`version: this service is ${ours.version}, the client is ${body.version}`)
      }
      return ok(ours)
    },
  }),
])

/** A GET that concerns all computes: a gateway composes their answers. */
const read = (
  path: string,
  summary: string,
  [description, schema]: readonly [description: string, schema: TSchema],
  handle: (agent: FleetAgent, signal: AbortSignal) => Promise<unknown>,
): Endpoint =>
  endpoint({
    ...all,
    method: 'GET',
    path,
    summary,
    replies: { 200: { description, schema } },
    handle: async ({ request }, { agent }) => ok(await handle(agent, request.signal)),
  })

const interfaces = ['/v1/interfaces', '/v2/compute/network/interfaces'].map((path) =>
  read(path, 'Network interfaces of the host, by name', ['The interfaces', Type.Array(NetworkInterface)], (agent) =>
    agent.host.interfaces(),
  ),
)

const reloadErrors = {
  403: 'The service is not in local mode (a gateway never is)',
  409: 'The file is not valid; the old values stay',
}
const feeds = hostFeed('/v2/compute/notifications', {
  tag: 'server',
  summary: 'Feed of the events of all projects; each line names its project',
})

/** Path at which clients get single-use tickets. */
export const ticketPath = '/v2/compute/tickets'

export const serverEndpoints: readonly Endpoint[] = [
  ...versions,
  ...interfaces,
  ...feeds,
  endpoint({
    method: 'POST',
    path: '/v1/config/reload',
    ...admin,
    summary: 'Reload the configuration file',
    bodyKind: 'ignored',
    replies: { 201: { description: 'In effect; the headers X-Changed and X-Needs-Restart name the keys' } },
    errors: reloadErrors,
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
    ...admin,
    summary: 'Reload the configuration file, and list the changed keys',
    bodyKind: 'ignored',
    replies: { 200: { description: 'In effect', schema: Reloaded } },
    errors: reloadErrors,
    handle: async (_, { agent }) => ok(await agent.host.reloadConfig()),
  }),
  endpoint({
    method: 'GET',
    path: capabilitiesPath,
    ...all,
    scope: 'shared',
    summary: 'What this compute can do',
    query: Type.Object(view),
    replies: { 200: { description: 'The capabilities', schema: Capabilities } },
    async handle({ query }, { agent, aliasOf }) {
      const { node_types, ...rest } = await agent.host.capabilities()
      return ok({ ...rest, node_types: query.view === 'full' ? node_types : node_types.map(aliasOf) })
    },
  }),
  read('/v2/compute/network/ports', 'Port ranges and the ports in use', ['The ports', Ports], (agent) =>
    agent.host.ports(),
  ),
  read('/v2/compute/load', 'Load of the host', ['The load', HostLoad], (agent) => agent.host.load()),
  read(
    '/v2/compute/doctor',
    'Check whether this machine has what labs need: what was found, and how to fix each fault',
    ['The findings', Diagnosis],
    (agent, signal) => agent.host.doctor(signal),
  ),
  endpoint({
    method: 'POST',
    path: ticketPath,
    ...self,
    scope: 'shared',
    summary: 'Create a single-use ticket for opening a websocket from a browser',
    bodyKind: 'ignored',
    replies: { 201: { description: 'The ticket', schema: Ticket } },
    handle: async (_, { tickets, identity }) =>
      created({ ticket: await tickets.issue(identity), expires_in_ms: ticketLifeMs }),
  }),
]
