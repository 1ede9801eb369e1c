import type { HostAgent } from '../../host-agent.ts'
import { abortable } from '../../lib/async/abort.ts'
import { ignore } from '../../lib/async/ignore.ts'
import { mapLimit } from '../../lib/async/map-limit.ts'
import { setNewest } from '../../lib/async/newest.ts'
import { thenSync } from '../../lib/async/then-sync.ts'
import { ApiError, conflict, notFound } from '../../lib/errors/api-error.ts'
import { silentMs } from '../members/fan-out.ts'
import { unreachable } from '../members/member-errors.ts'
import type { FleetMembers, LabChanges, LabPlacements, Member, PlacementStore } from '../members/members.ts'
import type { RequestingCaller } from '../members/requesting-caller.ts'

/** How long a project that no compute had is not searched for again, ms. */
const unknownMs = 3000
const maxUnknown = 1000
/** Most computes that a message names. */
const maxNamed = 5
/** Time for all computes to answer whether they have a project, ms. */
const searchMs = 15_000
/** Time for the other computes after one has the project, ms: it may be open on two. */
const othersMs = 3000
/** How long events of a deleted project still count as those of its compute, ms. */
const leftMs = 60_000
const maxLeft = 1000
/** Most projects on several computes that are remembered as reported. */
const maxShared = 1000
/** How long a found placement that could not be saved is remembered, ms. */
const unsavedMs = 60_000
const maxUnsaved = 1000

/** Asks the compute that has a project; see `ProjectLocator.at`. */
export type AskOwner = <T>(projectId: string, use: (agent: HostAgent) => Promise<T>, part?: string) => Promise<T>

/**
 * Finds the compute that has a project. The store has the projects that this gateway placed. For other projects, and for one that its compute
 * has lost, all computes are asked, or in a large fleet those that have reported the project. A compute cannot take over a project that was
 * placed on another one by claiming to have it. A project that this gateway did not place and that is open on several computes is refused
 * (409) until a person has closed it on all but one.
 */
export class ProjectLocator {
  readonly #members: FleetMembers
  readonly #store: PlacementStore
  readonly #searches = new Map<string, Promise<Member | undefined>>()
  /** Project -> until when it is not searched for. */
  readonly #unknown = new Map<string, number>()
  /** Project that was deleted -> where it was, and until when that counts. */
  readonly #left = new Map<string, { readonly id: string; readonly until: number }>()
  /** Project that was found, and whose placement could not be saved -> where it is, and until when that counts. */
  readonly #unsaved = new Map<string, { readonly id: string; readonly until: number }>()
  /** Project that is on several computes, or for which the search failed -> until when its events start no other search. */
  readonly #disputed = new Map<string, number>()
  /** Project on several computes -> the names in the last report of it. */
  readonly #shared = new Map<string, string>()
  readonly #isShared: (projectId: string, message: string) => void
  readonly #labs: LabPlacements | undefined

  /** `isShared` is called once for each project that is open on several computes. */
  constructor(
    members: FleetMembers,
    store: PlacementStore,
    isShared: (projectId: string, message: string) => void = () => {},
    labs?: LabPlacements,
  ) {
    this.#members = members
    this.#store = store
    this.#isShared = isShared
    this.#labs = labs
  }

  /**
   * Asks the compute that has the project, or the part of a lab on several computes; see `locate`. When it answers that it does not have the
   * project, the compute that has it now is asked. `caller`: on whose behalf; absent: the gateway itself.
   */
  async at<T>(
    projectId: string,
    use: (agent: HostAgent) => Promise<T>,
    caller?: RequestingCaller,
    part?: string,
  ): Promise<T> {
    const ask = async (at: Member): Promise<T> => {
      caller?.noteCompute(at.id)
      return use(at.agentFor(caller?.caller))
    }
    const member = await this.locate(projectId, part)
    try {
      return await ask(member)
    } catch (error) {
      if (!isNoSuchProject(error)) throw error
      const other = await this.relocate(projectId, member)
      if (other === undefined) throw error
      return ask(other)
    }
  }

  /**
   * The compute that has the project; for a lab on several computes the compute that has the `part`. 404 when none has it, 503 when that
   * compute is not connected.
   */
  locate(projectId: string, part?: string): Member | Promise<Member> {
    return thenSync<Member | undefined, Member>(
      this.find(projectId, part),
      (member) => member ?? this.#absent(projectId),
    )
  }

  async #absent(projectId: string): Promise<never> {
    throw noSuchProject(projectId, await this.#members.all())
  }

