import { abortable } from '../async/abort.ts'
import { ignore } from '../async/ignore.ts'
import { mapLimit } from '../async/map-limit.ts'
import { setNewest } from '../async/newest.ts'
import type { RemoteHostAgent } from '../client/remote-host-agent.ts'
import type { Labs } from '../controller/labs.ts'
import { ApiError, conflict, notFound } from '../errors/api-error.ts'
import type { LabProject } from '../model/lab/project.ts'
import type { RequestingCaller } from './asker.ts'
import { presented, silentMs, unreachable } from './fan-out.ts'
import type { FleetMembers, LabPlaces, Member, PlacementStore } from './members.ts'

/** How long a project that no compute has is not looked for again, ms. */
const unknownMs = 3000
const maxUnknown = 1000
/** Computes that a message names. */
const maxNamed = 5
/** How long the computes may take to be asked for a project, ms. */
const searchMs = 15_000
/** How long the others may take when one was found, ms: it may be on two. */
const othersMs = 3000
/** How long events of a project that was deleted are still those of its compute, ms. */
const leftMs = 60_000
const maxLeft = 1000
/** Projects on several computes that are told of once. */
const maxShared = 1000
/** How long the compute of a project is remembered that was found and could not be saved, ms. */
const unsavedMs = 60_000
const maxUnsaved = 1000

/** Asks the compute that has a project; see `ProjectLocator.at`. */
export type AskOwner = <T>(projectId: string, use: (agent: RemoteHostAgent) => Promise<T>, part?: string) => Promise<T>

/**
 * Which compute has a project. What was placed by us is in the store; for what is not, and for a project that has gone from
 * where it was, all computes are asked, or in a large fleet those that have told of it. What a compute says of a project that was placed on another one never takes it away from
 * there; one that was not placed by us and is open on several computes is on none of them until a person has decided.
 */
export class ProjectLocator {
  readonly #members: FleetMembers
  readonly #store: PlacementStore
  readonly #searches = new Map<string, Promise<Member | undefined>>()
  /** Project -> until when it is not looked for. */
  readonly #unknown = new Map<string, number>()
  /** Project that was deleted -> where it was, and until when that counts. */
  readonly #left = new Map<string, { readonly id: string; readonly until: number }>()
  /** Project that was found, and whose placement could not be saved -> where it is, and until when that counts. */
  readonly #unsaved = new Map<string, { readonly id: string; readonly until: number }>()
  /** Project on several computes, or that could not be looked for -> until when its events do not have it looked for again. */
  readonly #disputed = new Map<string, number>()
  /** Project on several computes -> what was told of it last. */
  readonly #shared = new Map<string, string>()
  readonly #isShared: (projectId: string, message: string) => void
  readonly #labs: () => LabPlaces | undefined

  /** `isShared` is told of each project that is open on several computes, once. */
  constructor(
    members: FleetMembers,
    store: PlacementStore,
    isShared: (projectId: string, message: string) => void = () => {},
    labs: () => LabPlaces | undefined = () => undefined,
  ) {
    this.#members = members
    this.#store = store
    this.#isShared = isShared
    this.#labs = labs
  }

