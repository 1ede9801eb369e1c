import type { ImageAgent, UploadProgress } from '../../host-agent.ts'
import { ignore } from '../../lib/async/ignore.ts'
import { mapLimit } from '../../lib/async/map-limit.ts'
import { ApiError, conflict } from '../../lib/errors/api-error.ts'
import { noSuchImage, quotedImage } from '../../lib/errors/image-errors.ts'
import { byProject, type ImageKindName, type ImageUse } from '../../model/image.ts'
import { type FanOut, longTimeouts, silentMs } from '../members/fan-out.ts'
import { atCompute, noCompute } from '../members/member-errors.ts'
import type { Member } from '../members/members.ts'
import { splitStream } from '../members/shared-stream.ts'
import type { RecordedNames, UploadDigests } from './image-digests.ts'
import { inOrderOf } from './image-order.ts'

/** Most nodes that an error names. */
const maxNodes = 5

interface GatewayImagesOptions {
  readonly uploads: UploadDigests | undefined
  /** Whether the caller is an administrator. */
  readonly byAdmin: boolean
  /** Whether images are kept apart from the computes, too. */
  readonly isKept: boolean
}

/**
 * A lab may be placed on any compute: an upload goes to every connected compute, a download comes from the first that has the image. A
 * compute that joins later gets an image when a node needs it; see `imageCopies`. The digests of uploads are recorded for that. Where images
 * are kept apart from the computes, an upload goes to one compute, and the others get the image from there when a node needs it.
 */
