import { Type } from '@sinclair/typebox'
import { created, type Endpoint, endpoint, noContent } from '../http/endpoint.ts'
import { noSuchProject, projectParams } from '../http/params.ts'
import { PortNumber } from '../schema/fields.ts'

export const UdpPort = Type.Object(
  { udp_port: PortNumber },
  { $id: 'UdpPort', description: 'A UDP port reserved for a link' },
)

/** Reserves a port for the `lport` of a link; the same in both faces. */
export const udpPortEndpoint = (base: string, tag: string): Endpoint =>
  endpoint({
    method: 'POST',
    path: `${base}/{project_id}/ports/udp`,
    tag,
    summary: 'Reserve a UDP port for a link of the project',
    description: 'Until the NIO that uses it as lport is deleted, or the project is closed.',
    params: projectParams,
    bodyKind: 'ignored',
    replies: { 201: { description: 'Reserved', schema: UdpPort } },
    errors: { 404: noSuchProject, 409: 'No port is left' },
    handle: async ({ params }, { agent }) =>
      created({ udp_port: await agent.projects.reserveUdpPort(params.project_id) }),
  })

/** Gives a reserved port back before any NIO uses it. */
export const releaseUdpPort = (base: string, tag: string): Endpoint =>
  endpoint({
    method: 'DELETE',
    path: `${base}/{project_id}/ports/udp/{udp_port}`,
    tag,
    summary: 'Give back a UDP port that was reserved and that no NIO uses',
    params: Type.Object({
      ...projectParams.properties,
      udp_port: Type.String({ pattern: '^[0-9]{1,5}$', expects: 'a port, in digits', description: 'The port' }),
    }),
    replies: { 204: { description: 'Given back' } },
    errors: { 404: `${noSuchProject}, or the port is not reserved for it` },
    async handle({ params }, { agent }) {
      await agent.projects.releaseUdpPort(params.project_id, Number(params.udp_port))
      return noContent
    },
  })
