import { ignore } from '../async/ignore.ts'
import { SerialQueue } from '../async/serial-queue.ts'
import type { ImageDigests, UploadedImage } from './image-digests.ts'
import type { FleetMembers } from './members.ts'

/** Images that wait to be kept. One more is kept when it is brought to a compute. */
const maxWaiting = 64

/** Images apart from the computes, by their digests (SHA-256): a compute gets one from there. */
export interface KeptImages {
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

interface KeeperOptions {
  readonly members: FleetMembers
  readonly digests: Pick<ImageDigests, 'get'>
  readonly kept: KeptImages
  /** Holds the process until the work has ended. */
  readonly waitUntil: (work: Promise<unknown>) => void
  readonly warn: (message: string) => void
}

/** Copies what was uploaded from a compute that has it, one image after the other. What fails is told to `warn`. */
export function imageKeeper({
  members,
  digests,
  kept,
  waitUntil,
  warn,
}: KeeperOptions): (image: UploadedImage) => void {
  const turns = new SerialQueue()
  const waiting = new Set<string>()
  const keep = async ({ kind, name, digest: { sha256 } }: UploadedImage): Promise<void> => {
    if (await kept.has(sha256)) return
    let failure: unknown
    for (const { isConnected, agent } of await members.all()) {
      // It may have been removed, or replaced by another one.
      if ((await digests.get(kind, name))?.sha256 !== sha256) return
      if (!isConnected) continue
      const found = await agent.images.read(kind, name, {}).catch(ignore('another compute may have it'))
      if (found === undefined) continue
      try {
        await kept.write(sha256, found)
        return
      } catch (error) {
        failure = error
      } finally {
        found.content.cancel().catch(ignore('it was read to its end'))
      }
    }
    if (failure !== undefined) throw failure
  }
  return (image) => {
    const { sha256 } = image.digest
    if (waiting.has(sha256) || waiting.size >= maxWaiting) return
    waiting.add(sha256)
    const work = turns
      .run(() => keep(image))
      .catch(({ message }: Error) => warn(`The image ${image.name} is not kept apart from the computes: ${message}`))
      .finally(() => waiting.delete(sha256))
    waitUntil(work)
  }
}
