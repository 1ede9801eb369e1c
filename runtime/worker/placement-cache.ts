import { setNewest } from '../../src/async/newest.ts'
import type { PlacementStore } from '../../src/gateway/members.ts'
import type { FleetObject } from './fleet-object.ts'

/** Places that an isolate remembers; the one that was used longest ago is forgotten first. */
const maxPlaces = 10_000
/** How long a project is left to the object that was not where it was thought to be, ms. */
const avoidMs = 10_000

interface Place {
  readonly compute: string | undefined
  /** Until when it is left to the object, ms since 1970; 0: it is not. */
  readonly avoidedUntil: number
}

/** Which compute has which project, as far as this isolate was told by the object. */
export class PlacementCache implements PlacementStore {
  readonly #object: () => DurableObjectStub<FleetObject>
  readonly #known = new Map<string, Place>()

  constructor(object: () => DurableObjectStub<FleetObject>) {
    this.#object = object
  }

  /** Undefined: the object has to look for it. */
  async lookUp(project: string): Promise<string | undefined> {
    const known = this.#known.get(project)
    if (known !== undefined && known.avoidedUntil > Date.now()) return undefined
    if (known?.compute !== undefined && known.avoidedUntil === 0) {
      this.#keep(project, known)
      return known.compute
    }
    const compute = await this.#object().placeOf(project)
    if (compute !== undefined) this.#keep(project, { compute, avoidedUntil: 0 })
    return compute
  }

  /** The project is not where it was thought to be: requests that come from now on are left to the object. */
  avoid(project: string): void {
    this.#keep(project, { compute: this.#known.get(project)?.compute, avoidedUntil: Date.now() + avoidMs })
  }

  /** For a request that is answered here: it goes where it was thought to go when it came. */
  async get(project: string): Promise<string | undefined> {
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

  #keep(project: string, place: Place): void {
    setNewest(this.#known, project, place, maxPlaces)
  }
}
