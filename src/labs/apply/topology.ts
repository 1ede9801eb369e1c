import type { Desired, DesiredDay0, DesiredNode } from '../../labfile/desired.ts'
import { Diagnostics, quoted } from '../../labfile/diagnostics.ts'
import { LabFileError } from '../../labfile/read.ts'
import { isSegmentKind } from '../../labfile/segment-kinds.ts'
import { onAbort } from '../../lib/async/abort.ts'
import { ignore } from '../../lib/async/ignore.ts'
import { mapLimit } from '../../lib/async/map-limit.ts'
import { sha256, toHex } from '../../lib/crypto/secret.ts'
import { ApiError, conflict, ignoreNotFound } from '../../lib/errors/api-error.ts'
import type { KindDescriptor } from '../../model/kinds/kind.ts'
import { kindOf } from '../../model/kinds/node.ts'
import { nameKey } from '../../model/lab/names.ts'
import { isKnownKind, type LabNodeCreate } from '../../model/lab/node.ts'
import type { LabJobStep, LabPlan, LabTopology } from '../../model/lab/topology.ts'
import type { JobState, StartedJob } from '../jobs/jobs.ts'
import {
  Changes,
  type LinkRecord,
  type NodeLastApplied,
  type NodeRecord,
  type ProjectLastApplied,
  type ProjectRecord,
} from '../lab/document.ts'
import { withoutNulls } from '../lab/fields.ts'
import type { EditStep } from '../lab/history.ts'
import type { Lab, LabNews } from '../lab/lab.ts'
import { nodePathOf } from '../lab/node-on-compute.ts'
import { saveOrRevert } from '../lab/save-or-revert.ts'
import type { ComputeClients, Labs } from '../labs.ts'
import { startCapture, stopCapture } from '../links/captures.ts'
import { createLinks, removeLink, unwire, updateLink, wireAgain, withLinkLock } from '../links/links.ts'
import { day0Image, day0Media, day0MediumIn } from '../nodes/day0.ts'
import { actOn, createNode, removeNode, updateNode } from '../nodes/nodes.ts'
import { joinAgain, requireMade } from '../nodes/placeholders.ts'
import { same } from '../plan/json-equal.ts'
import { requireImages } from '../plan/lab-images.ts'
import { lastAppliedOf } from '../plan/last-applied.ts'
import { completeSettings } from '../plan/node-defaults.ts'
import { phaseOf } from '../plan/order.ts'
import { planOf } from '../plan/plan.ts'
import {
  type Actual,
  type Plan,
  type PlannedChange,
  type PlannedStep,
  type PlanOptions,
  type WantedLink,
  wantedCompute,
} from '../plan/types.ts'
import { rollBack } from '../undo/undo.ts'

/** Steps of one phase that are taken concurrently, and links that are made together. */
const maxAtOnce = 6
const linksAtOnce = 250
/** Most steps that a job shows. */
const maxShown = 100

/** The nodes and links of a lab. */
export function topologyOf(lab: Lab): LabTopology {
  const nodes = [...lab.document.nodes.values()].map((record) => lab.nodeView(record))
  return {
    revision: lab.document.project.revision,
    nodes: nodes.filter(({ node_type }) => !isSegmentKind(node_type)),
    links: [...lab.document.links.values()].map((record) => lab.linkView(record)),
    segments: nodes.filter(({ node_type }) => isSegmentKind(node_type)),
  }
}

/** The entity tag of a revision. */
export const revisionTag = ({ revision }: Pick<ProjectRecord, 'revision'>): string => `"${revision}"`

/** 412 unless `If-Match` is absent or names the present revision. */
export function requireRevision(lab: Lab, ifMatch: string | null): void {
  if (ifMatch === null) return
  const present = revisionTag(lab.document.project)
  const wanted = ifMatch.split(',').map((tag) => tag.trim())
  if (wanted.includes(present) || wanted.includes('*')) return
  throw new ApiError(412, `If-Match: the project was changed meanwhile; its ETag is ${present} now`)
}

/** 409 unless this user made the project from a lab file, or takes it over. */
export function requireOwn(lab: Lab, by: string, { take_over }: Pick<PlanOptions, 'take_over'>): void {
  const { name, file } = lab.document.project
  if (take_over === true || file?.by === by) return
  const why =
    file === undefined ? 'was not made from a lab file' : `was made from a lab file by ${JSON.stringify(file.by)}`
  throw conflict(
    `A project ${name} already exists and ${why}: give the lab another name, or take over the project (take_over)`,
    { code: 'made-otherwise' },
  )
}

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
  clientFor: ComputeClients,
): Promise<PreparedPlan> {
  const actual = await actualOf(lab, desired, clientFor)
  return { desired, actual, ...(await planned(labs, desired, { actual, options, project_id: lab.id }, clientFor)) }
}

