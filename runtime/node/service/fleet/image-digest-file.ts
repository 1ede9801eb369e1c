import { createHash } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import type { Hasher, ImageDigest, ImageDigests } from '../../../../src/fleet/images/image-digests.ts'
import { SerialQueue } from '../../../../src/lib/async/serial-queue.ts'
import type { ImageKindName } from '../../../../src/model/image.ts'
import { jsonOf } from '../../engine/storage/durable-file.ts'
import type { ServiceRecords } from '../../engine/storage/service-records.ts'

const FileContent = Type.Object({
  version: Type.Literal(1),
  /** `{kind}/{name}` -> digest. */
  images: Type.Record(
    Type.String(),
    Type.Object({ sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }), byAdmin: Type.Boolean() }),
  ),
})

const format = {
  file: 'image-digests.json',
  name: 'the digests of images',
  parse: jsonOf(FileContent),
  lost: 'upload the images again',
}

/** The digests of images that were uploaded through the gateway, in `{data}/image-digests.json`. */
export class ImageDigestFile implements ImageDigests {
  readonly #files: ServiceRecords
  readonly #changes = new SerialQueue()
  #images: ReadonlyMap<string, ImageDigest>

  private constructor(files: ServiceRecords, images: ReadonlyMap<string, ImageDigest>) {
    this.#files = files
    this.#images = images
  }

  static async open(files: ServiceRecords): Promise<ImageDigestFile> {
    const { value } = await files.read(format)
    return new ImageDigestFile(files, new Map(Object.entries(value?.images ?? {})))
  }

  async get(kind: ImageKindName, name: string): Promise<ImageDigest | undefined> {
    return this.#images.get(`${kind}/${name}`)
  }

  requireSpace(): Promise<void> {
    return this.#files.requireSpace(format)
  }

  put(kind: ImageKindName, name: string, digest: ImageDigest): Promise<void> {
    return this.#changes.run(() => this.#write(new Map(this.#images).set(`${kind}/${name}`, digest)))
  }

  remove(kind: ImageKindName, name: string): Promise<void> {
    return this.#changes.run(async () => {
      const images = new Map(this.#images)
      if (images.delete(`${kind}/${name}`)) await this.#write(images)
    })
  }

  rename(kind: ImageKindName, name: string, to: string): Promise<void> {
    return this.#changes.run(async () => {
      const images = new Map(this.#images)
      const digest = images.get(`${kind}/${name}`)
      const isKnown = images.delete(`${kind}/${name}`)
      const wasTaken = images.delete(`${kind}/${to}`)
      if (digest !== undefined) images.set(`${kind}/${to}`, digest)
      if (isKnown || wasTaken) await this.#write(images)
    })
  }

  async #write(images: ReadonlyMap<string, ImageDigest>): Promise<void> {
    await this.#files.write(format, { version: 1, images: Object.fromEntries(images) })
    this.#images = images
  }
}

export function nodeHasher(): Hasher {
  const hash = createHash('sha256')
  return { update: (bytes) => void hash.update(bytes), hex: async () => hash.digest('hex') }
}
