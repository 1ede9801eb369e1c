import { Type } from '@sinclair/typebox'
import type { MachineAgent } from '../host-agent.ts'
import { FoundProgram } from '../model/image.ts'
import { MachineCapabilities } from '../model/machine-emulator.ts'
import type { Connection } from './connection.ts'
import { nodePath } from './nodes.ts'
import { search } from './paths.ts'

const base = '/v2/compute/machine-emulator'
const programs = Type.Array(FoundProgram)

export const remoteMachines = (connection: Connection): MachineAgent => ({
  async emulators(platforms) {
    // In a query, none would mean all.
    if (platforms?.length === 0) return []
    const archs = platforms?.join(',')
    return connection.json(programs, { method: 'GET', path: `${base}/binaries${search({ archs })}`, pace: 'work' })
  },
  capabilities: () => connection.json(MachineCapabilities, { method: 'GET', path: `${base}/capabilities` }),
  async resizeDisk(ref, input) {
    await connection.done({ method: 'POST', path: `${nodePath(ref)}/resize_disk`, input })
  },
})
