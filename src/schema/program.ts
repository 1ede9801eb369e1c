import { type Static, Type } from '@sinclair/typebox'
import { objectSchema } from './fields.ts'

/** A program that was found on the host. */
export type FoundProgram = Static<typeof FoundProgram>
export const FoundProgram = objectSchema('FoundProgram', 'A program that was found on the host', {
  path: Type.String({ description: 'Absolute path' }),
  version: Type.String({ description: 'What it says of itself' }),
})
