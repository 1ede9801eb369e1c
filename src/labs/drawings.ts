import { conflict } from '../lib/errors/api-error.ts'
import { drawingFields, type LabDrawing, type LabDrawingCreate, type LabDrawingUpdate } from '../model/lab/drawing.ts'
import type { Conventions } from './lab/conventions.ts'
import { Changes, type DrawingRecord } from './lab/document.ts'
import { withDefaults, withoutNulls } from './lab/fields.ts'
import type { Lab } from './lab/lab.ts'
import { requireUnlocked } from './lab/locked.ts'

export async function createDrawing(
  lab: Lab,
  { drawing_id, ...input }: LabDrawingCreate,
  conventions?: Conventions,
): Promise<LabDrawing> {
  const id = drawing_id?.toLowerCase() ?? crypto.randomUUID()
  const existing = lab.document.drawings.get(id)
  if (existing !== undefined && conventions?.showsExisting === true) return lab.drawingView(existing)
  return put(lab, 'drawing.created', () => {
    if (lab.document.drawings.has(id)) throw conflict(`drawing_id: a drawing ${id} already exists`)
    return { drawing_id: id, ...withDefaults(drawingFields, input), ...withoutNulls({ kept: input.kept }) }
  })
}

export function updateDrawing(lab: Lab, id: string, input: LabDrawingUpdate): Promise<LabDrawing> {
  return put(lab, 'drawing.updated', () => ({ ...lab.drawing(id), ...withoutNulls(input) }))
}

/** Deletes a drawing. 409 when it is locked. */
export async function removeDrawing(lab: Lab, id: string): Promise<void> {
  await lab.edit(() => {
    const record = lab.drawing(id)
    requireUnlocked(record, 'The drawing')
    return {
      changes: new Changes().remove('drawing', record.drawing_id),
      news: () => [{ action: 'drawing.deleted', event: lab.drawingView(record) }],
      result: undefined,
    }
  })
}

/** Writes the drawing that `change` returns; it may read the present document. */
const put = (
  lab: Lab,
  action: 'drawing.created' | 'drawing.updated',
  change: () => DrawingRecord,
): Promise<LabDrawing> =>
  lab.edit(() => {
    const record = change()
    return {
      changes: new Changes().put('drawing', record.drawing_id, record),
      news: () => [{ action, event: lab.drawingView(record) }],
      result: lab.drawingView(record),
    }
  })
