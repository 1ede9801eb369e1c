import type { KeptImage, StoredImages } from '../../../src/fleet/images/kept-images.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { keptImagesPath } from '../../../src/model/kept-image.ts'
import type { Env } from './env.ts'
import { Sealer } from './sealed.ts'

/** How long a download can begin at the address of an image, ms. */
const addressMs = 10 * 60_000
/** The owner with which addresses are sealed (see `Sealer`); no compute has such an id. */
const owner = 'address/image'
/** Most bytes of an object that is stored in one piece: 5 GiB less 5 MiB (developers.cloudflare.com/r2, limits). */
const maxBytes = 5 * 2 ** 30 - 5 * 2 ** 20
const digestForm = /^[0-9a-f]{64}$/

interface BucketOptions {
  readonly organization: string
  readonly secret: string
  /** Whether an image of this digest is still wanted. */
  readonly isUsed: (sha256: string) => boolean
  /** Whether a compute has joined, so that it knows where the gateway is. */
  readonly isJoined: (computeId: string) => boolean
}

/**
 * Images in a bucket of R2, as `{organization}/{sha256}`: an organization has only images that it has uploaded itself. Computes that have
 * joined read them at an address of the Worker that is sealed: it reveals nothing, and is valid for some minutes.
 */
export class ImageBucket implements StoredImages {
  readonly #bucket: R2Bucket
  readonly #options: BucketOptions
  readonly #sealer: Sealer

  constructor(bucket: R2Bucket, options: BucketOptions) {
    this.#bucket = bucket
    this.#options = options
    this.#sealer = new Sealer(options.secret)
  }

  async has(sha256: string): Promise<boolean> {
    return (await this.#bucket.head(this.#keyOf(sha256))) !== null
  }

  async write(sha256: string, { content, size }: KeptImage): Promise<void> {
    if (size > maxBytes) throw new Error(`it has ${size} bytes, at most ${maxBytes} can be stored`)
    const key = this.#keyOf(sha256)
    const { readable, writable } = new FixedLengthStream(size)
    const sending = content.pipeTo(writable)
    sending.catch(ignore('the bucket refuses what is not complete'))
    await this.#bucket.put(key, readable, { sha256 })
    await sending
    if (!this.#options.isUsed(sha256)) await this.remove(sha256)
  }

  async read(sha256: string): Promise<KeptImage | undefined> {
    const found = await this.#bucket.get(this.#keyOf(sha256))
    return found === null ? undefined : { content: found.body, size: found.size }
  }

  async remove(sha256: string): Promise<void> {
    await this.#bucket.delete(this.#keyOf(sha256))
  }

  /** Removes all images of the organization. */
  async clear(): Promise<void> {
    for (;;) {
      const { objects, truncated } = await this.#bucket.list({ prefix: `${this.#options.organization}/` })
      if (objects.length > 0) await this.#bucket.delete(objects.map(({ key }) => key))
      if (!truncated) return
    }
  }

  async addressFor(computeId: string, sha256: string): Promise<string | undefined> {
    if (!this.#options.isJoined(computeId) || !(await this.has(sha256))) return undefined
    const address: Address = [this.#keyOf(sha256), Date.now() + addressMs]
    return keptImagesPath + encodeURIComponent(await this.#sealer.seal(JSON.stringify(address), owner))
  }

  #keyOf(sha256: string): string {
    if (!digestForm.test(sha256)) throw new Error('A digest has 64 hexadecimal digits')
    return `${this.#options.organization}/${sha256}`
  }
}

type Address = [key: string, until: number]

/** Whether a request is for an image at such an address. A cheap test, as every request passes it. */
export const isKeptImage = ({ url, method }: Request, { IMAGES }: Env): boolean =>
  IMAGES !== undefined && method === 'GET' && url.includes(keptImagesPath)

/** The image at an address that `addressFor` gave; undefined for every other path. */
export async function keptImage({ url }: Request, env: Env): Promise<Response | undefined> {
  const { pathname } = new URL(url)
  if (!pathname.startsWith(keptImagesPath)) return undefined
  try {
    const sealed = decodeURIComponent(pathname.slice(keptImagesPath.length))
    const [key, until] = JSON.parse(await new Sealer(env.FLEET_KEY ?? '').open(sealed, owner)) as Address
    const found = until < Date.now() ? undefined : await env.IMAGES?.get(key)
    if (found === null || found === undefined) return undefined
    const headers = { 'Content-Type': 'application/octet-stream', 'X-Content-Type-Options': 'nosniff' }
    return new Response(found.body, { headers: { ...headers, 'Cache-Control': 'no-store' } })
  } catch {
    // It was not made by this gateway.
    return undefined
  }
}