  /** The compute of a project that `from` does not have any more; undefined: no other connected compute has it. */
  async relocate(projectId: string, from: Member): Promise<Member | undefined> {
    const isKnown = (this.#labs?.computesOf(projectId)?.length ?? 0) > 1
    const member = isKnown || this.#isNegativelyCached(projectId) ? undefined : await this.#search(projectId)
    return member?.id === from.id ? undefined : member
  }

  /** Whether the compute of the project still has it, open or closed; true also when the compute cannot be asked. Never rejects. */
  async exists(projectId: string): Promise<boolean> {
    try {
      const member = await this.find(projectId)
      return member !== undefined && (await has(member, projectId)) !== undefined
    } catch {
      return true
    }
  }

  /** The compute that has the project, or had it when it was closed. 503 when it is not connected. */
  find(projectId: string, part?: string): Member | undefined | Promise<Member | undefined> {
    if (this.#labs === undefined) return this.#placed(projectId)
    return this.#ofLab(projectId, part).then((member) => member ?? this.#placed(projectId))
  }

  /** By its placement, or by a search; at once where the placement is in memory. */
  #placed(projectId: string): Member | undefined | Promise<Member | undefined> {
    return thenSync(this.#store.get(projectId), (placed) => {
      const id = placed ?? this.#unsavedComputeOf(projectId)
      return thenSync<Member | undefined, Member | undefined>(
        id === undefined ? undefined : this.#members.find(id),
        (member) => {
          if (member === undefined) return this.#isNegativelyCached(projectId) ? undefined : this.#search(projectId)
          if (!member.isConnected) throw unreachable(member)
          return member
        },
      )
    })
  }

