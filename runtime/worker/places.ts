import type { PlacementStore } from '../../src/gateway/members.ts'
import type { FleetObject } from './fleet-object.ts'

/** Places that an isolate remembers; the one that was used longest ago is forgotten first. */
const mostPlaces = 10_000
/** How long a project is left to the object that was not where it was thought to be, ms. */
const avoidMs = 10_000

interface Place {
  /** Undefined: it is left to the object. */
  readonly compute: string | undefined
  readonly until: number
}

/** Which compute has which project, as far as this isolate was told by the object. */
export class Places implements PlacementStore {
  readonly #object: () => DurableObjectStub<FleetObject>
  readonly #known = new Map<string, Place>()

  constructor(object: () => DurableObjectStub<FleetObject>) {
    this.#object = object
  }

  /** Undefined: the object has to look for it. */
  async lookUp(project: string): Promise<string | undefined> {
    const known = this.#known.get(project)
    if (known !== undefined && known.until > Date.now()) {
      this.#keep(project, known)
      return known.compute
    }
    const compute = await this.#object().placeOf(project)
    if (compute !== undefined) this.#keep(project, { compute, until: Number.POSITIVE_INFINITY })
    return compute
  }

  /** The project is not where it was thought to be. */
  avoid(project: string): void {
    this.#keep(project, { compute: undefined, until: Date.now() + avoidMs })
  }

  get(project: string): Promise<string | undefined> {
    return this.lookUp(project)
  }

  async put(project: string, compute: string): Promise<void> {
    await this.#object().place(project, compute)
    this.#keep(project, { compute, until: Number.POSITIVE_INFINITY })
  }

  async remove(project: string): Promise<void> {
    this.#known.delete(project)
    await this.#object().forget(project)
  }

  #keep(project: string, place: Place): void {
    this.#known.delete(project)
    this.#known.set(project, place)
    const [oldest] = this.#known.keys()
    if (this.#known.size > mostPlaces && oldest !== undefined) this.#known.delete(oldest)
  }
}
