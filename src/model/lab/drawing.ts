import { type Static, Type } from '@sinclair/typebox'
import { maybe, maybes, Uuid } from '../schema/fields.ts'
import { kept } from './kept.ts'

const coordinate = Type.Integer({ minimum: -1_000_000, maximum: 1_000_000, default: 0 })
export const drawingFields = {
  svg: Type.String({
    maxLength: 2 << 20,
    default: '',
    description: 'The drawing as SVG. Clients must show it as an image, not as a document: it may contain scripts',
  }),
  x: coordinate,
  y: coordinate,
  z: Type.Integer({ minimum: -1000, maximum: 1000, default: 1, description: 'Layer of the map' }),
  rotation: Type.Integer({ minimum: -359, maximum: 360, default: 0, description: 'Degrees' }),
  locked: Type.Boolean({
    default: false,
    description: 'Whether the map refuses to move it, and the service to delete it',
  }),
}

export type LabDrawing = Static<typeof LabDrawing>
export const LabDrawing = Type.Object(
  { drawing_id: Uuid, project_id: Uuid, ...drawingFields, kept: Type.Optional(kept) },
  { $id: 'LabDrawing', description: 'A drawing on the map: a text, a rectangle, a picture' },
)
const given = { ...maybes(drawingFields), kept: maybe(kept) }
export type LabDrawingCreate = Static<typeof LabDrawingCreate>
export const LabDrawingCreate = Type.Object(
  { drawing_id: maybe(Uuid), ...given },
  { $id: 'LabDrawingCreate', additionalProperties: false, description: 'Input of a new drawing' },
)
export type LabDrawingUpdate = Static<typeof LabDrawingUpdate>
export const LabDrawingUpdate = Type.Object(given, {
  $id: 'LabDrawingUpdate',
  additionalProperties: false,
  description: 'Changes to a drawing; null or absent members stay unchanged',
})
