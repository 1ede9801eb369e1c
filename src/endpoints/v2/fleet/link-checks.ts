import { Type } from '@sinclair/typebox'
import { LinkCandidates, LinkCheck, LinkCheckResult } from '../../../model/link-check.ts'
import { type Endpoint, endpoint, ok } from '../../../server/http/endpoint.ts'
import { noSuchProject, projectParams, udpPortParam } from '../../../server/http/params.ts'

const path = '/v2/compute/projects/{project_id}/ports/udp/{udp_port}'
const tag = 'v2 compute links'
const params = Type.Object({ ...projectParams.properties, ...udpPortParam })
const notReserved = `${noSuchProject}, or the port is not reserved for it`

/** Find the addresses by which the UDP ports of two computes reach each other. A gateway asks both at the same time. */
export const linkCheckEndpoints: readonly Endpoint[] = [
  endpoint({
    method: 'GET',
    path: `${path}/candidates`,
    tag,
    summary: 'Addresses at which other computes may reach a reserved UDP port',
    params,
    replies: { 200: { description: 'The addresses', schema: LinkCandidates } },
    errors: { 404: notReserved },
    handle: async ({ params }, { agent }) =>
      ok(await agent.linkChecks.candidates(params.project_id, Number(params.udp_port))),
  }),
  endpoint({
    method: 'POST',
    path: `${path}/check`,
    tag,
    summary: 'Check whether another compute can be reached from a reserved UDP port',
    description:
      'For 5 seconds at most, the compute sends small probes from the port to the candidates, and answers their probes that have the ' +
      'key. The other compute has to do the same at the same time.',
    params,
    body: LinkCheck,
    replies: { 200: { description: 'What was found', schema: LinkCheckResult } },
    errors: { 404: notReserved, 409: 'The port is being checked already', 503: 'Too many ports are being checked' },
    handle: async ({ params, body, request }, { agent }) =>
      ok(await agent.linkChecks.run(params.project_id, Number(params.udp_port), body, request.signal)),
  }),
]
