import { type Static, Type } from '@sinclair/typebox'
import { HypervisorCreate, HypervisorNode, HypervisorUpdate } from '../../model/hypervisor.ts'

const {
  node_id,
  node_directory,
  console_type: _,
  status: __,
  linked_clone: ___,
  custom_adapters: ______,
  ...vmFields
} = HypervisorNode.properties

/** A VM as v1 shows it: `vm_id` and `vm_directory` where v2 says node, and no state. */
export type HypervisorV1 = Static<typeof HypervisorV1>
export const HypervisorV1 = Type.Object(
  { vm_id: node_id, vm_directory: node_directory, ...vmFields },
  { $id: 'HypervisorInstance', description: 'A VM of a hypervisor of the host, as v1 shows it' },
)
export function hypervisorV1(node: HypervisorNode): HypervisorV1 {
  const {
    node_id,
    node_directory,
    console_type: _,
    status: __,
    linked_clone: ___,
    custom_adapters: ____,
    ...rest
  } = node
  return { vm_id: node_id, vm_directory: node_directory, ...rest }
}

const { node_id: newId, console_type: ____, custom_adapters: _______, ...createInput } = HypervisorCreate.properties
export const HypervisorV1Create = Type.Object(
  { ...createInput, vm_id: newId },
  { $id: 'HypervisorInstanceCreate', additionalProperties: false, description: 'What a VM is created with in v1' },
)
const { console_type: _____, custom_adapters: ________, ...updateInput } = HypervisorUpdate.properties
export const HypervisorV1Update = Type.Object(updateInput, {
  $id: 'HypervisorInstanceUpdate',
  additionalProperties: false,
  description: 'Changes of a VM; absent and null mean "leave as it is"',
})
