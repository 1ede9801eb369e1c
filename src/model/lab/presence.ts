import { type Static, Type } from '@sinclair/typebox'
import { maybe } from '../../schema/fields.ts'

const selection = Type.Array(Type.String({ minLength: 1, maxLength: 255 }), {
  maxItems: 200,
  description: 'Ids of the selected nodes, links and drawings',
})
const client = Type.String({ maxLength: 100, description: 'Tells windows with the same credentials apart' })

/** What somebody at a lab has selected. */
export type LabPresence = Static<typeof LabPresence>
export const LabPresence = Type.Object(
  {
    name: Type.String({ description: 'Name of the token or the user' }),
    client,
    selection,
    present: Type.Boolean({ description: 'False in the event by which it ends' }),
  },
  { $id: 'LabPresence', description: 'What somebody at a project has selected' },
)

export const LabPresenceInput = Type.Object(
  { selection, client: maybe(client) },
  { $id: 'LabPresenceInput', additionalProperties: false, description: 'What the client has selected' },
)
