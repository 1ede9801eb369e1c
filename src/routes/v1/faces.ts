import { type Static, Type } from '@sinclair/typebox'
import { changing, maybe, Name, nullable, Uuid } from '../../model/common.ts'
import type { LabEvent } from '../../model/event.ts'
import {
  type MachineEmulatorNode as Machine,
  MachineEmulatorCreate,
  MachineEmulatorNode,
  MachineEmulatorUpdate,
} from '../../model/machine-emulator.ts'
import type { Node } from '../../model/node.ts'
import { type PcNode as Pc, PcCreate, PcNode, PcUpdate } from '../../model/pc.ts'
import { Project as Full, ProjectUpdate, WantedCompute } from '../../model/project.ts'
import { type DynamipsV1, dynamipsV1 } from './dynamips-face.ts'
import { type HypervisorV1, hypervisorV1 } from './hypervisor-face.ts'
import { type IouV1, iouV1 } from './iou-face.ts'

/** A project as v1 shows it. */
export type ProjectV1 = Static<typeof ProjectV1>
export const ProjectV1 = Type.Omit(Full, ['variables'], {
  $id: 'Project',
  description: 'A project: a named working directory with nodes in it',
})
export const projectV1 = ({ project_id, name, path, location, temporary, status }: Full): ProjectV1 => ({
  project_id,
  name,
  path,
  location,
  temporary,
  ...(status === 'closed' && { status }),
})

const path = Type.String({
  minLength: 1,
  maxLength: 4096,
  description: 'Absolute directory; local mode only, unless it lies in the projects directory',
})
export const ProjectV1Create = Type.Object(
  {
    project_id: maybe(Uuid),
    name: maybe(Name),
    path: maybe(path),
    temporary: Type.Optional(nullable(Type.Boolean())),
    compute_id: maybe(WantedCompute),
  },
  {
    $id: 'ProjectCreate',
    additionalProperties: false,
    description: 'What a project is created with; everything is optional',
  },
)
export const ProjectV1Update = Type.Omit(ProjectUpdate, ['variables'], {
  $id: 'ProjectUpdate',
  additionalProperties: false,
  description: 'Changes of a project; absent and null mean "leave as it is"',
})

/** A pc as v1 shows it: `vm_id` and `vm_directory` where v2 says node, and no console type. */
export type PcV1 = Static<typeof PcV1>
export const PcV1 = Type.Object(
  {
    vm_id: Uuid,
    vm_directory: PcNode.properties.node_directory,
    project_id: Uuid,
    name: Name,
    status: changing(Type.Union([Type.Literal('started'), Type.Literal('stopped')])),
    console: PcNode.properties.console,
    console_host: PcNode.properties.console_host,
    startup_script: PcNode.properties.startup_script,
    startup_script_path: PcNode.properties.startup_script_path,
    command_line: PcNode.properties.command_line,
    status_reason: PcNode.properties.status_reason,
    mac_address: PcNode.properties.mac_address,
    engine: PcNode.properties.engine,
  },
  { $id: 'PcInstance', description: 'A simulated PC, as v1 shows it' },
)
function pcV1({ node_id, node_directory, console_type: _, status, ...rest }: Pc): PcV1 {
  return { vm_id: node_id, vm_directory: node_directory, status: status === 'stopped' ? 'stopped' : 'started', ...rest }
}

const { node_id: pcId, console_type: _, ...pcInput } = PcCreate.properties
export const PcV1Create = Type.Object(
  { ...pcInput, vm_id: pcId },
  { $id: 'PcInstanceCreate', additionalProperties: false, description: 'What a pc is created with in v1' },
)
const { console_type: __, ...pcChanges } = PcUpdate.properties
export const PcV1Update = Type.Object(pcChanges, {
  $id: 'PcInstanceUpdate',
  additionalProperties: false,
  description: 'Changes of a pc; absent and null mean "leave as it is"',
})

const { node_id, node_directory, ...machineFields } = MachineEmulatorNode.properties
/** A machine as v1 shows it: `vm_id` and `vm_directory` where v2 says node. */
export type MachineV1 = Static<typeof MachineV1>
export const MachineV1 = Type.Object(
  { vm_id: node_id, vm_directory: node_directory, ...machineFields },
  { $id: 'MachineEmulatorInstance', description: 'A machine run by QEMU, as v1 shows it' },
)
const machineV1 = ({ node_id, node_directory, ...rest }: Machine): MachineV1 => ({
  vm_id: node_id,
  vm_directory: node_directory,
  ...rest,
})

const { node_id: machineId, ...machineInput } = MachineEmulatorCreate.properties
export const MachineV1Create = Type.Object(
  { ...machineInput, vm_id: machineId },
  {
    $id: 'MachineEmulatorInstanceCreate',
    additionalProperties: false,
    description: 'What a machine is created with in v1; absent and null mean "the default"',
  },
)
export const MachineV1Update = Type.Object(MachineEmulatorUpdate.properties, {
  $id: 'MachineEmulatorInstanceUpdate',
  additionalProperties: false,
  description: 'Changes of a machine; absent and null mean "leave as it is"',
})

/** A node of any kind as v1 shows it, by a field that only its kind has. */
export function instanceV1(node: Node): PcV1 | MachineV1 | IouV1 | DynamipsV1 | HypervisorV1 {
  if ('qemu_path' in node) return machineV1(node)
  if ('idlepc' in node) return dynamipsV1(node)
  if ('vmname' in node) return hypervisorV1(node)
  return 'application_id' in node ? iouV1(node) : pcV1(node)
}

/** v1 names of events; only starts and stops of nodes and messages have one. */
export function eventV1({ payload }: LabEvent): { action: string; event: unknown } | undefined {
  switch (payload.type) {
    case 'node.updated':
      if (payload.change !== 'started' && payload.change !== 'stopped') return undefined
      // As older clients know it, a VM of a hypervisor has no such events.
      if ('vmname' in payload.node) return undefined
      return { action: `vm.${payload.change}`, event: instanceV1(payload.node) }
    case 'log.error':
    case 'log.warning':
      return { action: payload.type, event: { message: payload.message } }
    default:
      return undefined
  }
}
