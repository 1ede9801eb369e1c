import type { ReplicationOutcome } from '../../host-agent.ts'
import { ignore } from '../../lib/async/ignore.ts'
import { KeyedMutex } from '../../lib/async/keyed-mutex.ts'
import { ApiError } from '../../lib/errors/api-error.ts'
import { quotedImage } from '../../lib/errors/image-errors.ts'
import type { Caller } from '../../model/access/caller.ts'
import { type ImageKindName, imageKinds } from '../../model/image.ts'
import type { FleetMembers, Member } from '../members/members.ts'
import type { ImageDigest, ImageDigests, UploadedImage } from './image-digests.ts'
import { inOrderOf } from './image-order.ts'
import type { StoredImages } from './kept-images.ts'

/** Brings an image to a compute. */
export type ReplicateImage = (computeId: string, image: string) => Promise<ReplicationOutcome>

/** Images that are kept apart from the computes, and the function that keeps one more. */
interface Keeping {
  readonly kept: StoredImages
  readonly keep: (image: UploadedImage) => void
}

/** Most images that are brought for one request: no node has more. */
export const maxImages = 12

/**
 * Brings images to computes that lack them, such as one that joined after they were stored. Only an image that was uploaded through
 * the gateway is copied: the gateway recorded its digest then, and the receiver checks the copy by it. The
 * claim of a compute to have an image is not trusted. Without `digests` no image is copied. Simultaneous requests for one image share
 * a copy. An image that is kept apart from the computes is copied from there.
 */
export function imageCopies(
  members: FleetMembers,
  digests: Pick<ImageDigests, 'get'> | undefined,
  keeping?: Keeping,
): ReplicateImage {
  /** One copy at a time for each compute. */
  const turns = new KeyedMutex()
  const underWay = new Map<string, Promise<ReplicationOutcome>>()
  return async (computeId, image) => {
    const to = await members.find(computeId)
    // An absolute path is one of that machine.
    if (digests === undefined || to === undefined || image.startsWith('/')) return undefined
    const key = `${to.id} ${image}`
    const copying =
      underWay.get(key) ??
      turns
        .run(to.id, () => copyOfAnyKind(members, digests, { image, to, keeping }))
        .finally(() => underWay.delete(key))
    underWay.set(key, copying)
    return copying
  }
}

/** Copies an image of unknown kind: the compute does not name the kind of the image that it lacks. */
async function copyOfAnyKind(
  members: FleetMembers,
  digests: Pick<ImageDigests, 'get'>,
  wish: Pick<Copy, 'image' | 'to' | 'keeping'>,
): Promise<ReplicationOutcome> {
  const known = await Promise.all(
    imageKinds.map(async (kind) => ({ ...wish, kind, digest: await digests.get(kind, wish.image) })),
  )
  const uploaded = known.filter(({ digest }) => digest !== undefined)
  let found: ReplicationOutcome
  for (const wanted of uploaded.length > 0 ? uploaded : known) {
    const outcome = await copy(members, wanted)
    if (found !== 'copied') found = outcome ?? found
  }
  return found
}

/** Undefined when no other compute has the image; a reason when the gateway has no digest of it, or all computes have other content. */
async function copy(members: FleetMembers, wanted: Copy): Promise<ReplicationOutcome> {
  const { kind, image, to, digest, keeping } = wanted
  if (await copyKept(wanted)) return 'copied'
  let has = 0
  let isBroken = false
  const all = await members.all()
  for (const from of keeping === undefined ? all : await inOrderOf(kind, image, all)) {
    if (!from.isConnected || from.id === to.id) continue
    const { images } = from.agentFor()
    const found = await images.read(kind, image, {}).catch(() => undefined)
    if (found === undefined) continue
    const { content, size } = found
    has += 1
    try {
      if (digest === undefined) break
      const digests = [{ algorithm: 'sha-256' as const, hex: digest.sha256 }]
      await to.agentFor(onBehalfOf(digest)).images.write(kind, image, content, { size, digests })
      keeping?.keep({ kind, name: image, digest })
      return 'copied'
    } catch (error) {
      if (!(error instanceof ApiError) || ofReceiver.has(error.status)) throw error
      // The digest was another one (400), or the copy broke off: the next compute may have the right image.
      if (error.status !== 400) isBroken = true
    } finally {
      content.cancel().catch(ignore('the image may have been refused before its content was read'))
    }
  }
  if (has === 0 || isBroken) return undefined
  const quoted = quotedImage(image)
  const why =
    digest === undefined
      ? 'it cannot be copied from other computes because the gateway has no digest of it'
      : 'no compute has the version that was uploaded through the gateway'
  const toDo = `upload it to the gateway with POST /v2/compute/${kind}/images/ and its name, then try again`
  return { refused: `image: ${quoted} is not on the compute ${to.name}, and ${why}; ${toDo}` }
}

/**
 * Whether a compute got an image that is kept apart from the computes. A compute that has joined reads it at the gateway itself; one of
 * an older version, which does not, gets it as an upload.
 */
async function copyKept({ kind, image, to, digest, keeping }: Copy): Promise<boolean> {
  if (digest === undefined || keeping === undefined) return false
  const { kept } = keeping
  const digests = [{ algorithm: 'sha-256' as const, hex: digest.sha256 }]
  const { images } = to.agentFor(onBehalfOf(digest))
  const isStored = (writing: Promise<unknown>) =>
    writing.then(
      () => true,
      (error: unknown) => {
        if (!(error instanceof ApiError) || ofReceiver.has(error.status)) throw error
        return false
      },
    )
  const contentAt = await kept.addressFor(to.id, digest.sha256)
  const nothing = new Blob([]).stream()
  if (contentAt !== undefined && (await isStored(images.write(kind, image, nothing, { digests, contentAt }))))
    return true
  const found = await kept.read(digest.sha256)
  if (found === undefined) return false
  const { content, size } = found
  try {
    return await isStored(images.write(kind, image, content, { size, digests }))
  } finally {
    content.cancel().catch(ignore('the image may have been refused before its content was read'))
  }
}

/** Why the compute that lacks an image cannot store it: not allowed there, too large, or its disk is full. */
const ofReceiver: ReadonlySet<number> = new Set([403, 413, 507])

interface Copy {
  readonly kind: ImageKindName
  readonly image: string
  readonly to: Member
  readonly digest: ImageDigest | undefined
  readonly keeping: Keeping | undefined
}

/** The gateway copies on behalf of the client that uploaded the image. */
const onBehalfOf = ({ byAdmin }: ImageDigest): Caller => ({ isDirect: false, mayExecute: byAdmin })