async function planned(
  labs: Pick<Labs, 'computes'>,
  desired: Desired,
  { actual, options, project_id }: { actual: Actual; options: PlanOptions; project_id?: string },
  clientFor: ComputeClients,
): Promise<Pick<PreparedPlan, 'plan' | 'options'>> {
  const complete = { ...options, computes: await computesOf(labs, desired) }
  const plan = planOf(desired, actual, complete)
  requireAddresses(desired, plan)
  const computeOf = (want: DesiredNode) => wantedCompute(want, complete) ?? plan.found.get(want)?.compute_id
  await requireImages(labs, { plan, nodes: desired.nodes }, { clientFor, computeOf, ...withoutNulls({ project_id }) })
  return { plan, options: complete }
}

/** A `LabFileError` for MAC addresses that no new node can have, unless the node has them already. */
function requireAddresses({ nodes }: Desired, { found }: Plan): void {
  const diagnostics = new Diagnostics()
  for (const want of nodes) {
    const { addressFault }: KindDescriptor = kindOf(want.kind)
    const have = found.get(want)
    const custom = (adapters: unknown) => (adapters === undefined ? {} : { custom_adapters: adapters })
    const fault = addressFault?.({ ...want.properties, ...custom(want.settings.custom_adapters) })
    if (fault === undefined) continue
    const before = have && { adapters: want.properties.adapters, ...have.properties, ...custom(have.custom_adapters) }
    const field = fault.split(':', 1)[0] ?? ''
    if (before === undefined || fault !== addressFault?.(before))
      diagnostics.add(want.keys[field] ?? want.at, fault.slice(field.length + 2))
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
  await mapLimit([...naming], async ([word, { keys, at }]) => {
    try {
      found.set(word, await computes.choose(word))
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      const hint = 'expected an id or a name from GET /v2/computes'
      if (error.code === 'no-such-compute')
        diagnostics.add(keys.compute ?? at, `there is no compute ${quoted(word)}`, hint)
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
  clientFor: ComputeClients,
): Promise<Plan> {
  const project = { name: desired.lab, revision: 0 } as ProjectRecord
  const actual = { project, nodes: new Map(), links: new Map(), running: new Set<string>(), configs: new Map() }
  const { plan } = await planned(labs, desired, { actual, options }, clientFor)
  const step = { do: 'create', what: 'project', name: desired.lab, how: 'live' } as const
  return { ...plan, steps: [{ ...step, task: { type: 'project', name: desired.lab } }, ...plan.steps] }
}

/** A plan for the client. */
export const planView = (
  { steps, withheld, extra }: Plan,
  desired: Desired,
  { project_id, revision }: { project_id: string; revision: number },
): LabPlan => ({
  ...{ project_id, lab: desired.lab, revision },
  steps: steps.map(({ task: _, ...step }) => step),
  withheld: [...withheld],
  extra: [...extra],
})

/** Whether an apply has ended with the service before it was done. */
export const isInterrupted = ({ jobs }: Pick<Labs, 'jobs'>, { id, document: { project } }: Lab): boolean =>
  project.file?.pendingApply !== undefined && !jobs.isBusy(id, 'apply')

/** Whether an apply of the plan changes the document at all. */
export const changesAnything = (lab: Lab, by: string, prepared: PreparedPlan): boolean =>
  prepared.plan.steps.length > 0 ||
  lab.document.project.file?.by !== by ||
  lab.document.project.file.pendingApply !== undefined ||
  prepared.plan.linksToMark.length > 0 ||
  lastAppliedIn(lab, prepared).length > 0

async function actualOf(lab: Lab, desired: Desired, clientFor: ComputeClients): Promise<Actual> {
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
    const digests = await configDigests(lab, record, clientFor).catch(
      ignore('the configuration of the file is compared with none'),
    )
    if (digests !== undefined) configs.set(record.node_id, digests)
  })
  const { project, nodes, links } = document
  return { project, nodes: new Map(nodes), links: new Map(links), running, unready: new Set(lab.unready), configs }
}

/** Texts of the configurations of a node, by name. */
export async function configTexts(
  lab: Lab,
  record: NodeRecord,
  clientFor: ComputeClients,
): Promise<Record<string, string>> {
  const { configs = {} }: Pick<KindDescriptor, 'configs'> = isKnownKind(record.node_type)
    ? kindOf(record.node_type)
    : {}
  const client = clientFor(record.compute_id)
  const node = nodePathOf(lab, record)
  const known = lab.reported.get(record.node_id)
  // The guest of a running node may have saved a configuration since.
  const isCurrent = known?.status === 'stopped'
  const read = new Map<string | undefined, Promise<Readonly<Record<string, unknown>>>>()
  const texts: Record<string, string> = {}
  for (const [name, { field, action }] of Object.entries(configs)) {
    const shown =
      read.get(action) ??
      (action === undefined
        ? isCurrent
          ? Promise.resolve(known)
          : client.node(node)
        : client.nodeAction(node, action))
    read.set(action, shown)
    const value = (await shown)[field as never] as unknown
    texts[name] = typeof value === 'string' ? value : ''
  }
  return texts
}

async function configDigests(lab: Lab, record: NodeRecord, clientFor: ComputeClients): Promise<Record<string, string>> {
  const texts = Object.entries(await configTexts(lab, record, clientFor))
  return Object.fromEntries(await Promise.all(texts.map(async ([name, text]) => [name, toHex(await sha256(text))])))
}

/** The marks that a plan leaves on nodes without a step, where they differ from the present ones. */
function lastAppliedIn(
  lab: Lab,
  { plan, actual, options }: PreparedPlan,
): { record: NodeRecord; file: NodeLastApplied }[] {
  return [...plan.marks].flatMap(([node_id, want]) => {
    const record = lab.document.nodes.get(node_id)
    if (record === undefined) return []
    const managed = record.file?.managed === true || options.take_over === true
    const file = lastAppliedOf(
      want,
      record,
      { managed, configs: basesOf(want, record, actual.configs.get(node_id) ?? {}) },
      false,
    )
    return same(file, record.file) ? [] : [{ record, file }]
  })
}

/**
 * The new bases of configurations. A configuration that equals the file has the file as its base; another one keeps its base. One that has
 * left the file keeps its base while its removal from the node is withheld (`held`).
 */
function basesOf(
  want: DesiredNode,
  record: NodeRecord,
  now: Readonly<Record<string, string>>,
  held: readonly string[] = [],
): NodeLastApplied['configs'] {
  const { configs: access = {} }: Pick<KindDescriptor, 'configs'> = kindOf(want.kind)
  const left = Object.entries(record.file?.configs ?? {}).filter(
    ([name]) => !(name in want.configs) && held.includes(access[name]?.field ?? ''),
  )
  const bases = Object.entries(want.configs).flatMap(([name, { digest }]) => {
    if (now[name] === digest) return [[name, { file: digest, node: digest }] as const]
    const base = record.file?.configs[name]
    return base === undefined ? [] : [[name, base] as const]
  })
  return Object.fromEntries([...left, ...bases])
}

/** Who applies a file, and how its nodes start. */
export interface ApplyInput {
  readonly prepared: PreparedPlan
  readonly by: string
  /** The project was made for it: a failure deletes the project again. */
  readonly isNew?: boolean
}

/**
 * Takes the steps of a plan, as a job. When a step fails, or the job is cancelled, all changes are reverted, the last one first. After a crash
 * of the service in between, its next start starts the nodes that were stopped, and the next apply of the same file does the rest.
 */
export function applyPlan(labs: Labs, lab: Lab, input: ApplyInput, clientFor: ComputeClients): StartedJob {
  const run = new Run(labs, lab, input, clientFor)
  return labs.jobs.run(lab, 'apply', {
    state: () => run.state(),
    async work({ id, signal, changed }) {
      run.begin(id, signal, changed)
      await labs.exclusively(lab.id, () => run.execute())
      try {
        await run.start()
      } finally {
        await run.end()
      }
    },
  })
}

/** A step and how far it is. */
interface Progress {
  readonly step: PlannedStep
  state: LabJobStep['state']
  reason: string | null
}

/** The run of one plan. */
class Run {
  readonly #labs: Labs
  readonly #lab: Lab
  readonly #by: string
  readonly #isNew: boolean
  readonly #clientFor: ComputeClients
  readonly #edit: EditStep = { by: 'edit', consoles: new Set() }
  /** Functions that revert changes which are not in the document, in the order of the changes. */
  readonly #undo: (() => Promise<unknown>)[] = []
  /** Ids of nodes that steps have stopped. */
  readonly #stopped = new Set<string>()
  #prepared: PreparedPlan
  #steps: Progress[]
  #jobId = ''
  #signal = new AbortController().signal
  #changed = () => {}
  #startJob: string | undefined

  constructor(labs: Labs, lab: Lab, { prepared, by, isNew = false }: ApplyInput, clientFor: ComputeClients) {
    this.#labs = labs
    this.#lab = lab
    this.#by = by
    this.#isNew = isNew
    this.#clientFor = clientFor
    this.#prepared = prepared
    this.#steps = progressOf(prepared.plan)
  }

  begin(jobId: string, signal: AbortSignal, changed: () => void): void {
    this.#jobId = jobId
    this.#signal = signal
    this.#changed = changed
  }

  state(): JobState {
    const of = (state: Progress['state']) => this.#steps.filter((it) => it.state === state)
    const [failed] = of('failed')
    const shown = (['failed', 'undone', 'cancelled', 'running', 'waiting'] as const).flatMap(of).slice(0, maxShown)
    return {
      reason: failed === undefined ? null : `${failed.step.name}: ${failed.reason}`,
      isCancelled: failed === undefined && of('cancelled').length > 0,
      total: this.#steps.length,
      done: of('done').length,
      failed: of('failed').length,
      skipped: of('undone').length + of('cancelled').length,
      nodes: [],
      steps: shown.map(viewOf),
      ...(this.#startJob !== undefined && { start_job_id: this.#startJob }),
    }
  }

  /** Takes all steps but the starts, or none. */
  async execute(): Promise<void> {
    const lab = this.#lab
    // The project may have been deleted while this waited.
    this.#signal.throwIfAborted()
    // Another edit may have come since the plan was made.
    if (lab.document.project.revision !== this.#prepared.actual.project.revision) {
      const { desired, options } = this.#prepared
      this.#prepared = await prepare(this.#labs, lab, desired, options, this.#clientFor)
      this.#steps = progressOf(this.#prepared.plan)
    }
    const steps = this.#steps.filter(({ step }) => step.task.type !== 'start-node')
    try {
      await this.#recordLastApplied()
      for (const phase of new Set(steps.map(({ step }) => phaseOf(step)))) {
        const together = steps.filter(({ step }) => phaseOf(step) === phase)
        await this.#freeLinkNames(together)
        await this.#phase(together)
      }
    } catch (error) {
      for (const it of this.#steps) if (it.state === 'waiting' || it.state === 'running') this.#show(it, 'cancelled')
      // At the end of the service its next start and the next apply go on from here.
      if (!lab.closing.signal.aborted) {
        await this.#takeBack()
        if (this.#isNew && isEmpty(lab)) await this.#labs.discard(lab, this.#clientFor)
        else await this.end()
      }
      throw error
    }
  }

  /** Notes that the apply is done, or was reverted. */
  async end(): Promise<void> {
    const { closing, document } = this.#lab
    if (closing.signal.aborted || document.project.file?.pendingApply?.job_id !== this.#jobId) return
    await this.#write([{ file: { by: this.#by } }], { by: 'rollback' }, false)
  }

  /** Removes the names of links that get other names, so that two links can exchange their names. */
  async #freeLinkNames(steps: readonly Progress[]): Promise<void> {
    const renamed = steps.flatMap(({ step: { task } }) => {
      if (task.type !== 'change-link' || !task.parts.includes('name')) return []
      const link = this.#lab.link(task.link_id)
      return link.name == null ? [] : [{ link: link.link_id, set: { name: null } }]
    })
    await this.#write(renamed, this.#edit, false)
  }

  /** Takes steps that do not depend on each other. Rejects with the first failure, when no step runs any more. */
  async #phase(steps: readonly Progress[]): Promise<void> {
    const failures: unknown[] = []
    const isOver = () => failures.length > 0 || this.#signal.aborted
    const fail = (it: Progress, error: unknown) => {
      failures.push(error)
      const reason = error instanceof ApiError ? error.message : 'Internal error of the service; see its log'
      this.#show(it, 'failed', reason)
    }
    const isLink = ({ step: { task } }: Progress) => task.type === 'create-link'
    const links = steps.filter(isLink)
    for (let first = 0; first < links.length && !isOver(); first += linksAtOnce) {
      const together = links.slice(first, first + linksAtOnce)
      for (const it of together) this.#show(it, 'running')
      const results = await this.#createLinks(together).catch((error: unknown) => together.map(() => error))
      for (const [index, it] of together.entries()) {
        const error = results[index]
        if (error === undefined) this.#show(it, 'done')
        else fail(it, error)
      }
    }
    await mapLimit(
      steps.filter((it) => !isLink(it)),
      async (it) => {
        if (isOver()) return
        this.#show(it, 'running')
        try {
          await this.#do(it.step)
          this.#show(it, 'done')
        } catch (error) {
          fail(it, error)
        }
      },
      maxAtOnce,
    )
    const [first, ...others] = failures
    // The job logs the one that is thrown.
    for (const error of others) this.#reportDefect(error, 'failed')
    if (failures.length > 0) throw first
    this.#signal.throwIfAborted()
  }

  /** Logs an error that is not a refusal. After a cancel every request that was under way fails. */
  #reportDefect(error: unknown, what: string): void {
    if (!(error instanceof ApiError) && !this.#signal.aborted)
      this.#labs.report(error, `a step of the job ${this.#jobId} (apply) ${what}`)
  }

  #show(it: Progress, state: Progress['state'], reason: string | null = null): void {
    it.state = state
    it.reason = reason
    this.#lab.emit({ action: 'job.step', event: { job_id: this.#jobId, project_id: this.#lab.id, ...viewOf(it) } })
    this.#changed()
  }

  async #takeBack(): Promise<void> {
    const [labs, lab, clientFor] = [this.#labs, this.#lab, this.#clientFor]
    const left: string[] = []
    const note = (error: unknown) => {
      this.#reportDefect(error, 'could not be reverted')
      left.push((error as Error).message)
    }
    left.push(...(await rollBack(labs, lab, this.#edit, clientFor)))
    for (const undo of this.#undo.reverse()) await undo().catch(note)
    const unwired = [...lab.document.links.values()].filter(({ wiring }) => wiring.type === 'none')
    const ids = unwired.map(({ link_id }) => link_id)
    await joinAgain(labs, lab, ids, clientFor, { by: 'rollback' }).catch(note)
    for (const id of this.#stopped) {
      const record = lab.document.nodes.get(id)
      if (record !== undefined) await actOn(labs, lab, record, 'start', clientFor).catch(note)
    }
    for (const it of this.#steps) if (it.state === 'done') this.#show(it, 'undone')
    for (const message of left)
      lab.emit({
        action: 'log.warning',
        event: { message: `Not all changes of the failed apply could be reverted: ${message}` },
      })
  }

  /** Starts the nodes of the plan, by a job of their own, and waits for it. */
  async start(): Promise<void> {
    const steps = this.#steps.filter(({ step }) => step.task.type === 'start-node')
    if (steps.length === 0) return
    const lab = this.#lab
    const nodes = steps.map(({ step }) => lab.node(step.name).node_id)
    const { at_once, load_below, give_up } = this.#prepared.desired.starting
    for (const it of steps) this.#show(it, 'running')
    const job = this.#labs.jobs.start(
      lab,
      { action: 'start', nodes, give_up, ...withoutNulls({ at_once, load_below }) },
      this.#clientFor,
    )
    this.#startJob = job.id
    this.#changed()
    const stop = () => {
      if (this.#labs.jobs.get(job.id).status === 'running') this.#labs.jobs.remove(job.id)
    }
    // The cancel may have come since the last step was taken.
    const forget = onAbort(this.#signal, stop)
    try {
      await job.over
    } finally {
      forget()
      const undone = new Map(this.#labs.jobs.get(job.id).nodes.map((node) => [node.node_id, node]))
      for (const it of steps) {
        const node = undone.get(lab.node(it.step.name).node_id)
        const state = node === undefined ? 'done' : node.state === 'failed' ? 'failed' : 'cancelled'
        this.#show(it, state, node?.reason ?? null)
      }
    }
  }

  async #do({ task }: PlannedStep): Promise<void> {
    const [labs, lab, clientFor] = [this.#labs, this.#lab, this.#clientFor]
    switch (task.type) {
      case 'project':
        if (lab.document.project.name !== task.name) await labs.set(lab, { name: task.name }, clientFor, this.#edit)
        return
      case 'create-node':
        return this.#createNode(task.want, task.node_id, task.change)
      case 'change-node':
        if (task.stops) await this.#stop(task.node_id)
        return this.#changeNode(task.want, task.node_id, task.change, task.held)
      case 'make-node':
        await this.#changeNode(task.want, task.node_id, task.change)
        await requireMade(labs, lab, lab.node(task.node_id), clientFor, this.#edit)
        return this.#giveConsole(task.node_id, task.change.settings)
      case 'recreate-node':
        return this.#recreateNode(task.want, task.node_id, task.change)
      case 'delete-node':
        if (this.#runs(task.node_id)) this.#stopped.add(task.node_id)
        return removeNode(labs, lab, task.node_id, clientFor, this.#edit)
      case 'change-link':
        return this.#changeLink(task)
      case 'delete-link':
        return removeLink(labs, lab, task.link_id, clientFor, this.#edit)
      case 'end-capture':
        await stopCapture(lab, task.link_id, clientFor)
        if (task.next !== undefined) await this.#startCapture(task.link_id, task.next)
        return
      case 'create-link':
      case 'start-node':
        return
    }
  }

  /** Stops a running node, and notes it. */
  async #stop(id: string): Promise<void> {
    if (!this.#runs(id)) return
    this.#stopped.add(id)
    await this.#write(
      [{ file: { by: this.#by, pendingApply: { job_id: this.#jobId, stopped: [...this.#stopped] } } }],
      { by: 'rollback' },
      false,
    )
    await actOn(this.#labs, this.#lab, this.#lab.node(id), 'stop', this.#clientFor)
  }

  #runs(id: string): boolean {
    return (this.#lab.reported.get(id)?.status ?? 'stopped') !== 'stopped'
  }

  /** The inputs of a node for the configurations that are taken from the file. */
  #configInputs({ kind, configs }: DesiredNode, names: readonly string[]): Record<string, unknown> {
    const access = kindOf(kind).configs ?? {}
    return Object.fromEntries(names.map((name) => [access[name]?.field, configs[name]?.text]))
  }

  async #createNode(
    want: DesiredNode,
    node_id: string | undefined,
    { settings, properties, configs }: PlannedChange,
  ): Promise<void> {
    const compute_id = wantedCompute(want, this.#prepared.options)
    const input: LabNodeCreate = {
      ...{ name: want.name, node_type: want.kind, ...withoutNulls({ node_id, compute_id }) },
      ...settings,
      properties: { ...properties, ...this.#configInputs(want, configs) },
    }
    const more = async (record: NodeRecord) => ({ file: await this.#lastAppliedOf(want, record, true, configs) })
    const create = () =>
      createNode(this.#labs, this.#lab, input, { clientFor: this.#clientFor, unique: 'refuse', step: this.#edit, more })
    const made = await create().catch(async (error: unknown) => {
      if (!(await this.#removeOrphan(error, want, node_id))) throw error
      return create()
    })
    await this.#giveConsole(made.node_id, settings)
    if (want.day0 !== undefined) await this.#insertMedium(made.node_id, want.day0)
  }

  /** Sets the console port of a new node. 409 when it is in use: a creation would choose another port without an error. */
  async #giveConsole(id: string, { console }: PlannedChange['settings']): Promise<void> {
    if (console != null) await updateNode(this.#lab, id, { console }, this.#clientFor, { step: this.#edit })
  }

  /** Removes a node that an earlier apply made but did not record, as the service was killed in between. Resolves to whether there was one. */
  async #removeOrphan(error: unknown, { kind }: DesiredNode, node_id: string | undefined): Promise<boolean> {
    if (!(error instanceof ApiError) || error.code !== 'node-exists' || node_id === undefined) return false
    const { document, id } = this.#lab
    if (document.nodes.has(node_id)) return false
    const node = { project_id: id, node_type: kind, node_id }
    await mapLimit(document.project.computes, (compute) =>
      this.#clientFor(compute).removeNode(node).catch(ignoreNotFound),
    )
    return true
  }

  /** What the record of a node says of the file once its settings are applied. `taken`: the configurations applied now. */
  async #lastAppliedOf(
    want: DesiredNode,
    record: NodeRecord,
    isNew: boolean,
    taken: readonly string[],
    held: readonly string[] = [],
  ): Promise<NodeLastApplied> {
    const { options, actual } = this.#prepared
    const managed = isNew || record.file?.managed === true || options.take_over === true
    const configs = { ...basesOf(want, record, isNew ? {} : (actual.configs.get(record.node_id) ?? {}), held) }
    if (taken.length > 0) {
      const now = await configDigests(this.#lab, record, this.#clientFor)
      for (const name of taken) {
        const file = want.configs[name]?.digest
        if (file !== undefined) configs[name] = { file, node: now[name] ?? file }
      }
    }
    return lastAppliedOf(want, record, { managed, configs }, isNew, held)
  }

  async #changeNode(
    want: DesiredNode,
    id: string,
    { name, settings, properties, configs }: PlannedChange,
    held: readonly string[] = [],
  ): Promise<void> {
    const [lab, clientFor] = [this.#lab, this.#clientFor]
    const record = lab.node(id)
    const access = kindOf(want.kind).configs ?? {}
    const inputs = this.#configInputs(want, configs)
    const fields = Object.values(access).filter(({ field }) => field in inputs || field in properties)
    if (fields.length > 0 && record.creationError === undefined) {
      const before = await configTexts(lab, record, clientFor)
      for (const [name, { field, keepsEmpty }] of Object.entries(access)) {
        const text = before[name] ?? ''
        if (!(field in inputs || field in properties) || (text === '' && keepsEmpty !== true)) continue
        this.#undo.push(() =>
          updateNode(lab, id, { properties: { [field]: text } }, clientFor, { step: { by: 'rollback' } }),
        )
      }
    }
    const { console, console_type, custom_adapters, ...map } = settings
    const more = async (now: NodeRecord): Promise<Partial<NodeRecord>> => ({
      ...map,
      file: await this.#lastAppliedOf(want, { ...now, ...map }, false, configs, held),
    })
    const input = {
      ...withoutNulls({ name, console, console_type, custom_adapters }),
      properties: { ...properties, ...inputs },
    }
    await updateNode(lab, id, input, clientFor, { step: this.#edit, more })
    if (want.day0 !== undefined && day0MediumIn(properties) === day0Media[want.day0.medium])
      await this.#insertMedium(id, want.day0)
  }

  /** Recreates a node under its id: its directory is lost. After a crash in between it is a placeholder, which the next apply makes. */
  async #recreateNode(want: DesiredNode, id: string, { settings, properties, configs }: PlannedChange): Promise<void> {
    const [labs, lab, clientFor] = [this.#labs, this.#lab, this.#clientFor]
    const before = lab.node(id)
    await this.#stop(id)
    const to = wantedCompute(want, this.#prepared.options) ?? before.compute_id
    await labs.attachCompute(lab, to, clientFor)
    const record: NodeRecord = {
      ...before,
      ...{ name: want.name, node_type: want.kind, compute_id: to, console: null },
      ...completeSettings(want.kind, settings),
      properties: { ...properties, ...this.#configInputs(want, configs) },
      creationError: 'it is being recreated',
    }
    const ids = lab.document.linksOf(id).map(({ link_id }) => link_id)
    await withLinkLock(lab, ids, async () => {
      const links = ids.flatMap((it) => lab.document.links.get(it) ?? [])
      for (const link of links) await unwire(lab, link, clientFor)
      const unwired = links.map(({ link_id }) => ({ link: link_id, set: { wiring: { type: 'none' as const } } }))
      const write = () => this.#write([{ node: id, set: record }, ...unwired], this.#edit)
      await saveOrRevert(lab, write, () => mapLimit(links, (link) => wireAgain(labs, lab, link, clientFor)))
    })
    if (isKnownKind(before.node_type) && before.creationError === undefined)
      await clientFor(before.compute_id)
        .removeNode(nodePathOf(lab, before))
        .catch(ignore('the creation reports what is left of it'))
    lab.reported.delete(id)
    await requireMade(labs, lab, record, clientFor, this.#edit)
    const made = lab.node(id)
    lab.show(await clientFor(made.compute_id).node(nodePathOf(lab, made)))
    const file = await this.#lastAppliedOf(want, made, true, configs)
    await this.#write([{ node: id, set: { file } }], this.#edit)
    await this.#giveConsole(id, settings)
    if (want.day0 !== undefined) await this.#insertMedium(id, want.day0)
  }

  /** Makes the CD or disk of a machine in its directory, and inserts it. */
  async #insertMedium(id: string, day0: DesiredDay0): Promise<void> {
    const [lab, clientFor] = [this.#lab, this.#clientFor]
    const record = lab.node(id)
    const image = day0Image(day0)
    const { property, file } = day0Media[day0.medium]
    const path = `project-files/${record.node_type}/${id}/${file.slice(2)}`
    const body = new Blob([image]).stream() as ReadableStream<Uint8Array>
    await clientFor(record.compute_id).writeFile(lab.id, path, { content: body, size: image.byteLength })
    await updateNode(lab, id, { properties: { [property]: file } }, clientFor, { step: this.#edit })
  }

  /** Makes links together. The result: for each the reason why it failed, or undefined. */
  async #createLinks(steps: readonly Progress[]): Promise<unknown[]> {
    const [labs, lab, clientFor] = [this.#labs, this.#lab, this.#clientFor]
    const wanted = steps.flatMap(({ step: { task } }) => (task.type === 'create-link' ? [task.link] : []))
    const ids = new Map([...lab.document.nodes.values()].map(({ name, node_id }) => [nameKey(name), node_id]))
    const inputs = wanted.map(({ link_id, ends, name, filters, filters_ab, filters_ba, suspend }) => {
      const at = ({ node, adapter_number, port_number }: (typeof ends)[number]) => ({
        ...{ node_id: ids.get(nameKey(node)) ?? node, adapter_number, port_number },
      })
      const nodes = [at(ends[0]), at(ends[1])] as [LinkRecord['nodes'][number], LinkRecord['nodes'][number]]
      return { ...withoutNulls({ link_id, name }), nodes, filters, filters_ab, filters_ba, suspend }
    })
    const made = await createLinks(labs, lab, inputs, clientFor, {
      step: this.#edit,
      more: { file: { managed: true } },
    })
    return mapLimit(made, async (id, index) => {
      const capture = wanted[index]?.capture
      if (typeof id !== 'string') return id
      return capture && this.#startCapture(id, capture).catch((error: unknown) => error)
    })
  }

  async #startCapture(id: string, { file }: NonNullable<WantedLink['capture']>): Promise<void> {
    await startCapture(this.#lab, id, { ...withoutNulls({ capture_file_name: file }), managed: true }, this.#clientFor)
  }

  async #changeLink({
    link_id,
    link: { name, filters, filters_ab, filters_ba, suspend, capture },
    isTurned,
    parts,
  }: Extract<PlannedStep['task'], { type: 'change-link' }>): Promise<void> {
    const [lab, clientFor] = [this.#lab, this.#clientFor]
    const [ab, ba] = isTurned ? [filters_ba, filters_ab] : [filters_ab, filters_ba]
    const { file } = lab.link(link_id)
    const isMade = file?.managed === true || this.#prepared.options.take_over === true
    const changes = {
      ...(parts.includes('impairment') && { filters, filters_ab: ab, filters_ba: ba }),
      ...((parts.includes('down') || parts.includes('up')) && { suspend }),
    }
    const more = { ...(parts.includes('name') && { name }), ...(isMade && { file: { managed: true as const } }) }
    await updateLink(lab, link_id, changes, clientFor, { step: this.#edit, more })
    if (parts.includes('capture') && capture !== undefined) {
      await this.#startCapture(link_id, capture)
      this.#undo.push(() => stopCapture(lab, link_id, clientFor))
    }
  }

  /** Saves what was applied to objects that need no step, and that the apply is pending. */
  async #recordLastApplied(): Promise<void> {
    const { plan } = this.#prepared
    const lab = this.#lab
    const nodes = lastAppliedIn(lab, this.#prepared).map(({ record, file }) => ({
      node: record.node_id,
      set: { file },
    }))
    const links = plan.linksToMark.map((id) => ({ link: id, set: { file: { managed: true as const } } }))
    const file = { by: this.#by, pendingApply: { job_id: this.#jobId, stopped: [] } }
    await this.#write([{ file }, ...nodes, ...links], this.#edit, false)
  }

  /** Changes members of records that still exist, and emits their events unless only what was applied has changed. */
  async #write(changed: readonly Changed[], step: EditStep = { by: 'rollback' }, isTold = true): Promise<void> {
    if (changed.length === 0) return
    const lab = this.#lab
    await lab.edit(({ project, nodes, links }) => {
      const changes = new Changes()
      const news: (() => LabNews)[] = []
      for (const it of changed) {
        if ('file' in it) changes.project({ ...project, file: it.file })
        else if ('node' in it) {
          const now = nodes.get(it.node)
          if (now === undefined) continue
          const next = { ...now, ...it.set }
          changes.put('node', it.node, next)
          news.push(() => ({ action: 'node.updated', event: lab.nodeView(next) }))
        } else {
          const now = links.get(it.link)
          if (now === undefined) continue
          const next = { ...now, ...it.set }
          changes.put('link', it.link, next)
          news.push(() => ({ action: 'link.updated', event: lab.linkView(next) }))
        }
      }
      return { changes, news: () => (isTold ? news.map((it) => it()) : []), result: undefined }
    }, step)
  }
}

/** Members of a record that get other values. */
type Changed =
  | { readonly node: string; readonly set: Partial<NodeRecord> }
  | { readonly link: string; readonly set: Partial<LinkRecord> }
  | { readonly file: ProjectLastApplied }

const isEmpty = ({ document: { nodes, links, drawings } }: Lab): boolean =>
  nodes.size + links.size + drawings.size === 0

const progressOf = ({ steps }: Plan): Progress[] => steps.map((step) => ({ step, state: 'waiting', reason: null }))
const viewOf = ({ step: { task: _, ...step }, state, reason }: Progress): LabJobStep => ({ ...step, state, reason })
