import type { Desired, DesiredNode } from '../../labfile/desired.ts'
import { Diagnostics, quoted } from '../../labfile/diagnostics.ts'
import { LabFileError } from '../../labfile/lab-file-error.ts'
import { ignore } from '../../lib/async/ignore.ts'
import { mapLimit } from '../../lib/async/map-limit.ts'
import { ApiError } from '../../lib/errors/api-error.ts'
import type { KindDescriptor } from '../../model/kinds/kind.ts'
import { kindOf } from '../../model/kinds/node.ts'
import { nameKey } from '../../model/lab/names.ts'
import type { LabPlan } from '../../model/lab/topology.ts'
import type { ComputeAgents } from '../computes/agents.ts'
import type { ProjectRecord } from '../lab/document.ts'
import { withoutNulls } from '../lab/fields.ts'
import type { Lab } from '../lab/lab.ts'
import { configDigests } from '../nodes/config-texts.ts'
import { missingImages } from '../plan/lab-images.ts'
import { canBePlaceholder, withPlaceholders } from '../plan/placeholders.ts'
import { planOf } from '../plan/plan.ts'
import { type Actual, type Plan, type PlanOptions, wantedCompute } from '../plan/types.ts'
import type { Labs } from '../service.ts'
import { newMarks } from './steps/marks.ts'

/** A plan, with the lab as it was compared. */
export interface PreparedPlan {
  readonly desired: Desired
  readonly options: PlanOptions
  readonly plan: Plan
  readonly actual: Actual
}

/** Compares an open lab with a lab file. A `LabFileError` for computes and images that are not there. */
export async function prepare(
  labs: Pick<Labs, 'computes'>,
  lab: Lab,
  desired: Desired,
  options: PlanOptions,
  agentFor: ComputeAgents,
): Promise<PreparedPlan> {
  const actual = await actualOf(lab, desired, agentFor)
  return { desired, actual, ...(await planned(labs, desired, { actual, options, project_id: lab.id }, agentFor)) }
}

async function planned(
  labs: Pick<Labs, 'computes'>,
  desired: Desired,
  { actual, options, project_id }: { actual: Actual; options: PlanOptions; project_id?: string },
  agentFor: ComputeAgents,
): Promise<Pick<PreparedPlan, 'plan' | 'options'>> {
  const complete = { ...options, computes: await computesOf(labs, desired) }
  const plan = planOf(desired, actual, complete)
  requireAddresses(desired, plan)
  const computeOf = (want: DesiredNode) => wantedCompute(want, complete) ?? plan.found.get(want)?.compute_id
  const asked = { agentFor, computeOf, ...withoutNulls({ project_id }) }
  const missing = await missingImages(labs, { plan, nodes: desired.nodes }, asked)
  const mayLack = ({ want }: { want: DesiredNode }) => options.partial === true && canBePlaceholder(plan, want)
  const withoutImages = withPlaceholders(plan, missing.filter(mayLack))
  const diagnostics = new Diagnostics()
  for (const image of missing) if (!mayLack(image)) diagnostics.add(image.at, image.message, image.hint)
  reportMissingSettings(withoutImages, diagnostics)
  if (!diagnostics.isEmpty) throw new LabFileError(diagnostics.list())
  return { plan: withoutImages, options: complete }
}

/** Reports settings that the nodes which a plan creates must have, and that have no default: which one is right depends on the image. */
function reportMissingSettings({ steps, found }: Plan, diagnostics: Diagnostics): void {
  for (const { task } of steps) {
    if (task.type !== 'create-node' && task.type !== 'retry-node' && task.type !== 'recreate-node') continue
    if (task.type === 'create-node' && task.creationError !== undefined) continue
    const { want } = task
    const have = found.get(want)
    const { typeDefaults }: KindDescriptor = kindOf(want.kind)
    const given = { ...(have?.node_type === want.kind && have.properties), ...want.properties }
    for (const [name, usual] of Object.entries(typeDefaults?.(given) ?? {}))
      diagnostics.add(
        want.at,
        `${quoted(name)} is missing`,
        `write ${name}: ${String(usual)}, or the ${name} that its image is for`,
      )
  }
}

/** A `LabFileError` for MAC addresses that no new node can have, unless the node has them already. */
function requireAddresses({ nodes }: Desired, { found }: Plan): void {
  const diagnostics = new Diagnostics()
  for (const want of nodes) {
    const { addressIssue }: KindDescriptor = kindOf(want.kind)
    const have = found.get(want)
    const custom = (adapters: unknown) => (adapters === undefined ? {} : { custom_adapters: adapters })
    const issue = addressIssue?.({ ...want.properties, ...custom(want.settings.custom_adapters) })
    if (issue === undefined) continue
    const before = have && { adapters: want.properties.adapters, ...have.properties, ...custom(have.custom_adapters) }
    const field = issue.split(':', 1)[0] ?? ''
    if (before === undefined || issue !== addressIssue?.(before))
      diagnostics.add(want.keys[field] ?? want.at, issue.slice(field.length + 2))
  }
  if (!diagnostics.isEmpty) throw new LabFileError(diagnostics.list())
}

