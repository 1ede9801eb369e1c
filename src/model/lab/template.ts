import { type Static, Type } from '@sinclair/typebox'
import { maybe, Name, nullable, Uuid } from '../schema/fields.ts'

const text = (description: string, maxLength = 4096) => Type.String({ maxLength, description })
const fields = {
  name: Name,
  template_type: Type.String({ minLength: 1, maxLength: 50, description: 'Kind of the nodes' }),
  compute_id: nullable(
    Type.String({ maxLength: 100, description: 'Compute of its nodes; null: one with free memory' }),
  ),
  category: Type.String({ maxLength: 50, description: 'Group of the palette: guest, router, switch, firewall' }),
  default_name_format: text('Names of nodes: {name} stands for the template, {0} for the next free number', 255),
  symbol: text('Symbol of the nodes'),
  usage: text('Notes for users of its nodes', 65536),
}

export type LabTemplate = Static<typeof LabTemplate>
export const LabTemplate = Type.Object(
  {
    template_id: Uuid,
    ...fields,
    builtin: Type.Boolean({ description: 'Whether it is part of Patchbay; such a template cannot be changed' }),
  },
  {
    $id: 'LabTemplate',
    additionalProperties: Type.Unknown({ description: 'Settings of the nodes: fields of their kind and of the map' }),
    description: 'A named kind with settings, from which nodes are created',
  },
)

const kept = {
  additionalProperties: Type.Unknown({
    description: 'Settings of the nodes. Unknown members are stored and shown as they are',
  }),
}
export type LabTemplateCreate = Static<typeof LabTemplateCreate>
export const LabTemplateCreate = Type.Object(
  {
    template_id: maybe(Uuid),
    name: fields.name,
    template_type: fields.template_type,
    compute_id: Type.Optional(fields.compute_id),
    category: maybe(fields.category),
    default_name_format: maybe(fields.default_name_format),
    symbol: maybe(fields.symbol),
    usage: maybe(fields.usage),
  },
  { $id: 'LabTemplateCreate', ...kept, description: 'Input of a new template' },
)
export type LabTemplateUpdate = Static<typeof LabTemplateUpdate>
export const LabTemplateUpdate = Type.Object(
  {
    name: maybe(fields.name),
    compute_id: Type.Optional(fields.compute_id),
    category: maybe(fields.category),
    default_name_format: maybe(fields.default_name_format),
    symbol: maybe(fields.symbol),
    usage: maybe(fields.usage),
  },
  { $id: 'LabTemplateUpdate', ...kept, description: 'Changes to a template; absent members stay unchanged' },
)

export type LabTemplateUse = Static<typeof LabTemplateUse>
export const LabTemplateUse = Type.Object(
  {
    x: Type.Integer({ minimum: -1_000_000, maximum: 1_000_000 }),
    y: Type.Integer({ minimum: -1_000_000, maximum: 1_000_000 }),
    compute_id: maybe(
      Type.String({ minLength: 1, maxLength: 100, description: 'Its compute, in place of the one in the template' }),
    ),
    name: maybe(Name),
  },
  { $id: 'LabTemplateUse', additionalProperties: false, description: 'Position and compute of the new node' },
)
