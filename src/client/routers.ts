import { Type } from '@sinclair/typebox'
import type { DynamipsAgent, HypervisorAgent, RouterAgent } from '../host-agent.ts'
import { IdlePc, IdlePcProposals } from '../model/dynamips.ts'
import { VmSummary } from '../model/hypervisor.ts'
import { IouConfigs, IouNode } from '../model/iou.ts'
import type { NodeRef } from '../model/node.ts'
import type { Call, Connection } from './connection.ts'
import { nodePath } from './nodes.ts'

const vms = Type.Array(VmSummary)

export const remoteRouters = (connection: Connection): RouterAgent => ({
  start: (ref, input) => connection.json(IouNode, { method: 'POST', path: `${nodePath(ref)}/start?view=full`, input }),
  configs: (ref) => connection.json(IouConfigs, { method: 'GET', path: `${nodePath(ref)}/configs`, pace: 'work' }),
  async saveConfigs(ref) {
    await connection.done({ method: 'POST', path: `${nodePath(ref)}/configs/save` })
  },
})

export function remoteDynamips(connection: Connection): DynamipsAgent {
  // A GET, and yet minutes of work.
  const call = (ref: NodeRef, name: string, signal: AbortSignal | undefined): Call => ({
    method: 'GET',
    path: `${nodePath(ref)}/${name}`,
    pace: 'work',
    ...(signal !== undefined && { signal }),
  })
  return {
    idlePcProposals: (ref, signal) => connection.json(IdlePcProposals, call(ref, 'idlepc_proposals', signal)),
    autoIdlePc: async (ref, signal) => (await connection.json(IdlePc, call(ref, 'auto_idlepc', signal))).idlepc,
  }
}

export const remoteHypervisors = (connection: Connection): HypervisorAgent => ({
  // The hypervisor is asked first.
  vms: () => connection.json(vms, { method: 'GET', path: '/v2/compute/hypervisor/vms', pace: 'work' }),
})
