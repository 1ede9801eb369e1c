import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { Images, type ImagesOptions } from '../../runtime/node/images/images.ts'
import { Checksums } from '../../runtime/node/storage/checksums.ts'
import { freshDirectory } from './directory.ts'

export const kind = 'machine-emulator'

export interface OpenImages {
  readonly images: Images
  /** The data directory. */
  readonly data: string
  /** Our own directory of images. */
  readonly own: string
}

/** Images in a fresh data directory, in local mode and without a floor of free space. */
export async function openImages(options: Partial<ImagesOptions> = {}): Promise<OpenImages> {
  const data = options.dataDirectory ?? (await freshDirectory())
  const checksums = new Checksums()
  const images = new Images({
    dataDirectory: data,
    additional: () => [],
    isLocal: () => true,
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