  /** The other connected computes of a lab. */
  async others(projectId: string, { id }: Member): Promise<Member[]> {
    const ids = this.#labs?.computesOf(projectId) ?? []
    const found = await Promise.all(ids.filter((it) => it !== id).map((it) => this.#members.find(it)))
    return found.filter((member) => member?.isConnected === true) as Member[]
  }

  /** Whether all of these computes belong to the lab with this project. */
  isLabOn(projectId: string, computeIds: readonly string[]): boolean {
    const ids = this.#labs?.computesOf(projectId)
    return ids !== undefined && computeIds.every((id) => ids.includes(id))
  }

  /** The compute of a lab that has the part; else its first connected compute. */
  async #ofLab(projectId: string, part: string | undefined): Promise<Member | undefined> {
    const labs = this.#labs
    const id = part === undefined ? undefined : await labs?.computeOf(projectId, part)
    const ids = id === undefined ? (labs?.computesOf(projectId) ?? []) : [id]
    const members = (await Promise.all(ids.map((it) => this.#members.find(it)))).filter((it) => it !== undefined)
    const member = members.find(({ isConnected }) => isConnected) ?? members[0]
    if (member?.isConnected === false) throw unreachable(member)
    return member
  }

  /** Saves that a project is placed on a compute, before it is created there. Rejects when that fails. */
  async put(projectId: string, { id }: Member): Promise<void> {
    this.#unknown.delete(projectId)
    this.#disputed.delete(projectId)
    this.#left.delete(projectId)
    await this.#store.put(projectId, id)
    this.#unsaved.delete(projectId)
  }

  /** Removes the placement of a project. Never rejects: with an old placement the compute answers that it has no such project. */
  async forget(projectId: string): Promise<void> {
    const id = await this.#computeOf(projectId)
    // The event of its end may come later than the answer.
    if (id !== undefined) setNewest(this.#left, projectId, { id, until: Date.now() + leftMs }, maxLeft)
    this.#unsaved.delete(projectId)
    await this.#store.remove(projectId).catch(ignore('the store reports that it cannot save'))
  }

  /** Forgets projects that became labs, when these are deleted: the labs end them at their computes themselves. */
  follow(labs: LabChanges): void {
    labs.listen(({ action, event }) => {
      if (action === 'project.deleted') void this.forget(event.project_id)
    })
  }

  async #computeOf(projectId: string): Promise<string | undefined> {
    return (await this.#store.get(projectId)) ?? this.#unsavedComputeOf(projectId)
  }

  #unsavedComputeOf(projectId: string): string | undefined {
    const unsaved = this.#unsaved.get(projectId)
    return unsaved !== undefined && unsaved.until > Date.now() ? unsaved.id : undefined
  }

  /** Notes where a project was found. A failure to save that must not fail the request. */
  async #found(projectId: string, member: Member): Promise<void> {
    await this.put(projectId, member).catch(() => {
      // The store reports that it cannot save.
      setNewest(this.#unsaved, projectId, { id: member.id, until: Date.now() + unsavedMs }, maxUnsaved)
    })
  }

  /**
   * Whether the project is, or was until just now, at that compute: only then its events are accepted. Undefined when the project has to be
   * searched for. Never rejects.
   */
  async knownAt(projectId: string, { id }: Member): Promise<boolean | undefined> {
    const left = this.#left.get(projectId)
    if (left !== undefined && left.until > Date.now() && left.id === id) return true
    if (this.#labs?.computesOf(projectId)?.includes(id)) return true
    try {
      const computeId = await this.#computeOf(projectId)
      if (computeId !== undefined) return computeId === id
      return this.#isNegativelyCached(projectId) || isPending(this.#disputed, projectId) ? false : undefined
    } catch {
      return false
    }
  }

  /** As `knownAt`; searches for the project if needed. */
  async isAt(projectId: string, member: Member): Promise<boolean> {
    const known = await this.knownAt(projectId, member)
    if (known !== undefined) return known
    this.#members.toldProjects?.add(projectId, member.id)
    try {
      return (await this.#search(projectId))?.id === member.id
    } catch {
      setNewest(this.#disputed, projectId, Date.now() + unknownMs, maxUnknown)
      return false
    }
  }

  /** Reports a project that is open on several computes, once. The result: the error for a request about it. */
  shared(projectId: string, members: readonly Member[]): ApiError {
    const names = members.map(({ name, id }) => `${name} (${id})`).join(' and ')
    const message =
      `The project ${projectId} is open on the computes ${names}: ` +
      `close it on all but one, for example with POST /v2/computes/${members.at(-1)?.id}/projects/${projectId}/close`
    if (this.#shared.get(projectId) !== names) {
      setNewest(this.#shared, projectId, names, maxShared)
      this.#isShared(projectId, message)
    }
    return conflict(`project_id: ${message}`)
  }

  /** The connected computes that are asked for a project. */
  async #membersToSearch(projectId: string): Promise<Member[]> {
    const all = await this.#members.all()
    const told = this.#members.toldProjects
    const ids = told !== undefined && all.length > told.maxAsked ? new Set(told.computesOf(projectId)) : undefined
    return all.filter(({ id, isConnected }) => isConnected && (ids === undefined || ids.has(id)))
  }

  /** Asks the computes. Simultaneous searches for one project share the answers. */
  #search(projectId: string): Promise<Member | undefined> {
    let search = this.#searches.get(projectId)
    if (search === undefined) {
      search = this.#ask(projectId).finally(() => this.#searches.delete(projectId))
      this.#searches.set(projectId, search)
    }
    return search
  }

  async #ask(projectId: string): Promise<Member | undefined> {
    const before = await this.#computeOf(projectId)
    const found: Member[] = []
    /** Computes that have it on disk only. They count when it is open on none. */
    const closed: Member[] = []
    const there = await this.#membersToSearch(projectId)
    const late = new AbortController()
    let timer = setTimeout(() => late.abort(), searchMs)
    const askOne = async (member: Member) => {
      if (late.signal.aborted) return
      const status = await abortable(has(member, projectId), late.signal).catch(() => undefined)
      if (status === 'open') {
        found.push(member)
        clearTimeout(timer)
        timer = setTimeout(() => late.abort(), othersMs)
      } else if (status === 'closed') closed.push(member)
    }
    await mapLimit(there, askOne, undefined, silentMs)
    clearTimeout(timer)
    const now = await this.#computeOf(projectId)
    // The project was placed while the computes were asked: their answers are old.
    if (now !== undefined && now !== before) return this.#members.find(now)
    if (found.length > 1)
      throw this.shared(
        projectId,
        there.filter((member) => found.includes(member)),
      )
    this.#shared.delete(projectId)
    const [first] = [...found, ...closed]
    if (first === undefined) this.#remember(projectId)
    else await this.#found(projectId, first)
    return first
  }

  #remember(projectId: string): void {
    setNewest(this.#unknown, projectId, Date.now() + unknownMs, maxUnknown)
  }

  #isNegativelyCached(projectId: string): boolean {
    return isPending(this.#unknown, projectId)
  }
}

/** Whether the time of an entry is still to come; removes the entry otherwise. */
function isPending(times: Map<string, number>, projectId: string): boolean {
  if ((times.get(projectId) ?? 0) > Date.now()) return true
  times.delete(projectId)
  return false
}

/** Whether a project is open or closed on a compute; undefined when the compute does not have it. */
async function has(member: Member, projectId: string): Promise<'open' | 'closed' | undefined> {
  try {
    // A newer compute may have other states.
    return (await member.agentFor().projects.get(projectId)).status === 'closed' ? 'closed' : 'open'
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined
    throw error
  }
}

const isNoSuchProject = (error: unknown): boolean => error instanceof ApiError && error.code === 'no-such-project'

/** The error names the computes that could not be asked: one of them may have the project. */
function noSuchProject(projectId: string, members: readonly Member[]): ApiError {
  const away = members.flatMap(({ name, isConnected }) => (isConnected ? [] : [name]))
  const more = away.length > maxNamed ? ` and ${away.length - maxNamed} more` : ''
  const unasked = away.length > 0 ? `; not connected: ${away.slice(0, maxNamed).join(', ')}${more}` : ''
  return notFound(`project_id: no compute has an open project ${projectId}${unasked}`, { code: 'no-such-project' })
}

export const onOtherCompute = (projectId: string, { name }: Member): ApiError =>
  conflict(`compute_id: the project ${projectId} is on the compute ${name}; omit compute_id, or use that one`, {
    code: 'project-exists',
  })
