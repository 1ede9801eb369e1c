import { expect, test } from 'vitest'
import {
  freeName,
  givenFiles,
  isArchive,
  isLabFile,
  pathsIn,
  textOf,
} from '../../../runtime/browser/importing/given-files.ts'

const named = (...names: string[]) => names.map((name) => ({ name }))
const sorted = (...names: string[]) =>
  givenFiles(named(...names)).map(({ file, annotations, beside }) => [
    file.name,
    annotations?.name,
    beside.map((it) => it.name),
  ])

test('labs are distinguished from the files that belong to them', () => {
  expect(sorted('two.clab.yml', 'two.clab.yml.annotations.json', 'r1.cfg', 'lab.gns3project')).toEqual([
    ['two.clab.yml', 'two.clab.yml.annotations.json', ['r1.cfg']],
    ['lab.gns3project', undefined, ['r1.cfg']],
  ])
  expect(sorted('other.annotations.json')).toEqual([['other.annotations.json', undefined, []]])
})

test('when no file looks like a lab, all are tried', () => {
  expect(sorted('notes.txt', 'picture.png').map(([name]) => name)).toEqual(['notes.txt', 'picture.png'])
})

test('an archive is known by its first bytes, not by its name', async () => {
  expect(await isArchive(new Blob(['PK\u0003\u0004 and so on']))).toBe(true)
  expect(await isArchive(new Blob(['PK']))).toBe(false)
  expect(await isArchive(new Blob([]))).toBe(false)
})

test('a file that is not text, or too long for a lab, is refused before it is sent', async () => {
  expect(await textOf(new Blob(['lab: räuber']))).toBe('lab: räuber')
  await expect(textOf(new Blob([]))).rejects.toThrow('The file is empty.')
  await expect(textOf(new Blob([Uint8Array.of(0xff, 0xfe, 0)]))).rejects.toThrow('neither an archive nor text in UTF-8')
  await expect(textOf(new Blob([new Uint8Array((1 << 20) + 1)]))).rejects.toThrow(
    'too large for a lab file: at most 1 MiB',
  )
})

test('the paths by which a lab file names a file are found, and no other words', () => {
  const text = `config: configs/R1.cfg
other: "deep/er/R1.cfg"
list: [R1.cfg, my-R1.cfg, R1.cfg.old, {config: ./R1.cfg}]
`
  expect(pathsIn(text, 'R1.cfg')).toEqual(['configs/R1.cfg', 'deep/er/R1.cfg', 'R1.cfg', './R1.cfg'])
  expect(pathsIn(text, 'R1xcfg')).toEqual([])
  expect(pathsIn(text, '(R1.cfg')).toEqual([])
})

test('a taken name becomes the next free one, of at most 63 characters', () => {
  expect(freeName('two', [])).toBe('two')
  expect(freeName('two', ['Two', 'two-2'])).toBe('two-3')
  const long = 'x'.repeat(63)
  expect(freeName(long, [long])).toBe(`${'x'.repeat(61)}-2`)
})

test.each([
  ['# A lab.\nlab: two-pcs\nversion: 1\nnodes: {}\n', true],
  ['lab: "wan" # the line\r\nnodes: {}\r\n', true],
  // CML, containerlab, and a lab file in JSON, which the service finds out.
  ['lab:\n  title: two\nnodes: []\n', false],
  ['name: two\ntopology:\n  nodes:\n    lab: { kind: linux }\n', false],
  ['{"lab": "two", "nodes": {}}', false],
])('whether %j is a lab file is seen before it is sent: %s', (text, isIt) => {
  expect(isLabFile(text)).toBe(isIt)
})
