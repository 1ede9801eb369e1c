import { ignore } from '../../lib/async/ignore.ts'
import { SerialQueue } from '../../lib/async/serial-queue.ts'
import type { FleetMembers } from '../members/members.ts'
import type { ImageDigests, UploadedImage } from './image-digests.ts'
import { inOrderOf } from './image-order.ts'

/** Most images that wait to be kept. An image beyond it is kept when it is copied to a compute. */
const maxWaiting = 64

/** Images apart from the computes, by their digests (SHA-256): a compute gets one from there. */
export interface StoredImages {
  has(sha256: string): Promise<boolean>
  /** Rejects when the content has another digest, and stores nothing then. */
  write(sha256: string, image: KeptImage): Promise<void>
  read(sha256: string): Promise<KeptImage | undefined>
  /** The path at the gateway from which this compute may read the image for some minutes; undefined when it cannot. */
  addressFor(computeId: string, sha256: string): Promise<string | undefined>
}

export interface KeptImage {
  readonly content: ReadableStream<Uint8Array>
  /** Bytes. */
  readonly size: number
}

/** Images that are still to be kept. When the process ends while it keeps one, the next process tries again. */
export interface PendingReplications {
  /** Does nothing for an image in the list. */
  add(sha256: string): void
  remove(sha256: string): void
}

interface KeeperOptions {
  readonly members: FleetMembers
  readonly digests: Pick<ImageDigests, 'get'>
  readonly kept: StoredImages
  readonly unkept: PendingReplications
  /** Holds the process until the work has ended. */
  readonly waitUntil: (work: Promise<unknown>) => void
  readonly warn: (message: string) => void
}

/** Begins to keep an image. `isAgain`: another attempt for an image that was unkept; it is not added to the unkept images again. */
export type KeepImage = (image: UploadedImage, isAgain?: boolean) => void

/**
 * Copies uploaded images from a compute that has them, one image after the other. `warn` is called for an image that could not be copied,
 * which stays among the unkept images.
 */
export function imageKeeper({ members, digests, kept, unkept, waitUntil, warn }: KeeperOptions): KeepImage {
  const turns = new SerialQueue()
  const waiting = new Set<string>()
  const keep = async ({ kind, name, digest: { sha256 } }: UploadedImage): Promise<void> => {
    if (await kept.has(sha256)) return unkept.remove(sha256)
    let failure: unknown
    for (const member of await inOrderOf(kind, name, await members.all())) {
      // The image may have been removed or replaced meanwhile.
      if ((await digests.get(kind, name))?.sha256 !== sha256) return
      if (!member.isConnected) continue
      const found = await member.agentFor().images.read(kind, name, {}).catch(ignore('another compute may have it'))
      if (found === undefined) continue
      try {
        await kept.write(sha256, found)
        return unkept.remove(sha256)
      } catch (error) {
        failure = error
      } finally {
        found.content.cancel().catch(ignore('it was read to its end'))
      }
    }
    if (failure !== undefined) throw failure
  }
  return (image, isAgain = false) => {
    const { sha256 } = image.digest
    if (!isAgain) unkept.add(sha256)
    if (waiting.has(sha256) || waiting.size >= maxWaiting) return
    waiting.add(sha256)
    const work = turns
      .run(() => keep(image))
      .catch(({ message }: Error) =>
        warn(`The image ${image.name} could not be stored outside the computes: ${message}`),
      )
      .finally(() => waiting.delete(sha256))
    waitUntil(work)
  }
}
