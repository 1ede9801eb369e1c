import { conflict } from '../errors/api-error.ts'
import { drawingFields, type LabDrawing, type LabDrawingCreate, type LabDrawingUpdate } from '../model/lab/drawing.ts'
import { Changes, type DrawingRecord } from './document.ts'
import { given, withDefaults } from './fields.ts'
import type { Lab } from './lab.ts'

export async function createDrawing(lab: Lab, { drawing_id, ...input }: LabDrawingCreate): Promise<LabDrawing> {
  const id = drawing_id?.toLowerCase() ?? crypto.randomUUID()
  if (lab.document.drawings.has(id)) throw conflict(`drawing_id: there is a drawing ${id} already`)
  return put(
    lab,
    { drawing_id: id, ...withDefaults(drawingFields, input), ...given({ kept: input.kept }) },
    'drawing.created',
  )
}

export function updateDrawing(lab: Lab, id: string, input: LabDrawingUpdate): Promise<LabDrawing> {
  return put(lab, { ...lab.drawing(id), ...given(input) }, 'drawing.updated')
}

export async function removeDrawing(lab: Lab, id: string): Promise<void> {
  const record = lab.drawing(id)
  await lab.edit(() => ({
    changes: new Changes().remove('drawing', record.drawing_id),
    news: () => [{ action: 'drawing.deleted', event: lab.drawingView(record) }],
    result: undefined,
  }))
}

const put = (lab: Lab, record: DrawingRecord, action: string): Promise<LabDrawing> =>
  lab.edit(() => ({
    changes: new Changes().put('drawing', record.drawing_id, record),
    news: () => [{ action, event: lab.drawingView(record) }],
    result: lab.drawingView(record),
  }))
