import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { isImageOf } from '../../runtime/node/drivers/index.ts'
import { Images, type ImagesOptions } from '../../runtime/node/engine/images/images.ts'
import { Checksums } from '../../runtime/node/engine/storage/checksums.ts'
import { openRecords } from './service-records.ts'

export const kind = 'machine-emulator'

export interface OpenImages {
  readonly images: Images
  /** The data directory. */
  readonly data: string
  /** Our own directory of images. */
  readonly own: string
}

/** Images in a fresh data directory, in local mode and without a floor of free space. */
export async function openImages({
  data: given,
  ...options
}: Partial<ImagesOptions> & { data?: string } = {}): Promise<OpenImages> {
  const { records, data } = await openRecords(given === undefined ? {} : { data: given })
  const checksums = new Checksums()
  const images = new Images({
    records,
    additional: () => [],
    isLocal: () => true,
    isImage: isImageOf,
    checksums,
    minFreeMb: () => 0,
    maxGb: () => 100,
    bodyTimeoutMs: 5000,
    ...options,
  })
  onTestFinished(async () => {
    await images.close()
    await checksums.close()
  })
  await images.open()
  return { images, data, own: join(data, 'images', kind) }
}
