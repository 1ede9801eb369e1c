import { type Static, Type } from '@sinclair/typebox'

/** A program that was found on the host. */
export type FoundProgram = Static<typeof FoundProgram>
export const FoundProgram = Type.Object(
  {
    path: Type.String({ description: 'Absolute path' }),
    version: Type.String({ description: 'What it says of itself' }),
  },
  { $id: 'FoundProgram', description: 'A program that was found on the host' },
)
