import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { KeyedMutex } from '../../../src/async/keyed-mutex.ts'
import type { Hasher, ImageDigest, ImageDigests } from '../../../src/gateway/image-digests.ts'
import type { ImageKindName } from '../../../src/model/image.ts'
import type { Log } from '../log/log.ts'
import { requireSpace, translated } from '../storage/disk.ts'
import { readDurable, writeDurable } from '../storage/durable-file.ts'
import { putAside } from '../storage/secret-file.ts'

const FileContent = Type.Object({
  version: Type.Literal(1),
  /** `{kind}/{name}` -> digest. */
  images: Type.Record(
    Type.String(),
    Type.Object({ sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }), byAdmin: Type.Boolean() }),
  ),
})

interface ImageDigestFileOptions {
  readonly data: string
  readonly minFreeMb: () => number
  readonly log: Log
}

/** The digests of images that were uploaded through the gateway, in `{data}/image-digests.json`. */
export class ImageDigestFile implements ImageDigests {
  readonly #options: ImageDigestFileOptions
  readonly #path: string
  readonly #serial = new KeyedMutex()
  #images: ReadonlyMap<string, ImageDigest>

  private constructor(options: ImageDigestFileOptions, path: string, images: ReadonlyMap<string, ImageDigest>) {
    this.#options = options
    this.#path = path
    this.#images = images
  }

  static async open(options: ImageDigestFileOptions): Promise<ImageDigestFile> {
    const path = join(options.data, 'image-digests.json')
    const found = await readDurable(path, (text) => {
      const value: unknown = JSON.parse(text)
      if (!Check(FileContent, value)) throw new Error('not the digests of images')
      return value.images
    })
    if (found?.damaged === true) options.log.warn({ path }, 'the digests of images are read from the copy before')
    if (found === undefined && (await putAside(path))) {
      options.log.error({ path }, 'the digests of images cannot be read and were put aside: upload the images again')
    }
    return new ImageDigestFile(options, path, new Map(Object.entries(found?.value ?? {})))
  }

  async get(kind: ImageKindName, name: string): Promise<ImageDigest | undefined> {
    return this.#images.get(`${kind}/${name}`)
  }

  put(kind: ImageKindName, name: string, digest: ImageDigest): Promise<void> {
    return this.#serial.run('', async () => {
      await requireSpace(this.#options.data, this.#options.minFreeMb())
      await this.#write(new Map(this.#images).set(`${kind}/${name}`, digest))
    })
  }

  remove(kind: ImageKindName, name: string): Promise<void> {
    return this.#serial.run('', async () => {
      const images = new Map(this.#images)
      if (images.delete(`${kind}/${name}`)) await this.#write(images)
    })
  }

  async #write(images: ReadonlyMap<string, ImageDigest>): Promise<void> {
    const content = { version: 1, images: Object.fromEntries(images) }
    await translated('The digest of the image was not saved', () =>
      writeDurable(this.#path, `${JSON.stringify(content, null, 2)}\n`),
    )
    this.#images = images
  }
}

export function nodeHasher(): Hasher {
  const hash = createHash('sha256')
  return { update: (bytes) => void hash.update(bytes), hex: async () => hash.digest('hex') }
}
