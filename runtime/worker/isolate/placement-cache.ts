import type { PlacementStore } from '../../../src/fleet/members/members.ts'
import { setNewest } from '../../../src/lib/async/newest.ts'
import type { DirectoryRpc } from '../directory/rpc.ts'

/** Entries of the cache; the least recently used is removed first. */
const maxPlacements = 10_000
/** How long requests about a project go to the object after its entry was found wrong, ms. */
const avoidMs = 10_000

interface CachedPlacement {
  readonly compute: string | undefined
  /** Until when the entry is not used, ms since 1970; 0: it is used. */
  readonly avoidedUntil: number
}

/** A cache, for this isolate, of the placements in the object. */
export class PlacementCache implements PlacementStore {
  readonly #object: () => DirectoryRpc
  readonly #known = new Map<string, CachedPlacement>()

  constructor(object: () => DirectoryRpc) {
    this.#object = object
  }

  /** The compute of a project; undefined: delegate the request to the object, which searches. */
  lookUp(project: string): string | undefined | Promise<string | undefined> {
    const known = this.#known.get(project)
    if (known !== undefined && known.avoidedUntil > Date.now()) return undefined
    if (known?.compute !== undefined && known.avoidedUntil === 0) {
      this.#keep(project, known)
      return known.compute
    }
    return this.#read(project)
  }

  /** The compute of a project, if the cache has it. */
  atHand(project: string): string | undefined {
    const known = this.#known.get(project)
    return known?.avoidedUntil === 0 ? known.compute : undefined
  }

  async #read(project: string): Promise<string | undefined> {
    const compute = await this.#object().placementOf(project)
    if (compute !== undefined) this.#keep(project, { compute, avoidedUntil: 0 })
    return compute
  }

  /** Marks an entry as wrong: for `avoidMs` requests go to the object. */
  avoid(project: string): void {
    this.#keep(project, { compute: this.#known.get(project)?.compute, avoidedUntil: Date.now() + avoidMs })
  }

  /** As `lookUp`, but also from an entry that is marked as wrong: for a request that this isolate has begun to answer. */
  get(project: string): string | undefined | Promise<string | undefined> {
    return this.#known.get(project)?.compute ?? this.lookUp(project)
  }

  async put(project: string, compute: string): Promise<void> {
    await this.#object().place(project, compute)
    this.#keep(project, { compute, avoidedUntil: 0 })
  }

  async remove(project: string): Promise<void> {
    this.#known.delete(project)
    await this.#object().forget(project)
  }

  #keep(project: string, placement: CachedPlacement): void {
    setNewest(this.#known, project, placement, maxPlacements)
  }
}
