import { type Static, Type } from '@sinclair/typebox'
import { objectSchema } from './fields.ts'

export type FoundProgram = Static<typeof FoundProgram>
export const FoundProgram = objectSchema('FoundProgram', 'A program of the host', {
  path: Type.String({ description: 'Absolute path' }),
  version: Type.String({ description: 'The version that the program reports' }),
})
