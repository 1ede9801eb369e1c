import { expect, test } from 'vitest'
import { rowsOf } from '../../../runtime/browser/importing/node-rows.ts'

const given = (name: string, more = {}) => ({ name, kind: 'pc', from: 'linux', line: 1, column: 1, ...more })

test('nodes that cannot run come first, in the order of the file, with what they lack', () => {
  const nodes = ['h2', 'h1', 'r1', 'leaf'].map((name) => ({ name, kind: 'pc' }))
  const lack = (name: string, image: string) => ({
    name,
    kind: 'pc',
    images: [image],
    reason: `there is no image ${image}`,
  })
  const rows = rowsOf(
    nodes,
    [lack('r1', 'frr.img'), lack('leaf', 'srl.qcow2')],
    [
      given('h1'),
      given('leaf', { from: 'nokia_srlinux', cannot_run: 'it is a container' }),
      given('h2'),
      given('r1', { hint: 'make.sh makes it' }),
    ],
  )
  expect(rows).toMatchObject([
    // No image makes a container a machine: none is asked for.
    { name: 'leaf', from: 'nokia_srlinux', reason: 'it is a container', images: [] },
    { name: 'r1', reason: 'there is no image frr.img', images: ['frr.img'], hint: 'make.sh makes it' },
    { name: 'h1', reason: undefined },
    { name: 'h2', reason: undefined },
  ])
})