  /**
   * Asks the compute that has the project, or of a lab on several computes the part; see `locate`. When that says that it has no such project, the compute is asked that has
   * it now. `caller`: on whose behalf; without one on that of the gateway.
   */
  async at<T>(
    projectId: string,
    use: (agent: RemoteHostAgent) => Promise<T>,
    caller?: RequestingCaller,
    part?: string,
  ): Promise<T> {
    const ask = async (at: Member): Promise<T> => {
      caller?.answered(at.id)
      try {
        return await use(caller === undefined ? at.agent : at.agentFor(caller.caller))
      } catch (error) {
        throw presented(error, at)
      }
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
   * The compute that has the project; for a lab on several computes the compute that has the `part`. 404 when none has it, 503 when
   * it is on a compute that is not there.
   */
  async locate(projectId: string, part?: string): Promise<Member> {
    const member = await this.find(projectId, part)
    if (member === undefined) throw noSuchProject(projectId, await this.#members.all())
    return member
  }

  /** Where a project is that the compute says it does not have; undefined: on no other compute that can be asked. */
  async relocate(projectId: string, from: Member): Promise<Member | undefined> {
    const isKnown = (this.#labs()?.computesOf(projectId)?.length ?? 0) > 1
    const member = isKnown || this.#isVain(projectId) ? undefined : await this.#search(projectId)
    return member?.id === from.id ? undefined : member
  }

  /** Whether the compute of the project has it still, open or closed; also when that cannot be asked. Never rejects. */
  async isThere(projectId: string): Promise<boolean> {
    try {
      const member = await this.find(projectId)
      return member !== undefined && (await has(member, projectId)) !== undefined
    } catch {
      return true
    }
  }

  /** The compute that has the project, or had it when it was closed. 503 when it is not connected. */
  async find(projectId: string, part?: string): Promise<Member | undefined> {
    const ofLab = await this.#ofLab(projectId, part)
    if (ofLab !== undefined) return ofLab
    const id = (await this.#store.get(projectId)) ?? this.#unsavedPlaceOf(projectId)
    const member = id === undefined ? undefined : await this.#members.find(id)
    if (member === undefined) return this.#isVain(projectId) ? undefined : this.#search(projectId)
    if (!member.isConnected) throw unreachable(member)
    return member
  }

  /** The other connected computes of a lab. */
  async others(projectId: string, { id }: Member): Promise<Member[]> {
    const ids = this.#labs()?.computesOf(projectId) ?? []
    const found = await Promise.all(ids.filter((it) => it !== id).map((it) => this.#members.find(it)))
    return found.filter((member) => member?.isConnected === true) as Member[]
  }

  /** Whether all of these computes belong to the lab with this project. */
  isLabOn(projectId: string, computeIds: readonly string[]): boolean {
    const ids = this.#labs()?.computesOf(projectId)
    return ids !== undefined && computeIds.every((id) => ids.includes(id))
  }

  /** The compute of a lab that has the part; else its first connected compute. */
  async #ofLab(projectId: string, part: string | undefined): Promise<Member | undefined> {
    const labs = this.#labs()
    const id = part === undefined ? undefined : await labs?.computeOf(projectId, part)
    const ids = id === undefined ? (labs?.computesOf(projectId) ?? []) : [id]
    const members = (await Promise.all(ids.map((it) => this.#members.find(it)))).filter((it) => it !== undefined)
    const member = members.find(({ isConnected }) => isConnected) ?? members[0]
    if (member?.isConnected === false) throw unreachable(member)
    return member
  }

  /** A project is about to be placed there; rejects when that cannot be saved. */
  async put(projectId: string, { id }: Member): Promise<void> {
    this.#unknown.delete(projectId)
    this.#disputed.delete(projectId)
    this.#left.delete(projectId)
    await this.#store.put(projectId, id)
    this.#unsaved.delete(projectId)
  }

  /** The project is gone. Never rejects: a placement that is left leads to a compute which says that it has no such project. */
  async forget(projectId: string): Promise<void> {
    const id = await this.#placeOf(projectId)
    // The event of its end may come later than the answer.
    if (id !== undefined) setNewest(this.#left, projectId, { id, until: Date.now() + leftMs }, maxLeft)
    this.#unsaved.delete(projectId)
    await this.#store.remove(projectId).catch(ignore('the store tells that it cannot save'))
  }

  /** Forgets projects that became labs, when these are deleted: the labs end them at their computes themselves. */
  follow(labs: Pick<Labs, 'listen'>): void {
    labs.listen(({ action, event }) => {
      if (action === 'project.deleted') void this.forget((event as LabProject).project_id)
    })
  }

  async #placeOf(projectId: string): Promise<string | undefined> {
    return (await this.#store.get(projectId)) ?? this.#unsavedPlaceOf(projectId)
  }

  #unsavedPlaceOf(projectId: string): string | undefined {
    const unsaved = this.#unsaved.get(projectId)
    return unsaved !== undefined && unsaved.until > Date.now() ? unsaved.id : undefined
  }

  /** A project was found there. What is asked about it does not depend on whether that can be saved. */
  async #found(projectId: string, member: Member): Promise<void> {
    await this.put(projectId, member).catch(() => {
      // The store tells that it cannot save.
      setNewest(this.#unsaved, projectId, { id: member.id, until: Date.now() + unsavedMs }, maxUnsaved)
    })
  }

  /**
   * Whether the project is, or was until just now, at that compute: only then what the compute tells of it counts. Undefined when the
   * project has to be looked for. Never rejects.
   */
  async knownAt(projectId: string, { id }: Member): Promise<boolean | undefined> {
    const left = this.#left.get(projectId)
    if (left !== undefined && left.until > Date.now() && left.id === id) return true
    if (this.#labs()?.computesOf(projectId)?.includes(id)) return true
    try {
      const placed = await this.#placeOf(projectId)
      if (placed !== undefined) return placed === id
      return this.#isVain(projectId) || isPending(this.#disputed, projectId) ? false : undefined
    } catch {
      return false
    }
  }

  /** As `knownAt`; looks for the project when that is needed. */
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

  /** Tells of a project that is open on several computes, unless that was told; the error for who asks for it. */
  shared(projectId: string, members: readonly Member[]): ApiError {
    const names = members.map(({ name, id }) => `${name} (${id})`).join(' and ')
    const message =
      `The project ${projectId} is open on the computes ${names}: ` +
      'close it on all but one by POST /v2/computes/{compute_id}/projects/{project_id}/close'
    if (this.#shared.get(projectId) !== names) {
      setNewest(this.#shared, projectId, names, maxShared)
      this.#isShared(projectId, message)
    }
    return conflict(`project_id: ${message}`)
  }

  /** The connected computes that are asked for a project. */
  async #asked(projectId: string): Promise<Member[]> {
    const all = await this.#members.all()
    const told = this.#members.toldProjects
    const ids = told !== undefined && all.length > told.maxAsked ? new Set(told.computesOf(projectId)) : undefined
    return all.filter(({ id, isConnected }) => isConnected && (ids === undefined || ids.has(id)))
  }

  /** Asks the computes, once for all who want to know at the same time. */
  #search(projectId: string): Promise<Member | undefined> {
    let search = this.#searches.get(projectId)
    if (search === undefined) {
      search = this.#ask(projectId).finally(() => this.#searches.delete(projectId))
      this.#searches.set(projectId, search)
    }
    return search
  }

  async #ask(projectId: string): Promise<Member | undefined> {
    const before = await this.#placeOf(projectId)
    const found: Member[] = []
    /** Those that have it on disk only, which count when it is open nowhere. */
    const closed: Member[] = []
    const there = await this.#asked(projectId)
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
    const now = await this.#placeOf(projectId)
    // It was placed while the computes were asked: what they said is old.
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

  #isVain(projectId: string): boolean {
    return isPending(this.#unknown, projectId)
  }
}

/** Whether the time of an entry is still to come; removes the entry otherwise. */
function isPending(times: Map<string, number>, projectId: string): boolean {
  if ((times.get(projectId) ?? 0) > Date.now()) return true
  times.delete(projectId)
  return false
}

/** Whether a compute has a project, and how; undefined when it has not. */
async function has({ agent }: Member, projectId: string): Promise<'open' | 'closed' | undefined> {
  try {
    // A newer compute may have other words.
    return (await agent.projects.get(projectId)).status === 'closed' ? 'closed' : 'open'
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined
    throw error
  }
}

const isNoSuchProject = (error: unknown): boolean => error instanceof ApiError && error.word === 'no-such-project'

/** It may be on one that could not be asked. */
function noSuchProject(projectId: string, members: readonly Member[]): ApiError {
  const away = members.flatMap(({ name, isConnected }) => (isConnected ? [] : [name]))
  const more = away.length > maxNamed ? ` and ${away.length - maxNamed} more` : ''
  const unasked = away.length > 0 ? `; not connected: ${away.slice(0, maxNamed).join(', ')}${more}` : ''
  return notFound(`project_id: no compute has an open project ${projectId}${unasked}`, { word: 'no-such-project' })
}

export const elsewhere = (projectId: string, { name }: Member): ApiError =>
  conflict(`compute_id: the project ${projectId} is on the compute ${name}; leave compute_id out, or name that one`, {
    word: 'project-exists',
  })
