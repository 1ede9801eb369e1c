import { expect, test } from 'vitest'
import type { Dock } from '../../../runtime/browser/console/dock.ts'
import type { LabEditor } from '../../../runtime/browser/editing/lab-editor.ts'
import { LabWindow } from '../../../runtime/browser/editing/lab-window.ts'
import { type Point, tile } from '../../../runtime/browser/map/geometry.ts'
import { LabStore } from '../../../runtime/browser/state/lab-store.ts'
import type { LabTemplate } from '../../../src/client/patchbay.ts'

test('nodes that are added faster than the service answers do not cover each other', async () => {
  const places: Point[] = []
  const answers: (() => void)[] = []
  const editor = {
    store: new LabStore(),
    add(_: LabTemplate, at: Point) {
      places.push(at)
      return new Promise<void>((answer) => answers.push(answer))
    },
  }
  const window = new LabWindow(editor as unknown as LabEditor, {} as Dock)
  const adding = [1, 2, 3].map(() => window.addInMiddle({} as LabTemplate))
  for (const [index, one] of places.entries())
    for (const other of places.slice(index + 1))
      expect(Math.hypot(one.x - other.x, one.y - other.y)).toBeGreaterThan(tile)
  for (const answer of answers) answer()
  await Promise.all(adding)
  // They were refused: their places are free again.
  void window.addInMiddle({} as LabTemplate)
  expect(places.at(-1)).toEqual(places[0])
})
