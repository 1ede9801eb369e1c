import { type Static, Type } from '@sinclair/typebox'
import { maybe, Name, nullable } from '../../model/common.ts'
import { IouNode, iouInputs, iouPath, iouSettings } from '../../model/iou.ts'
import { newNodeId } from '../../model/node-fields.ts'

const { node_id, node_directory, console_type: _, status: __, ...routerFields } = IouNode.properties

/** A router as v1 shows it: `vm_id` and `vm_directory` where v2 says node, and the older word for its configuration. */
export type IouV1 = Static<typeof IouV1>
export const IouV1 = Type.Object(
  {
    vm_id: node_id,
    vm_directory: node_directory,
    ...routerFields,
    initial_config: nullable(
      Type.String({ description: 'The startup configuration, relative to the directory of the project; null: none' }),
    ),
  },
  { $id: 'IouInstance', description: 'A router run by an IOU image, as v1 shows it' },
)
export const iouV1 = (node: IouNode): IouV1 => {
  const { node_id, node_directory, console_type: _, status: __, ...rest } = node
  const initial_config = rest.startup_config === null ? null : `project-files/iou/${node_id}/${rest.startup_config}`
  return { vm_id: node_id, vm_directory: node_directory, ...rest, initial_config }
}

/** What v1 clients call the startup configuration, and what they send along that is ignored. */
const older = {
  initial_config: maybe(Type.String({ description: 'Accepted and ignored' })),
  initial_config_content: maybe(
    Type.String({ maxLength: 1 << 20, description: 'Older form of startup_config_content' }),
  ),
  startup_config: maybe(Type.String({ description: 'Accepted and ignored' })),
  private_config: maybe(Type.String({ description: 'Accepted and ignored' })),
}

const { console_type: ___, ...inputs } = iouInputs
const { ethernet_adapters, serial_adapters } = iouSettings
export const IouV1Create = Type.Object(
  {
    name: Name,
    path: iouPath,
    vm_id: newNodeId,
    ...inputs,
    // The specification has no null for them.
    ethernet_adapters: Type.Optional(ethernet_adapters),
    serial_adapters: Type.Optional(serial_adapters),
    ...older,
  },
  { $id: 'IouInstanceCreate', additionalProperties: false, description: 'What a router is created with in v1' },
)
export const IouV1Update = Type.Object(
  { name: maybe(Name), path: maybe(iouPath), ...inputs, ...older },
  {
    $id: 'IouInstanceUpdate',
    additionalProperties: false,
    description: 'Changes of a router; absent and null mean "leave as it is"',
  },
)

/** What a v1 client sends, in the words of the model. */
export function iouInput<T extends Record<string, unknown>>(body: T): T {
  const { initial_config, initial_config_content, startup_config, private_config, ...rest } = body
  const content = rest.startup_config_content ?? initial_config_content
  return { ...rest, ...(content != null && { startup_config_content: content }) } as unknown as T
}
