import type { Via } from '../auth/caller.ts'
import { ApiError, conflict, notFound } from '../errors.ts'
import { abortable } from '../fleet/abortable.ts'
import { eachOf } from '../fleet/each-of.ts'
import type { HostAgent } from '../host-agent.ts'
import { absence, presented } from './everyone.ts'
import type { Member, Members, PlacementStore } from './members.ts'

/** How long a project that no compute has is not looked for again, ms. */
const vainMs = 3000
const mostVain = 1000
/** Computes that a message names. */
const mostNamed = 5
/** How long the computes may take to be asked for a project, ms. */
const searchMs = 15_000

/** Asks the compute that has a project; see `Whereabouts.at`. */
export type AskOwner = <T>(
  projectId: string,
  use: (agent: HostAgent) => Promise<T>,
  how?: { once?: boolean },
) => Promise<T>

/**
 * Which compute has a project. What was placed by us is in the store; for what is not, and for a project that has gone from
 * where it was, all computes are asked.
 */
export class Whereabouts {
  readonly #members: Members
  readonly #store: PlacementStore
  readonly #searches = new Map<string, Promise<Member | undefined>>()
  /** Project -> until when it is not looked for. */
  readonly #vain = new Map<string, number>()

  constructor(members: Members, store: PlacementStore) {
    this.#members = members
    this.#store = store
  }

  /**
   * Asks the compute that has the project. 404 when none has it, 503 when it is on a compute that is not there. When the compute
   * says that it has no such project, it is looked for elsewhere and asked for there; `once`: what was sent cannot be sent
   * again, so that only the next request is asked there. `via`: what the compute is told of the caller.
   */
  async at<T>(
    projectId: string,
    use: (agent: HostAgent) => Promise<T>,
    { once = false, via = 'user' }: { once?: boolean; via?: Via } = {},
  ): Promise<T> {
    const member = await this.find(projectId)
    if (member === undefined) throw noSuchProject(projectId, await this.#members.all())
    try {
      return await use(member.agentFor(via))
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw presented(error, member)
      // When it cannot be asked any more, what it said last is what is known.
      if (this.#isVain(projectId) || (await has(member, projectId).catch(() => true))) throw error
      const other = await this.#search(projectId)
      if (other === undefined || once) throw error
      try {
        return await use(other.agentFor(via))
      } catch (failure) {
        throw presented(failure, other)
      }
    }
  }

  /** The compute that has the project, or had it when it was closed. 503 when it is not connected. */
  async find(projectId: string): Promise<Member | undefined> {
    const id = await this.#store.get(projectId)
    const member = id === undefined ? undefined : await this.#members.find(id)
    if (member === undefined) return this.#isVain(projectId) ? undefined : this.#search(projectId)
    if (!member.isConnected) throw absence(member)
    return member
  }

  async put(projectId: string, { id }: Member): Promise<void> {
    this.#vain.delete(projectId)
    await this.#store.put(projectId, id)
  }

  async forget(projectId: string): Promise<void> {
    await this.#store.remove(projectId)
  }

  /** Asks all computes, once for all who want to know at the same time. */
  #search(projectId: string): Promise<Member | undefined> {
    let search = this.#searches.get(projectId)
    if (search === undefined) {
      search = this.#ask(projectId).finally(() => this.#searches.delete(projectId))
      this.#searches.set(projectId, search)
    }
    return search
  }

  async #ask(projectId: string): Promise<Member | undefined> {
    const before = await this.#store.get(projectId)
    const found: Member[] = []
    /** Those that have it on disk only, which count when it is open nowhere. */
    const closed: Member[] = []
    const there = (await this.#members.all()).filter(({ isConnected }) => isConnected)
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(), searchMs)
    await eachOf(there, async (member) => {
      if (found.length > 0 || late.signal.aborted) return
      const status = await abortable(has(member, projectId), late.signal).catch(() => undefined)
      if (status === 'open') found.push(member)
      else if (status === 'closed') closed.push(member)
    })
    clearTimeout(timer)
    const now = await this.#store.get(projectId)
    // It was placed while the computes were asked: what they said is old.
    if (now !== undefined && now !== before) return this.#members.find(now)
    const [first] = [...found, ...closed]
    if (first === undefined) this.#remember(projectId)
    else await this.put(projectId, first)
    return first
  }

  #remember(projectId: string): void {
    this.#vain.set(projectId, Date.now() + vainMs)
    const [oldest] = this.#vain.keys()
    if (this.#vain.size > mostVain && oldest !== undefined) this.#vain.delete(oldest)
  }

  #isVain(projectId: string): boolean {
    const until = this.#vain.get(projectId) ?? 0
    if (until > Date.now()) return true
    this.#vain.delete(projectId)
    return false
  }
}

/** Whether a compute has a project, and how; undefined when it has not. */
async function has({ agent }: Member, projectId: string): Promise<'open' | 'closed' | undefined> {
  try {
    return (await agent.projects.get(projectId)).status ?? 'open'
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined
    throw error
  }
}

/** It may be on one that could not be asked. */
function noSuchProject(projectId: string, members: readonly Member[]): ApiError {
  const away = members.flatMap(({ name, isConnected }) => (isConnected ? [] : [name]))
  const more = away.length > mostNamed ? ` and ${away.length - mostNamed} more` : ''
  const unasked = away.length > 0 ? `; not connected: ${away.slice(0, mostNamed).join(', ')}${more}` : ''
  return notFound(`project_id: no compute has an open project ${projectId}${unasked}`)
}

export const elsewhere = (projectId: string, { name }: Member): ApiError =>
  conflict(`compute_id: the project ${projectId} is on the compute ${name}; leave compute_id out, or name that one`)
