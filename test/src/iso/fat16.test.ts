import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { fatImage } from '../../../src/iso/fat16.ts'
import { freshDirectory } from '../../support/directory.ts'
import { requireProgram } from '../../support/require.ts'
import { testWith } from '../../support/test-with.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const run = promisify(execFile)
const config = 'hostname r1\nend\n'
const long = 'hostname r2\n!\n'.repeat(20_000)
const files = {
  'ios_config.txt': config,
  'ios_config_2.txt': 'x',
  'a name of more than thirteen letters.cfg': long,
  empty: '',
}
const image = () => fatImage('disk0', new Map(Object.entries(files).map(([name, text]) => [name, bytes(text)])))

test('a disk is a FAT16 file system with the files in its root, by their chains of clusters', () => {
  const disk = image()
  const view = new DataView(disk.buffer)
  const [sector, reserved, tables, roots, total, tableSectors] = [
    view.getUint16(11, true),
    view.getUint16(14, true),
    disk[16] ?? 0,
    view.getUint16(17, true),
    view.getUint16(19, true),
    view.getUint16(22, true),
  ]
  expect([sector, total * sector, view.getUint16(510)]).toEqual([512, disk.length, 0x55aa])
  const root = (reserved + tables * tableSectors) * sector
  const data = root + roots * 32
  const found: Record<string, string> = {}
  let name = ''
  for (let at = root; disk[at] !== 0; at += 32) {
    if (disk[at + 11] === 0x0f) {
      const codes = [1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30].map((offset) => view.getUint16(at + offset, true))
      name = String.fromCharCode(...codes).replace(/\0.*$/s, '') + name
    } else if (disk[at + 11] === 0x20) {
      let text = ''
      for (
        let it = view.getUint16(at + 26, true);
        it !== 0 && it < 0xfff8;
        it = view.getUint16(reserved * sector + it * 2, true)
      )
        text += new TextDecoder().decode(disk.subarray(data + (it - 2) * sector, data + (it - 1) * sector))
      found[name] = text.slice(0, view.getUint32(at + 28, true))
      name = ''
    }
  }
  expect(found).toEqual(files)
})

testWith(requireProgram('mcopy'))('mtools reads the files of a disk', async () => {
  const directory = await freshDirectory()
  const path = join(directory, 'disk.img')
  await writeFile(path, image())
  for (const [name, text] of Object.entries(files)) {
    const { stdout } = await run('mtype', ['-i', path, `::${name}`], { maxBuffer: 1 << 20 })
    expect(stdout === text).toBe(true)
  }
})

test.each([
  ['disk0', '../x', /is not a valid file name on a FAT disk/],
  ['disk0', 'a:b', /is not a valid file name on a FAT disk/],
  ['a label of more than eleven', 'x', /^label: expected 1 to 11 letters/],
])('a disk with the label %j and the file %j is refused', (label, name, message) => {
  expect(() => fatImage(label, new Map([[name, bytes('x')]]))).toThrow(
    expect.objectContaining({ status: 400, message: expect.stringMatching(message) }),
  )
})

test('files that do not fit on a disk are refused', () => {
  expect(() => fatImage('disk0', new Map([['x', new Uint8Array(8_200_000)]]))).toThrow(/more than 8192000 bytes/)
})
