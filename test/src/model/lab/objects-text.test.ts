import { expect, test } from 'vitest'
import { objectsText } from '../../../../src/model/lab/objects-text.ts'

test.each([
  [['R1'], 2, 0, 'R1 and 2 links'],
  [['R1'], 0, 0, 'R1'],
  [['R1', 'R2'], 1, 3, '2 nodes, 1 link and 3 drawings'],
  [[], 1, 0, '1 link'],
  [[], 0, 2, '2 drawings'],
] as const)('%j, %i links and %i drawings are called %s', (nodes, links, drawings, text) => {
  expect(objectsText(nodes, links, drawings)).toBe(text)
})
