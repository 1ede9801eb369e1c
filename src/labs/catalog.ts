import { silentMs } from '../fleet/members/fan-out.ts'
import { ignore } from '../lib/async/ignore.ts'
import { mapLimit } from '../lib/async/map-limit.ts'
import { compareText } from '../lib/text/compare-text.ts'
import { type LabProject, labSettings } from '../model/lab/project.ts'
import type { Project } from '../model/project.ts'
import type { StudentLabWork, WorkFor } from './classes/student-lab.ts'
import type { ComputeAgents } from './computes/agents.ts'
import { absenceReasons, type ComputePool } from './computes/compute-pool.ts'
import type { JobList, Jobs } from './jobs/jobs.ts'
import { withDefaults } from './lab/fields.ts'
import type { MoveOptions } from './moves/move.ts'
import type { FileTrust } from './plan/trust.ts'
import type { LabRegistry } from './registry.ts'
import type { Symbols } from './symbols.ts'
import type { Templates } from './templates.ts'

/** What a service knows of all its labs together: `Labs`, where they run in its process, or a directory of labs with processes of their own. */
export interface LabCatalog {
  readonly registry: LabRegistry
  readonly computes: ComputePool
  readonly templates: Templates
  readonly symbols: Symbols
  /** Absent: files are not judged, as no compute of the service is in local mode for it. */
  readonly trust?: FileTrust | undefined
  /** The jobs of this process. */
  readonly jobs: Jobs
  /** The jobs of all labs. */
  readonly allJobs: JobList
  /** How long a drain of a compute may take, s; absent: `defaultDrainS`. */
  readonly drainS?: (() => number) | undefined
  /** Resolves when what an earlier run has left unfinished was removed, where that can be waited for. */
  cleanedUp(): Promise<void>
  /** See `listProjects`. */
  list(agentFor: ComputeAgents): Promise<LabProject[]>
  /** Moves the part of a lab on one compute to another compute, whose id is the result. See `moveLab`. */
  move(id: string, from: string, options: MoveOptions): Promise<string>
  /** Does what a class wants of one lab, in the process of the lab. See `workOnStudentLab`. */
  workOnStudentLab(id: string, work: StudentLabWork, by: WorkFor): Promise<void>
}

type ReasonOf = Awaited<ReturnType<typeof absenceReasons>>

/** All labs, and the projects that only computes have. `openLab`: a lab that is open in this process. */
export async function listProjects(
  { registry, computes }: Pick<LabCatalog, 'registry' | 'computes'>,
  agentFor: ComputeAgents,
  openLab: (id: string, reasonOf: ReasonOf) => LabProject | undefined = () => undefined,
): Promise<LabProject[]> {
  const listed = registry.all().filter(([, { unfinished }]) => !unfinished)
  const reasonOf = await absenceReasons(
    computes,
    listed.flatMap(([, head]) => head.computes),
  )
  const known = listed.map(([id, head]) => openLab(id, reasonOf) ?? registry.view(id, head, reasonOf(head)))
  const elsewhere = await mapLimit(
    await computes.all(),
    async (compute_id) => {
      const none = ignore('a compute that does not answer has no projects to list')
      const projects = (await agentFor(compute_id).projects.list('all').catch(none)) ?? []
      return projects.map((project) => ({ ...unmanaged(project), compute_ids: [compute_id] }))
    },
    undefined,
    silentMs,
  )
  const others = new Map(elsewhere.flat().map((project) => [project.project_id, project]))
  for (const id of registry.ids()) others.delete(id)
  return [...known, ...others.values()].sort((a, b) => compareText(a.name, b.name))
}

/** A project that only a compute has, in the form of a closed lab. */
export const unmanaged = ({ project_id, name, path }: Project): LabProject => ({
  project_id,
  name: name ?? project_id.slice(0, 8),
  status: 'closed',
  ...withDefaults(labSettings, {}),
  path,
  filename: `${name ?? project_id}.gns3`,
  revision: 0,
})
