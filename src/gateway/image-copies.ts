import { ignore } from '../async/ignore.ts'
import { KeyedMutex } from '../async/keyed-mutex.ts'
import type { Caller } from '../auth/caller.ts'
import { ApiError, missingImage } from '../errors/api-error.ts'
import type { NodeKindName } from '../kinds/node.ts'
import { type ImageKindName, imageKinds } from '../model/image.ts'
import type { ImageDigest, ImageDigests } from './image-digests.ts'
import type { FleetMembers, Member } from './members.ts'
import type { ProjectLocator } from './project-locator.ts'

/** Images that are brought for one request: no node has more. */
const maxImages = 12

/** What became of an image that a compute lacks; undefined: no other compute has it. */
export type Outcome = 'brought' | { readonly refused: string } | undefined

/** Brings an image to the compute that has the project. */
export type BringImage = (projectId: string, kind: NodeKindName, image: string) => Promise<Outcome>

/** Does something with a node; each image that its compute lacks is brought there, and it is done again. */
export async function withImages<T>(
  bring: BringImage,
  { projectId, kind }: { projectId: string; kind: NodeKindName },
  work: () => Promise<T>,
): Promise<T> {
  const brought = new Set<string>()
  for (;;) {
    try {
      return await work()
    } catch (error) {
      const image = error instanceof ApiError ? error.extra.image : undefined
      if (image === undefined || brought.has(image) || brought.size === maxImages) throw error
      brought.add(image)
      const outcome = await bring(projectId, kind, image).catch(() => undefined)
      if (outcome !== 'brought') throw outcome === undefined ? error : missingImage(outcome.refused, image)
    }
  }
}

/**
 * Brings images to computes that lack them, such as one that joined after they were stored. Only what was uploaded through the gateway is
 * brought: its digest was recorded then, and the compute that gets a copy looks whether it is that image. What a compute says that it
 * has is no reason to give it to another.
 */
export class ImageCopies {
  readonly #members: FleetMembers
  readonly #locator: ProjectLocator
  readonly #digests: Pick<ImageDigests, 'get'> | undefined
  /** One after the other for each compute. */
  readonly #turns = new KeyedMutex()
  readonly #underWay = new Map<string, Promise<Outcome>>()

  /** Without `digests` nothing is brought. */
  constructor(members: FleetMembers, locator: ProjectLocator, digests: Pick<ImageDigests, 'get'> | undefined) {
    this.#members = members
    this.#locator = locator
    this.#digests = digests
  }

  /** See `BringImage`. What is asked for several times at once is copied once. */
  readonly bring: BringImage = async (projectId, kind, image) => {
    const digests = this.#digests
    const to = await this.#locator.find(projectId)
    // An absolute path is one of that machine.
    if (digests === undefined || to === undefined || !isImageKind(kind) || image.startsWith('/')) return undefined
    const key = `${to.id} ${kind} ${image}`
    let copying = this.#underWay.get(key)
    if (copying === undefined) {
      copying = this.#turns
        .run(to.id, async () => this.#copy({ kind, image, to }, await digests.get(kind, image)))
        .finally(() => this.#underWay.delete(key))
      this.#underWay.set(key, copying)
    }
    return copying
  }

  /** Undefined when no other compute has it; a reason when those that have it, have another one, or none may be trusted to. */
  async #copy({ kind, image, to }: Copy, digest: ImageDigest | undefined): Promise<Outcome> {
    let has = 0
    let isBroken = false
    for (const from of await this.#members.all()) {
      if (!from.isConnected || from.id === to.id) continue
      const found = await from.agent.images.read(kind, image, {}).catch(() => undefined)
      if (found === undefined) continue
      const { content, size } = found
      has += 1
      try {
        if (digest === undefined) break
        const digests = [{ algorithm: 'sha-256' as const, hex: digest.sha256 }]
        await to.agentFor(onBehalfOf(digest)).images.write(kind, image, content, { size, digests })
        return 'brought'
      } catch (error) {
        if (!(error instanceof ApiError) || ofReceiver.has(error.status)) throw error
        // It was another image (400), or it broke off: the next compute may have the right one.
        if (error.status !== 400) isBroken = true
      } finally {
        content.cancel().catch(ignore('it may have been refused before anything of it was read'))
      }
    }
    if (has === 0 || isBroken) return undefined
    const quoted = JSON.stringify(image.slice(0, 200))
    const why =
      digest === undefined
        ? 'the gateway has no digest of it, so it is not copied from the computes that have it'
        : 'no compute has it as it was uploaded through the gateway'
    const wanted = `upload it by POST /v2/compute/${kind}/images/{filename} at the gateway, then try again`
    return { refused: `image: ${quoted} is not on the compute ${to.name}, and ${why}; ${wanted}` }
  }
}

/** Why the compute that lacks an image cannot store it: not allowed there, too large, or its disk is full. */
const ofReceiver: ReadonlySet<number> = new Set([403, 413, 507])

interface Copy {
  readonly kind: ImageKindName
  readonly image: string
  readonly to: Member
}

/** The gateway copies on behalf of who uploaded the image. */
const onBehalfOf = ({ byAdmin }: ImageDigest): Caller => ({ isDirect: false, mayExecute: byAdmin })

const isImageKind = (kind: string): kind is ImageKindName => (imageKinds as readonly string[]).includes(kind)
