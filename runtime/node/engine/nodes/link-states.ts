import { randomBytes } from 'node:crypto'
import type { DirectLinkChanges, DirectLinkState } from '../../../../src/model/direct-link.ts'
import { isSameTraffic } from '../../../../src/model/direct-link.ts'
import type { OpenProject } from '../projects/open-project.ts'
import type { StoredLink } from '../projects/project-record.ts'

/** Links that are read, or reported, in one piece. Other requests are answered between two pieces. */
const atOnce = 250
/** Age at which states are read again, ms, unless something has changed them before. */
const staleMs = 500

interface Stated {
  readonly state: DirectLinkState
  /** The number of the change that led to it. */
  readonly change: number
}

interface ProjectStates {
  /** Begins the texts of `since`: numbers of an earlier service, or of an earlier opening of the project, mean nothing here. */
  readonly epoch: string
  /** By link, in the order of their last change. */
  readonly stated: Map<string, Stated>
  last: number
  readAt: number
  /** `linkChanges` of the project when they were read. */
  readOf: number
  /** The read that goes on. */
  reading: Promise<void> | undefined
}

/** The last states of the links of open projects, with the order in which they changed. */
export class LinkStates {
  readonly #projects = new Map<string, ProjectStates>()
  readonly #read: (project: OpenProject, links: readonly StoredLink[]) => Promise<DirectLinkState[]>

  /** `read`: the states of some links of a project, in the order given. */
  constructor(read: (project: OpenProject, links: readonly StoredLink[]) => Promise<DirectLinkState[]>) {
    this.#read = read
  }

  /** See `LinkAgent.changes`. */
  async changes(project: OpenProject, since: string | undefined): Promise<DirectLinkChanges> {
    const known = this.#of(project.id)
    const isStale = () => performance.now() - known.readAt >= staleMs || known.readOf !== project.linkChanges
    // A read that goes on may have begun before a change: then another one follows, for all who wait.
    if (isStale()) await known.reading
    if (isStale())
      known.reading ??= this.#readAll(project, known).finally(() => {
        known.reading = undefined
      })
    await known.reading
    const [epoch, number] = since?.split('.') ?? []
    let at = epoch === known.epoch ? Number(number) || 0 : 0
    const states: DirectLinkState[] = []
    const answer = (more: boolean) => ({ states, next: `${known.epoch}.${at}`, more })
    for (const { state, change } of known.stated.values()) {
      if (change <= at) continue
      if (states.length === atOnce) return answer(true)
      states.push(state)
      at = change
    }
    return answer(false)
  }

  /** Forgets a link that was removed or joined: its state, or that of a new link with the same id, is reported again. */
  remove(projectId: string, linkId: string): void {
    this.#projects.get(projectId)?.stated.delete(linkId)
  }

  /** Forgets a project that was closed. */
  forget(projectId: string): void {
    this.#projects.delete(projectId)
  }

  #of(projectId: string): ProjectStates {
    const known = this.#projects.get(projectId)
    if (known !== undefined) return known
    const epoch = randomBytes(6).toString('hex')
    const made = {
      epoch,
      stated: new Map(),
      last: 0,
      reading: undefined,
      readAt: Number.NEGATIVE_INFINITY,
      readOf: -1,
    }
    this.#projects.set(projectId, made)
    return made
  }

  async #readAll(project: OpenProject, known: ProjectStates): Promise<void> {
    const links = [...project.links.values()]
    const readAt = performance.now()
    const readOf = project.linkChanges
    for (let first = 0; first < links.length; first += atOnce) {
      for (const state of await this.#read(project, links.slice(first, first + atOnce))) {
        const { link_id } = state
        const before = known.stated.get(link_id)
        if (!project.links.has(link_id) || (before !== undefined && isSameState(before.state, state))) continue
        known.last += 1
        // A map lists what was entered last at its end.
        known.stated.delete(link_id)
        known.stated.set(link_id, { state, change: known.last })
      }
    }
    known.readAt = readAt
    known.readOf = readOf
  }
}

const isSameState = (one: DirectLinkState, other: DirectLinkState): boolean =>
  one.verdict === other.verdict &&
  one.reason === other.reason &&
  one.path === other.path &&
  isSameTraffic(one.ab, other.ab) &&
  isSameTraffic(one.ba, other.ba)
