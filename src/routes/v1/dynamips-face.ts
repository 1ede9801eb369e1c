import { type Static, Type } from '@sinclair/typebox'
import { DynamipsCreate, DynamipsNode, DynamipsUpdate } from '../../model/dynamips.ts'

const { node_id, node_directory, console_type: _, ...routerFields } = DynamipsNode.properties

/** A router as v1 shows it: `vm_id` and `vm_directory` where v2 says node, and no console type. */
export type DynamipsV1 = Static<typeof DynamipsV1>
export const DynamipsV1 = Type.Object(
  { vm_id: node_id, vm_directory: node_directory, ...routerFields },
  { $id: 'DynamipsInstance', description: 'A router that dynamips emulates, as v1 shows it' },
)
export const dynamipsV1 = ({ node_id, node_directory, console_type: _, ...rest }: DynamipsNode): DynamipsV1 => ({
  vm_id: node_id,
  vm_directory: node_directory,
  ...rest,
})

const { node_id: newId, console_type: __, ...createInput } = DynamipsCreate.properties
export const DynamipsV1Create = Type.Object(
  { ...createInput, vm_id: newId },
  {
    $id: 'DynamipsInstanceCreate',
    additionalProperties: false,
    description: 'What a router is created with in v1; absent and null mean "the default"',
  },
)
const { console_type: ___, ...updateInput } = DynamipsUpdate.properties
export const DynamipsV1Update = Type.Object(updateInput, {
  $id: 'DynamipsInstanceUpdate',
  additionalProperties: false,
  description: 'Changes of a router; absent and null mean "leave as it is"',
})
