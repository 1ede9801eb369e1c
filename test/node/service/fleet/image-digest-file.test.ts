import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ImageDigestFile } from '../../../../runtime/node/service/fleet/image-digest-file.ts'
import { openRecords } from '../../../support/service-records.ts'

const digest = { sha256: 'a'.repeat(64), byAdmin: true }

test('a digest goes to the new name of its image, in place of the one that was there', async () => {
  const { records } = await openRecords()
  const first = await ImageDigestFile.open(records)
  const other = { sha256: 'b'.repeat(64), byAdmin: false }
  await Promise.all([
    first.put('iou', 'a.bin', digest),
    first.put('iou', 'b.bin', other),
    first.put('iou', 'c.bin', other),
  ])
  await first.rename('iou', 'a.bin', 'b.bin')
  await first.rename('iou', 'unknown.bin', 'c.bin')
  const second = await ImageDigestFile.open(records)
  const known = await Promise.all(['a.bin', 'b.bin', 'c.bin'].map((name) => second.get('iou', name)))
  expect(known).toEqual([undefined, digest, undefined])
})

test('digests of images are stored over a restart, and an unreadable file is renamed', async () => {
  const { records, data, said } = await openRecords()
  const open = () => ImageDigestFile.open(records)
  const first = await open()
  await Promise.all([first.put('iou', 'a.bin', digest), first.put('machine-emulator', 'b.img', digest)])
  await first.remove('machine-emulator', 'b.img')
  const second = await open()
  expect([await second.get('iou', 'a.bin'), await second.get('machine-emulator', 'b.img')]).toEqual([digest, undefined])
  expect(said).toEqual([])
  for (const name of ['image-digests.json', 'image-digests.json.bak']) await writeFile(join(data, name), '{')
  const third = await open()
  expect(await third.get('iou', 'a.bin')).toBeUndefined()
  expect(said).toEqual([expect.stringContaining('renamed to image-digests.json.damaged')])
  expect(await readFile(join(data, 'image-digests.json.damaged'), 'utf8')).toBe('{')
})
