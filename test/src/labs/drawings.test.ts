import { expect, test } from 'vitest'
import { createDrawing, removeDrawing, updateDrawing } from '../../../src/labs/drawings.ts'
import { labsInMemory, MemoryCompute } from '../../support/memory-compute.ts'

async function withDrawing() {
  const labs = await labsInMemory(new MemoryCompute())
  const { project_id } = await labs.creation.create({ name: 'drawn', compute_id: 'local' }, labs.computes.agent)
  const lab = await labs.lab(project_id)
  const { drawing_id } = await createDrawing(lab, { svg: '<svg/>' })
  return { lab, drawing_id }
}

test('a drawing has both of two changes at once', async () => {
  const { lab, drawing_id } = await withDrawing()
  await Promise.all([updateDrawing(lab, drawing_id, { x: 3 }), updateDrawing(lab, drawing_id, { svg: '<svg></svg>' })])
  expect(lab.drawing(drawing_id)).toMatchObject({ x: 3, svg: '<svg></svg>' })
})

test('a drawing that is deleted while it is changed does not come back', async () => {
  const { lab, drawing_id } = await withDrawing()
  const removing = removeDrawing(lab, drawing_id)
  await expect(updateDrawing(lab, drawing_id, { x: 3 })).rejects.toMatchObject({ status: 404 })
  await removing
  expect(lab.document.drawings.size).toBe(0)
})

test('of two drawings with one id at once one is refused', async () => {
  const { lab } = await withDrawing()
  const drawing_id = crypto.randomUUID()
  const first = createDrawing(lab, { drawing_id, x: 1 })
  await expect(createDrawing(lab, { drawing_id, x: 2 })).rejects.toMatchObject({ status: 409 })
  await first
  expect(lab.drawing(drawing_id)).toMatchObject({ x: 1 })
})
