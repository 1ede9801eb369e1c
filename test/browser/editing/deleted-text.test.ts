import { expect, test } from 'vitest'
import { deletedText } from '../../../runtime/browser/editing/deleted-text.ts'

test.each([
  [['R1'], 2, 0, 'R1 and 2 links'],
  [['R1'], 0, 0, 'R1'],
  [['R1', 'R2'], 1, 3, '2 nodes, 1 link and 3 drawings'],
  [[], 1, 0, '1 link'],
  [[], 0, 2, '2 drawings'],
] as const)('the deletion of %j, %i links and %i drawings is called %s', (nodes, links, drawings, text) => {
  expect(deletedText(nodes, links, drawings)).toBe(text)
})
