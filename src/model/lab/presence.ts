import { type Static, Type } from '@sinclair/typebox'
import { maybe, Name } from '../schema/fields.ts'

const selection = Type.Array(Type.String({ minLength: 1, maxLength: 255 }), {
  maxItems: 200,
  description: 'Ids of the selected nodes, links and drawings',
})
const client = Type.String({ maxLength: 100, description: 'Distinguishes windows that use the same credential' })

/** The selection of one client, as the others at the lab see it. */
export type LabPresence = Static<typeof LabPresence>
export const LabPresence = Type.Object(
  {
    name: Type.String({ description: 'Name of the token or the user' }),
    client,
    selection,
    present: Type.Boolean({ description: 'false in the event at its end' }),
  },
  { $id: 'LabPresence', description: 'The selection of a client at a project' },
)

export type LabPresenceInput = Static<typeof LabPresenceInput>
export const LabPresenceInput = Type.Object(
  {
    selection,
    client: maybe(client),
    name: maybe(
      Type.String({
        minLength: 1,
        maxLength: 100,
        pattern: Name.pattern as string,
        description: 'Who it is, where the service asks for no credentials; elsewhere these have the name',
      }),
    ),
  },
  { $id: 'LabPresenceInput', additionalProperties: false, description: 'The selection of the client' },
)
