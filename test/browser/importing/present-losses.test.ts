import { expect, test } from 'vitest'
import { presentLosses } from '../../../runtime/browser/importing/present-losses.ts'

const row = (name: string, reason?: string) => ({
  name,
  from: '',
  kind: 'pc',
  reason,
  images: [],
  hint: undefined,
  note: '',
})
const loss = (path: string, message: string) => ({
  ...{ path, message, line: 1, column: 1 },
  effect: 'left-out' as const,
})
const refused = 'is not imported: the node cannot run here'

test('what was left out of a node that can run now does not say that it cannot', () => {
  const losses = [loss('topology.nodes.spine1.license', refused), loss('topology.nodes.leaf1.license', refused)]
  const rows = [row('spine1'), row('leaf1', 'it is a container')]
  expect(presentLosses(losses, rows).map(({ message }) => message)).toEqual([
    'is not imported: the node could not run when this was read',
    refused,
  ])
  const other = loss('topology.nodes.spine1.binds', 'is not imported: nodes do not see files of the host')
  expect(presentLosses([other], rows)).toEqual([other])
})
