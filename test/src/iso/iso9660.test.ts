import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { isoImage } from '../../../src/iso/iso9660.ts'
import { freshDirectory } from '../../support/directory.ts'
import { requireProgram } from '../../support/require.ts'
import { testWith } from '../../support/test-with.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const run = promisify(execFile)

/** What a reader of Joliet finds in an image: label, and contents by path. */
function contentsOf(image: Uint8Array): { label: string; files: Record<string, string> } {
  const view = new DataView(image.buffer)
  const wide = (at: number, length: number) => {
    const codes = Array.from({ length: Math.floor(length / 2) }, (_, index) => view.getUint16(at + 2 * index))
    return String.fromCharCode(...codes)
  }
  const descriptor = 17 * 2048
  expect([...image.subarray(descriptor, descriptor + 6)]).toEqual([2, ...bytes('CD001')])
  const files: Record<string, string> = {}
  const walk = (sector: number, size: number, above: string) => {
    for (let at = sector * 2048; at < sector * 2048 + size; ) {
      const length = image[at] ?? 0
      if (length === 0) {
        at = (Math.floor(at / 2048) + 1) * 2048
        continue
      }
      const [extent, bytes] = [view.getUint32(at + 2, true), view.getUint32(at + 10, true)]
      expect([view.getUint32(at + 6), view.getUint32(at + 14)]).toEqual([extent, bytes])
      const idLength = image[at + 32] ?? 0
      const isDirectory = ((image[at + 25] ?? 0) & 2) !== 0
      const name = wide(at + 33, idLength)
      if (idLength > 1 && isDirectory) walk(extent, bytes, `${above}${name}/`)
      if (idLength > 1 && !isDirectory)
        files[above + name.replace(/;1$/, '')] = new TextDecoder().decode(
          image.subarray(extent * 2048, extent * 2048 + bytes),
        )
      at += length
    }
  }
  walk(view.getUint32(descriptor + 158, true), view.getUint32(descriptor + 166, true), '')
  return { label: wide(descriptor + 40, 32).trim(), files }
}

test('a CD has its label and its files, with long names and directories', () => {
  const files = {
    'user-data': '#cloud-config\n',
    'meta-data': '',
    'openstack/latest/user_data': 'x'.repeat(5000),
    'ünïcode name.txt': 'one',
    ...Object.fromEntries(
      Array.from({ length: 100 }, (_, index) => [`many/a long name of a file ${index}.conf`, `${index}`]),
    ),
  }
  const image = isoImage('cidata', new Map(Object.entries(files).map(([path, text]) => [path, bytes(text)])))
  expect(contentsOf(image)).toEqual({ label: 'cidata', files })
  expect(image.byteLength % 2048).toBe(0)
})

test('the same files make the same image', () => {
  const make = () => isoImage('config-2', new Map([['a', bytes('1')]]))
  expect(make()).toEqual(make())
})

test('names and labels that no CD can have are refused', () => {
  const make = (path: string, label = 'cidata') => isoImage(label, new Map([[path, bytes('')]]))
  for (const path of ['', '/a', 'a//b', '../a', 'a/..', 'a'.repeat(65), 'a:b', 'a\\b', 'a/b/c/d/e/f/g/h/i'])
    expect(() => make(path), path).toThrow(/^files: /)
  for (const label of ['', ' a', 'a label that is too long', 'ä', 'a\n'])
    expect(() => make('a', label)).toThrow(/^label: /)
  const both = new Map([
    ['a', bytes('')],
    ['a/b', bytes('')],
  ])
  expect(() => isoImage('x', both)).toThrow('is below a, which is a file')
})

testWith(requireProgram('bsdtar'))('other programs read it', async () => {
  const file = join(await freshDirectory(), 'a.iso')
  await writeFile(file, isoImage('cidata', new Map([['openstack/latest/user_data', bytes('one\n')]])))
  const { stdout } = await run('bsdtar', ['-xOf', file, 'openstack/latest/user_data'])
  expect(stdout).toBe('one\n')
})
