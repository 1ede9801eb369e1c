import { type Static, Type } from '@sinclair/typebox'
import { nullable, objectSchema } from '../schema/fields.ts'

const LabEdit = objectSchema('LabEdit', 'An edit of a project that can be undone or redone', {
  text: Type.String({ description: 'What it did, such as `delete R1 and 2 links`' }),
  by: nullable(Type.String({ description: 'Name of the token or user that made it; null: no name is known' })),
})

/** What undo and redo take. */
export type LabEdits = Static<typeof LabEdits>
export const LabEdits = objectSchema('LabEdits', "The caller's latest edits of a project", {
  undo: nullable(LabEdit),
  redo: nullable(LabEdit),
})
