import type { PlacementPolicy } from '../model/placement.ts'
import type { Member } from './members.ts'

/** Memory in use, percent, from which a compute has no room for more nodes. */
const fullPercent = 95
/** How much less room a compute seems to have by each project that was just placed, until its nodes show in the figures. */
const expectedShare = 0.1
/** A processor that was busy in the moment of the figure is not taken for busier than this, %: it may be idle in the next. */
const maxBusy = 90
/** How long it is counted, ms: a compute tells its load every 5 s, and a lab is filled and started in about a minute. */
const expectedMs = 60_000

type Placed = { readonly at: number }
type Candidate = Pick<Member, 'id' | 'load' | 'weight' | 'isConnected' | 'acceptsProjects'>

/** Finds the compute with most room. */
export class Scheduler {
  readonly #placed = new Map<string, Placed[]>()

  /**
   * The computes that may be given a project, the best first: by most room, with `pack` by least room, and full ones after them.
   * Computes whose load is not known come last.
   */
  order<T extends Candidate>(members: readonly T[], policy: PlacementPolicy = 'room'): T[] {
    const scored = members
      .filter(({ isConnected, acceptsProjects, weight }) => isConnected && acceptsProjects && weight > 0)
      // By chance where all is equal, so that several gateways do not all choose the first.
      .map((member) => ({ member, room: this.#roomOf(member), chance: Math.random() }))
    const byRoom = scored.sort((a, b) => b.room - a.room || b.chance - a.chance).map(({ member }) => member)
    if (policy !== 'pack') return byRoom
    const packable = byRoom.filter((member) => member.load !== undefined && hasRoom(member))
    return [...packable.toReversed(), ...byRoom.filter((member) => !packable.includes(member))]
  }

  /** A project was given to it; the result takes that back. */
  place({ id }: Pick<Member, 'id'>): () => void {
    const times = this.#recent(id)
    const placed = { at: Date.now() }
    times.push(placed)
    this.#placed.set(id, times)
    return () => {
      // The list may be another by now.
      const left = this.#recent(id).filter((it) => it !== placed)
      if (left.length > 0) this.#placed.set(id, left)
      else this.#placed.delete(id)
    }
  }

  #roomOf({ id, load, weight }: Candidate): number {
    const used =
      load === undefined ? 100 : Math.max(Math.min(load.cpu_usage_percent, maxBusy), load.memory_usage_percent)
    return (weight * (100 - used)) / (1 + expectedShare * this.#recent(id).length)
  }

  #recent(id: string): Placed[] {
    const since = Date.now() - expectedMs
    return (this.#placed.get(id) ?? []).filter(({ at }) => at > since)
  }
}

/** Whether a compute has memory for more nodes, as far as it has told. */
export const hasRoom = ({ load }: Pick<Candidate, 'load'>): boolean => (load?.memory_usage_percent ?? 0) < fullPercent
