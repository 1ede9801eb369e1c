import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { DiskCreate } from '../../../../src/model/image.ts'
import { emptyDisk } from '../../../support/empty-disk.ts'
import { kind, openImages } from '../../../support/images.ts'
import { requireProgram } from '../../../support/require.ts'
import { testWith } from '../../../support/test-with.ts'

testWith(requireProgram('qemu-img')).for(['qcow2', 'vmdk', 'vdi'] as const)(
  'the list of images says how large the disk in a %s is',
  async (format) => {
    const { images } = await openImages()
    await images.createDisk(kind, { path: 'new', format, size: 1024 } as DiskCreate)
    expect(await images.list(kind)).toMatchObject([{ path: 'new', virtual_size: 2 ** 30 }])
  },
)

test('files without such a header have no size but their own', async () => {
  const { images, own } = await openImages()
  await writeFile(join(own, 'raw.img'), Buffer.alloc(4096))
  await writeFile(join(own, 'short.qcow2'), emptyDisk().subarray(0, 100))
  for (const listed of await images.list(kind)) expect(listed).not.toHaveProperty('virtual_size')
})
