import { Type } from '@sinclair/typebox'
import { createDrawing, removeDrawing, updateDrawing } from '../../../labs/drawings.ts'
import { LabDrawing, LabDrawingCreate, LabDrawingUpdate } from '../../../model/lab/drawing.ts'
import { Uuid } from '../../../model/schema/fields.ts'
import { created, type Endpoint, endpoint, noContent, ok } from '../../../server/http/endpoint.ts'
import { base, labsOf, noSuchProject, projectParam } from './lab-request.ts'

const tag = 'v2 drawings'
const owner = 'self'
const list = `${base}/{project_id}/drawings`
const path = `${list}/{drawing_id}`
const inProject = Type.Object(projectParam)
const params = Type.Object({ ...projectParam, drawing_id: Uuid })
const noSuchDrawing = 'There is no such project or drawing, or the project is closed'

export const labDrawingEndpoints: readonly Endpoint[] = [
  endpoint({
    method: 'GET',
    path: list,
    owner,
    tag,
    params: inProject,
    summary: 'List the drawings of a project',
    replies: { 200: { description: 'The drawings', schema: Type.Array(LabDrawing) } },
    errors: { 404: 'There is no such project' },
    async handle({ params }, context) {
      const lab = await labsOf(context).labs.find(params.project_id)
      return ok([...lab.document.drawings.values()].map((record) => lab.drawingView(record)))
    },
  }),
  endpoint({
    method: 'POST',
    path: list,
    owner,
    tag,
    params: inProject,
    summary: 'Create a drawing',
    body: LabDrawingCreate,
    viewSchema: LabDrawing,
    replies: { 201: { description: 'Created', schema: LabDrawing } },
    errors: { 404: noSuchProject, 409: 'The id is taken', 507: 'The disk is nearly full' },
    handle: async ({ params, body }, context) =>
      created(await createDrawing(await labsOf(context).labs.lab(params.project_id), body, context.conventions)),
  }),
  endpoint({
    method: 'GET',
    path,
    owner,
    tag,
    params,
    summary: 'Read a drawing',
    replies: { 200: { description: 'The drawing', schema: LabDrawing } },
    errors: { 404: noSuchDrawing },
    async handle({ params }, context) {
      const lab = await labsOf(context).labs.find(params.project_id)
      return ok(lab.drawingView(lab.drawing(params.drawing_id)))
    },
  }),
  endpoint({
    method: 'PUT',
    path,
    owner,
    tag,
    params,
    summary: 'Change a drawing',
    body: LabDrawingUpdate,
    viewSchema: LabDrawing,
    async current({ params }, context) {
      const lab = await labsOf(context).labs.lab(params.project_id)
      return lab.drawingView(lab.drawing(params.drawing_id))
    },
    replies: { 200: { description: 'The changed drawing', schema: LabDrawing } },
    errors: { 404: noSuchDrawing, 507: 'The disk is nearly full' },
    handle: async ({ params, body }, context) =>
      ok(await updateDrawing(await labsOf(context).labs.lab(params.project_id), params.drawing_id, body)),
  }),
  endpoint({
    method: 'DELETE',
    path,
    owner,
    tag,
    params,
    summary: 'Delete a drawing',
    replies: { 204: { description: 'Deleted' } },
    errors: { 404: noSuchDrawing, 409: 'The drawing is locked' },
    async handle({ params }, context) {
      await removeDrawing(await labsOf(context).labs.lab(params.project_id), params.drawing_id)
      return noContent
    },
  }),
]
