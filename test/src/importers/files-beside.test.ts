import { expect, test } from 'vitest'
import { filesNamed } from '../../../src/importers/files-beside.ts'

const pathsOf = (names: readonly string[], ...paths: string[]) => {
  const filesAt = filesNamed(names)
  return paths.map((path) => filesAt(path).map((file) => file.path))
}

test('a path is that of a file, or of all files below a directory', () => {
  expect(pathsOf(['r1/a', 'r1/b/c', 'x'], 'r1/a', 'r1', 'r1/b', 'r2', 'x', './x')).toEqual([
    ['r1/a'],
    ['r1/a', 'r1/b/c'],
    ['r1/b/c'],
    [],
    ['x'],
    ['./x'],
  ])
})

test('a name without its directory is that of one path: two routers do not get the file of one', () => {
  expect(pathsOf(['frr.conf'], 'r1/frr.conf', 'r2/frr.conf', 'r1/frr.conf')).toEqual([
    ['r1/frr.conf'],
    [],
    ['r1/frr.conf'],
  ])
})
