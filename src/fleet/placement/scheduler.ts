import type { PlacementPolicy } from '../../model/placement.ts'
import type { Member } from '../members/members.ts'

/** Memory in use, percent, from which a compute has no room for more nodes. */
const fullPercent = 95
/** By how much each project that was just placed reduces the room of its compute, until the load shows its nodes. */
const expectedShare = 0.1
/** The highest CPU load that counts, percent: a compute that was busy at one measurement may be idle at the next. */
const maxBusy = 90
/** How long a new project reduces the room, ms: a compute reports its load every 5 s, and a lab is filled and started in about a minute. */
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
      // Equal computes are ordered by chance, so that several gateways do not all choose the first.
      .map((member) => ({ member, room: this.#roomOf(member), chance: Math.random() }))
    const byRoom = scored.sort((a, b) => b.room - a.room || b.chance - a.chance).map(({ member }) => member)
    if (policy !== 'pack') return byRoom
    const packable = byRoom.filter((member) => member.load !== undefined && hasRoom(member))
    return [...packable.toReversed(), ...byRoom.filter((member) => !packable.includes(member))]
  }

  /** Counts a project that is placed on a compute; the result reverts that. */
  place({ id }: Pick<Member, 'id'>): () => void {
    const times = this.#recent(id)
    const placed = { at: Date.now() }
    times.push(placed)
    this.#placed.set(id, times)
    return () => {
      // The list may have been replaced meanwhile.
      const left = this.#recent(id).filter((time) => time !== placed)
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

/** Whether a compute has memory for more nodes, as far as it has reported. */
export const hasRoom = ({ load }: Pick<Candidate, 'load'>): boolean => (load?.memory_usage_percent ?? 0) < fullPercent