export function gatewayImages(fanOut: FanOut, { uploads, byAdmin, isKept }: GatewayImagesOptions): ImageAgent {
  /**
   * The connected computes that get an image of this name: where it is kept apart, those that have one already, else one that is the same for
   * each part of an upload.
   */
  const receivers = async (kind: ImageKindName, name: string): Promise<readonly Member[]> => {
    const there = await fanOut.present()
    if (!isKept || there.length < 2) return there
    const isThere = await mapLimit(there, (member) => hasImage(fanOut.agentOf(member), kind, name), undefined, silentMs)
    const having = there.filter((_, index) => isThere[index])
    return having.length > 0 ? having : (await inOrderOf(kind, name, there)).slice(0, 1)
  }
  return {
    list: (kind) =>
      fanOut.union(
        ({ images }) => images.list(kind),
        ({ path }) => path,
        longTimeouts,
      ),
    async uses(kind) {
      const found = new Map<string, ImageUse>()
      for (const { member, value } of await fanOut.ask((agent) => usesAt(agent, kind), longTimeouts)) {
        for (const use of value) {
          const first = found.get(use.path)
          const all = first === undefined ? use : also(first, use)
          found.set(use.path, { ...all, compute_ids: [...(first?.compute_ids ?? []), member.id] })
        }
      }
      return [...found.values()]
    },
    read: (kind, name, options) =>
      fanOut.first(({ images }) => images.read(kind, name, options), {
        lacks: ({ extra }) => extra.image !== undefined,
        discard: ({ content }) => void content.cancel().catch(ignore('nobody reads it')),
        ...(isKept && { order: (members: readonly Member[]) => inOrderOf(kind, name, members) }),
      }),
    async write(kind, name, given, options) {
      const members = await receivers(kind, name)
      const [only] = members
      if (only === undefined) throw noCompute()
      // Before anything is sent: an image that is stored without its digest cannot be copied to other computes.
      await uploads?.requireSpace()
      const watched = uploads?.watch({ kind, name, byAdmin }, given, options)
      const content = watched?.content ?? given
      const isAlone = members.length === 1
      const streams = isAlone ? [content] : splitStream(content, members.length)
      const work = members.map(async (member, index) => {
        try {
          return await fanOut.agentOf(member).images.write(kind, name, streams[index] as typeof content, options)
        } catch (error) {
          streams[index]?.cancel().catch(ignore('the upload has failed; the others must not wait for it'))
          throw isAlone ? error : atCompute(error, member)
        }
      })
      // The first failure is thrown after all have ended.
      const failed = (await Promise.allSettled(work)).find(({ status }) => status === 'rejected')
      if (failed?.status === 'rejected') throw failed.reason
      const progress = least(await Promise.all(work))
      await watched?.taken(progress.done)
      return progress
    },
    async remove(kind, name) {
      const removed: string[] = []
      let found = false
      let missing: unknown
      const digest = isKept ? await uploads?.get(kind, name) : undefined
      const remove = async (isRemoved: () => void = () => {}) => {
        await requireUnused(fanOut, kind, name)
        await fanOut.order(async ({ images }, member) => {
          try {
            await images.remove(kind, name)
            found = true
            removed.push(member.name)
            isRemoved()
          } catch (error) {
            // Not every compute has every image.
            if (!(error instanceof ApiError) || error.status !== 404) throw error
            missing = error
          }
        })
        // It is nowhere but apart from the computes. Those that lack it do not say who may remove it.
        if (found || digest === undefined || (digest.byAdmin && !byAdmin)) return
        found = true
        isRemoved()
      }
      const removing = uploads === undefined ? remove() : uploads.whileRemoved(kind, name, remove)
      await removing.catch((error: unknown) => {
        throw removed.length === 0 ? error : withMore(error, `it was deleted on ${removed.join(', ')}`)
      })
      if (!found) throw missing
    },
    async rename(kind, name, to) {
      const rename = async ({ digest, isTaken }: Partial<RecordedNames> = {}) => {
        if (isKept && isTaken)
          throw conflict(
            `path: the gateway already has an image ${quotedImage(to)}; delete it first, or choose another name`,
            {
              code: 'name-taken',
            },
          )
        const missing = await renameOnComputes(fanOut, { kind, name, to })
        // It is nowhere but apart from the computes. Those that lack it do not say who may rename it.
        const isOnlyKept = isKept && digest !== undefined && (byAdmin || !digest.byAdmin)
        if (missing !== undefined && !isOnlyKept) throw missing
      }
      await (uploads === undefined || name === to ? rename() : uploads.whileRenamed(kind, name, to, rename))
    },
    async progress(kind, name, total) {
      const all = await receivers(kind, name)
      const said = await fanOut.order(({ images }) => images.progress(kind, name, total), all)
      return least(said.map(({ value }) => value))
    },
    diskTools: () =>
      fanOut.union(
        ({ images }) => images.diskTools(),
        ({ path }) => path,
      ),
    async createDisk(kind, input) {
      await fanOut.order(({ images }) => images.createDisk(kind, input))
      await uploads?.record(kind, input.path, undefined)
    },
    async extendDisk(kind, input) {
      // The digest is removed before: a copy of the old content must not replace the extended disk on a compute.
      await uploads?.record(kind, input.path, undefined)
      await fanOut.order(({ images }) => images.extendDisk(kind, input), await receivers(kind, input.path))
    },
  }
}

/** Whether a compute says that it has an image of this name. */
async function hasImage(
  { images }: { readonly images: ImageAgent },
  kind: ImageKindName,
  name: string,
): Promise<boolean> {
  const found = await images.read(kind, name, { range: { first: 0, last: 0 } }).catch((error: unknown) => {
    if (!(error instanceof ApiError)) throw error
    // An empty one has no first byte.
    return error.status === 416
  })
  if (typeof found === 'boolean') return found
  found.content.cancel().catch(ignore('only whether it is there counts'))
  return true
}

/**
 * 409 when a node of any compute needs the image. Otherwise the computes without such a node would have changed theirs when the one that has it
 * refuses.
 */
async function requireUnused(fanOut: FanOut, kind: ImageKindName, name: string): Promise<void> {
  const members = await fanOut.present()
  if (members.length < 2) return
  await fanOut.order(async ({ images }) => {
    const uses = await images.uses(kind).catch((error: unknown): ImageUse[] => {
      if (!(error instanceof ApiError)) throw error
      // If a node of it needs the image, it refuses the change itself.
      return []
    })
    const nodes = uses.flatMap(({ path, used_by = [] }) =>
      path === name ? used_by.flatMap((project) => project.nodes) : [],
    )
    if (nodes.length === 0) return
    const shown = nodes.slice(0, maxNodes).map((node) => `the node ${node}`)
    const more = nodes.length > maxNodes ? ` and ${nodes.length - maxNodes} more` : ''
    throw conflict(`image: ${quotedImage(name)} is needed by ${shown.join(', ')}${more}`)
  }, members)
}

