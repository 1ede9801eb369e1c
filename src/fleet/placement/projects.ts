import type { FleetAgent } from '../../host-agent.ts'
import type { KeyedMutex } from '../../lib/async/keyed-mutex.ts'
import { ApiError, badRequest, conflict } from '../../lib/errors/api-error.ts'
import { localId } from '../../model/compute.ts'
import type { Project, ProjectCreate } from '../../model/project.ts'
import type { FanOut } from '../members/fan-out.ts'
import { noCompute, unreachable } from '../members/member-errors.ts'
import type { FleetMembers, Member } from '../members/members.ts'
import { type AskOwner, onOtherCompute, type ProjectLocator } from './project-locator.ts'
import type { ProjectQuota } from './project-quota.ts'
import type { Scheduler } from './scheduler.ts'

/** Most computes that are tried for a new project, when the best ones turn out to be unreachable. */
const maxTried = 3

export interface ProjectOptions {
  readonly members: FleetMembers
  readonly fanOut: FanOut
  readonly locator: ProjectLocator
  readonly at: AskOwner
  readonly scheduler: Scheduler
  /** By project: requests that place and that end a project run one after the other, so that none is placed twice or lost. */
  readonly turns: KeyedMutex
  readonly quota?: ProjectQuota | undefined
}

/** Places every project on one compute: the one that the client names, else the one with most room. */
export function gatewayProjects(options: ProjectOptions): FleetAgent['projects'] {
  const { fanOut, locator, at } = options
  return {
    async list(status = 'open') {
      // A project that is open on one compute may have files on another one, where it is closed.
      const requestedStatus = status === 'open' ? 'open' : 'all'
      const found = new Map<string, FoundProject[]>()
      for (const { member, value } of await fanOut.ask(({ projects }) => projects.list(requestedStatus))) {
        for (const it of value) {
          const known = found.get(it.project_id) ?? []
          found.set(it.project_id, [...known, { member, project: { ...it, compute_id: member.id } }])
        }
      }
      const projects = [...found].flatMap(([id, all]) => viewsOf(id, all, locator))
      return status === 'closed' ? projects.filter(isClosed) : projects
    },
    create: (input) => create(input, options),
    releaseUdpPort: (id, port, node) => at(id, ({ projects }) => projects.releaseUdpPort(id, port), node),
    reserveUdpPort: (id, node) => at(id, ({ projects }) => projects.reserveUdpPort(id), node),
  }
}

interface FoundProject {
  readonly member: Member
  readonly project: Project
}

/** A project in a list: as open on each compute where it is open (several are reported), else once as closed. */
function viewsOf(id: string, all: readonly FoundProject[], locator: ProjectLocator): Project[] {
  const open = all.filter(({ project }) => !isClosed(project))
  const members = open.map(({ member }) => member)
  if (
    open.length > 1 &&
    !locator.isLabOn(
      id,
      open.map(({ member }) => member.id),
    )
  )
    locator.shared(id, members)
  else if (open.length > 1) return open.slice(0, 1).map(({ project }) => project)
  return (open.length > 0 ? open : all.slice(0, 1)).map(({ project }) => project)
}

const isClosed = ({ status }: Project): boolean => status === 'closed'

type Created = { project: Project; created: boolean }

function create(input: ProjectCreate, options: ProjectOptions): Promise<Created> {
  const { compute_id, ...wanted } = input
  const given = wanted.project_id?.toLowerCase()
  const project_id = given ?? crypto.randomUUID()
  const named = compute_id?.toLowerCase()
  // A gateway has no compute `local`: it means the one with most room.
  const requestedId = named === localId ? undefined : named
  return options.turns.run(project_id, async () => {
    // No compute is asked for an id that was just made.
    const known = given === undefined ? undefined : await options.locator.find(given)
    const placed = () => place({ ...wanted, project_id }, { requestedId, known }, options)
    return known === undefined && options.quota !== undefined ? options.quota.during(project_id, placed) : placed()
  })
}

/** 409 for a project that is on another compute than the one asked for, 503 when no compute can take it. */
async function place(
  input: ProjectCreate & { project_id: string },
  { requestedId, known }: { requestedId: string | undefined; known: Member | undefined },
  { members, fanOut, locator, scheduler }: ProjectOptions,
): Promise<Created> {
  const { project_id } = input
  if (known !== undefined) {
    if (requestedId !== undefined && requestedId !== known.id && !locator.isLabOn(project_id, [requestedId]))
      throw onOtherCompute(project_id, known)
    fanOut.noteCompute(known)
    return fanOut.agentOf(known).projects.create(input)
  }
  const candidates =
    requestedId === undefined ? scheduler.order(await members.all()) : [await named(members, requestedId)]
  let failure: unknown
  for (const member of candidates.slice(0, maxTried)) {
    // Counted before anything is awaited, so that projects that are created together do not all see the same room.
    const undo = scheduler.place(member)
    // The placement is saved before the creation: a project that is not found again would be created twice.
    await locator.put(project_id, member).catch((error: unknown) => {
      undo()
      throw error
    })
    try {
      fanOut.noteCompute(member)
      return await fanOut.agentOf(member).projects.create(input)
    } catch (error) {
      if (mayHaveBeenMade(error)) throw error
      undo()
      await locator.forget(project_id)
      if (!isAbsence(error)) throw error
      failure = error
    }
  }
  throw failure ?? noCompute()
}

async function named(members: FleetMembers, id: string): Promise<Member> {
  const member = await members.find(id)
  if (member === undefined) throw badRequest(`compute_id: there is no compute ${id}`)
  if (!member.isConnected) throw unreachable(member)
  if (!member.acceptsProjects) throw conflict(`compute_id: the compute ${member.name} accepts no new projects`)
  return member
}

/** Nothing was created there. */
const isAbsence = (error: unknown): boolean => error instanceof ApiError && error.status === 503
/** It may have been created. */
const mayHaveBeenMade = (error: unknown): boolean => !(error instanceof ApiError) || [502, 504].includes(error.status)
