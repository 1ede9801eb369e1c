import { Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, ok } from '../http/endpoint.ts'
import { VmSummary } from '../model/hypervisor.ts'

/** The VMs of the host's hypervisors, the same in both faces. */
export const hypervisorEndpoints: readonly Endpoint[] = [
  { path: '/v1/hypervisor/vms', tag: 'v1 hypervisor instances' },
  { path: '/v2/compute/hypervisor/vms', tag: 'v2 hypervisor nodes' },
].map(({ path, tag }) =>
  endpoint({
    method: 'GET',
    path,
    tag,
    summary: 'List the VMs that nodes can be made for; linked clones of nodes are left out',
    replies: { 200: { description: 'The VMs', schema: Type.Array(VmSummary) } },
    errors: { 409: 'No hypervisor can be reached' },
    handle: async (_, { agent }) => ok(await agent.hypervisors.vms()),
  }),
)