/** An error with more at the end of its message. */
function withMore(error: unknown, more: string): unknown {
  if (!(error instanceof ApiError)) return error
  const { status, message, code, headers } = error
  return new ApiError(status, `${message}; ${more}`, { code, headers, cause: error })
}

interface Renaming {
  readonly kind: ImageKindName
  readonly name: string
  readonly to: string
}

/** Renames an image on all computes that have it, or on none. The error of the computes when none has it. */
async function renameOnComputes(fanOut: FanOut, { kind, name, to }: Renaming): Promise<ApiError | undefined> {
  if (name !== to) await requireUnused(fanOut, kind, name)
  const members = await fanOut.present()
  // A compute that lacks the image does not refuse for another one that has the new name.
  if (members.length > 1 && name !== to)
    await fanOut.order(async (agent) => {
      if (await hasImage(agent, kind, to))
        throw conflict(`path: an image ${quotedImage(to)} already exists; choose another name`, {
          code: 'name-taken',
        })
    }, members)
  const renamed: Member[] = []
  const unsure: Member[] = []
  let missing: ApiError | undefined
  try {
    await fanOut.order(async (agent, member) => {
      try {
        await agent.images.rename(kind, name, to)
        renamed.push(member)
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        if ([502, 503, 504].includes(error.status)) unsure.push(member)
        // A compute of an earlier version, which matters only when it has the image.
        const isAway = error.status === 501 && !(await hasImage(agent, kind, name))
        if (error.status !== 404 && !isAway) throw error
        missing ??= isAway ? noSuchImage(name) : error
      }
    }, members)
  } catch (error) {
    if (members.length === 1) throw error
    const left = await renameBack(fanOut, { kind, name, to }, { renamed, unsure })
    throw withMore(error, left.length === 0 ? 'it has its old name on all computes' : left.join('; '))
  }
  return renamed.length === 0 ? missing : undefined
}

interface Renamed {
  readonly renamed: readonly Member[]
  /** They were lost before they answered. */
  readonly unsure: readonly Member[]
}

/** Gives an image its old name on computes; resolves with where it still has the new one. */
async function renameBack(
  fanOut: FanOut,
  { kind, name, to }: Renaming,
  { renamed, unsure }: Renamed,
): Promise<string[]> {
  const left: string[] = []
  await mapLimit([...renamed, ...unsure], async (member) => {
    try {
      await fanOut.agentOf(member).images.rename(kind, to, name)
    } catch (error) {
      const isSure = renamed.includes(member)
      if (!isSure && error instanceof ApiError && error.status === 404) return
      const reason = (error as Error).message
      left.push(`it ${isSure ? 'is' : 'may be'} ${quotedImage(to)} on the compute ${member.name} now: ${reason}`)
    }
  })
  return left
}

/** The images of a compute. A compute of an earlier version does not report which nodes need them. */
const usesAt = ({ images }: { readonly images: ImageAgent }, kind: ImageKindName): Promise<ImageUse[]> =>
  images.uses(kind).catch(async (error) => {
    if (!(error instanceof ApiError) || error.status !== 404) throw error
    return (await images.list(kind)).map(({ path }) => ({ path }))
  })

/** Joins two entries of the same image. The nodes that use it are known only when both computes report them. */
function also({ used_by, ...first }: ImageUse, { used_by: more }: ImageUse): ImageUse {
  if (used_by === undefined || more === undefined) return first
  return { ...first, used_by: byProject([...used_by, ...more]) }
}

/** How much all computes have received. */
const least = (all: readonly UploadProgress[]): UploadProgress => ({
  received: Math.min(...all.map(({ received }) => received)),
  done: all.every(({ done }) => done),
})
