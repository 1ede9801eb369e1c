import { expect, test } from 'vitest'
import { freeImageName } from '../../../runtime/browser/forms/free-image-name.ts'

test.for([
  ['R1-disk2', [], 'R1-disk2.qcow2'],
  ['R1-disk2', ['R1-disk2.qcow2', 'R1-disk2-2.qcow2'], 'R1-disk2-3.qcow2'],
  ['Router / "north"', [], 'Router-north-.qcow2'],
  ['../../x', [], 'x.qcow2'],
  ['Zürich', [], 'Zürich.qcow2'],
  ['//', [], 'disk.qcow2'],
] as const)('%s beside %o is %s', ([wanted, paths, name]) => {
  const images = paths.map((path) => ({ path }))
  expect(freeImageName(wanted, images)).toBe(name)
})