/** The ids of the computes that a file names. A `LabFileError` for those that are not there. */
async function computesOf(
  { computes }: Pick<Labs, 'computes'>,
  { nodes }: Pick<Desired, 'nodes'>,
): Promise<Map<string, string>> {
  const naming = new Map<string, DesiredNode>()
  for (const want of nodes)
    if (want.compute_id !== undefined && (!naming.has(want.compute_id) || 'compute' in want.keys))
      naming.set(want.compute_id, want)
  const diagnostics = new Diagnostics()
  const found = new Map<string, string>()
  await mapLimit([...naming], async ([idOrName, { keys, at }]) => {
    try {
      found.set(idOrName, await computes.choose(idOrName))
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      const hint = 'expected an id or a name from GET /v2/computes'
      if (error.code === 'no-such-compute')
        diagnostics.add(keys.compute ?? at, `there is no compute ${quoted(idOrName)}`, hint)
      else if (error.code === 'ambiguous-compute')
        diagnostics.add(keys.compute ?? at, error.message.replace(/^compute_id: /, ''))
      else throw error
    }
  })
  if (!diagnostics.isEmpty) throw new LabFileError(diagnostics.list())
  return found
}

/** The plan of a lab that is not there yet. Fails as `prepare`. */
export async function planNew(
  labs: Pick<Labs, 'computes'>,
  desired: Desired,
  options: PlanOptions,
  agentFor: ComputeAgents,
): Promise<Plan> {
  const project = { name: desired.lab, revision: 0 } as ProjectRecord
  const actual = { project, nodes: new Map(), links: new Map(), running: new Set<string>(), configs: new Map() }
  const { plan } = await planned(labs, desired, { actual, options }, agentFor)
  const step = { do: 'create', what: 'project', name: desired.lab, how: 'live' } as const
  return { ...plan, steps: [{ ...step, task: { type: 'project', name: desired.lab } }, ...plan.steps] }
}

/** A plan for the client. */
export const planView = (
  { steps, withheld, extra, cannotRun }: Plan,
  desired: Desired,
  { project_id, revision }: { project_id: string; revision: number },
): LabPlan => ({
  project_id,
  lab: desired.lab,
  revision,
  steps: steps.map(({ task: _, ...step }) => step),
  withheld: [...withheld],
  extra: [...extra],
  ...(cannotRun.length > 0 && { cannot_run: [...cannotRun] }),
})

/** Whether an apply has ended with the service before it was done. */
export const isInterrupted = ({ jobs }: Pick<Labs, 'jobs'>, { id, document: { project } }: Lab): boolean =>
  project.lastApplied?.pendingApply !== undefined && !jobs.isBusy(id, 'apply')

/** Whether an apply of the plan changes the document at all. */
export const changesAnything = (lab: Lab, by: string, prepared: PreparedPlan): boolean =>
  prepared.plan.steps.length > 0 ||
  lab.document.project.lastApplied?.by !== by ||
  lab.document.project.lastApplied.pendingApply !== undefined ||
  prepared.plan.linksToMark.length > 0 ||
  newMarks(lab, prepared).length > 0

async function actualOf(lab: Lab, desired: Desired, agentFor: ComputeAgents): Promise<Actual> {
  const { document, reported: shown } = lab
  const names = new Set(desired.nodes.flatMap(({ name, was = name }) => [nameKey(name), nameKey(was)]))
  const ids = new Set(desired.nodes.map(({ node_id }) => node_id))
  const running = new Set<string>()
  for (const [id, { status }] of shown) if (status !== 'stopped') running.add(id)
  const concerned = [...document.nodes.values()].filter(
    ({ name, node_id, creationError }) => creationError === undefined && (names.has(nameKey(name)) || ids.has(node_id)),
  )
  const configs = new Map<string, Readonly<Record<string, string>>>()
  await mapLimit(concerned, async (record) => {
    const digests = await configDigests(lab, record, agentFor).catch(
      ignore('the configuration of the file is compared with none'),
    )
    if (digests !== undefined) configs.set(record.node_id, digests)
  })
  const { project, nodes, links, tasks } = document
  return {
    project,
    tasks,
    nodes: new Map(nodes),
    links: new Map(links),
    running,
    unready: new Set(lab.unready),
    configs,
  }
}
