import { ApiError } from '../errors.ts'
import { type ImageKindName, imageKinds } from '../model/image.ts'
import type { NodeKindName } from '../model/node.ts'
import { Serial } from '../serial.ts'
import type { Member, Members } from './members.ts'
import type { Whereabouts } from './whereabouts.ts'

/** Images that are brought for one request: no node has more. */
const mostImages = 12

/** Brings images to computes that lack them, such as one that joined after they were stored. */
export class ImageCopies {
  readonly #members: Members
  readonly #whereabouts: Whereabouts
  /** One after the other for each compute. */
  readonly #turns = new Serial()
  readonly #underWay = new Map<string, Promise<boolean>>()

  constructor(members: Members, whereabouts: Whereabouts) {
    this.#members = members
    this.#whereabouts = whereabouts
  }

  /** Does something with a node; each image that its compute lacks is copied from one that has it, and it is done again. */
  async with<T>(projectId: string, kind: NodeKindName, work: () => Promise<T>): Promise<T> {
    const brought = new Set<string>()
    for (;;) {
      try {
        return await work()
      } catch (error) {
        const image = error instanceof ApiError ? error.extra.image : undefined
        if (image === undefined || brought.has(image) || brought.size === mostImages) throw error
        brought.add(image)
        // What cannot be copied is still missing; whoever asks may upload it.
        if (!(await this.#bring(projectId, kind, image).catch(() => false))) throw error
      }
    }
  }

  async #bring(projectId: string, kind: NodeKindName, image: string): Promise<boolean> {
    const to = await this.#whereabouts.find(projectId)
    // An absolute path is one of that machine.
    if (to === undefined || !isImageKind(kind) || image.startsWith('/')) return false
    const key = `${to.id} ${kind} ${image}`
    let copying = this.#underWay.get(key)
    if (copying === undefined) {
      copying = this.#turns.run(to.id, () => this.#copy(kind, image, to)).finally(() => this.#underWay.delete(key))
      this.#underWay.set(key, copying)
    }
    return copying
  }

  /** False when no other compute has it. */
  async #copy(kind: ImageKindName, image: string, to: Member): Promise<boolean> {
    for (const from of await this.#members.all()) {
      if (!from.isConnected || from.id === to.id) continue
      const found = await from.agent.images.read(kind, image, {}).catch(() => undefined)
      if (found === undefined) continue
      const { content, size } = found
      try {
        await to.agent.images.write(kind, image, content, { size, digests: [] })
      } finally {
        // It may have been refused before anything of it was read.
        content.cancel().catch(() => {})
      }
      return true
    }
    return false
  }
}

const isImageKind = (kind: string): kind is ImageKindName => (imageKinds as readonly string[]).includes(kind)
