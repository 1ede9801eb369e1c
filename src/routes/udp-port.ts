import { Type } from '@sinclair/typebox'
import { created, type Endpoint, endpoint } from '../http/endpoint.ts'
import { noSuchProject, projectParams } from '../http/params.ts'
import { PortNumber } from '../model/common.ts'

const UdpPort = Type.Object({ udp_port: PortNumber }, { $id: 'UdpPort', description: 'A UDP port reserved for a link' })

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
