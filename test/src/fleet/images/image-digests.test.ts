import { expect, test } from 'vitest'
import { UploadDigests } from '../../../../src/fleet/images/image-digests.ts'
import { bodyOf, textOf } from '../../../support/bodies.ts'
import { MemoryDigests, sha256Of, testHasher } from '../../../support/memory-digests.ts'

test('parts of another user do not belong to the digest of an upload of an administrator', async () => {
  const store = new MemoryDigests()
  const uploads = new UploadDigests(store, testHasher)
  const part = async (byAdmin: boolean, text: string, first: number, isWhole: boolean) => {
    const range = { part: { first, last: first + text.length - 1, total: 8 }, digests: [] }
    const watched = uploads.watch({ kind: 'iou', name: 'router.bin', byAdmin }, bodyOf(text), range)
    await textOf(watched.content)
    await watched.taken(isWhole)
  }
  await part(true, 'good', 0, false)
  await part(false, 'evil', 0, false)
  await part(true, 'rest', 4, true)
  expect(await store.get('iou', 'router.bin')).toEqual({ sha256: sha256Of('goodrest'), byAdmin: true })
})
