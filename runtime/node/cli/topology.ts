import { setTimeout as sleep } from 'node:timers/promises'
import { stateOf } from '../../../src/client/link-names.ts'
import type { Calls, LabJob, LabNode, LabPlan, Patchbay } from '../../../src/client/patchbay.ts'
import { PatchbayError } from '../../../src/client/patchbay-error.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { counted } from '../../../src/lib/text/counted.ts'
import { escapeUnsafeLines } from '../../../src/lib/text/escape.ts'
import { quoted } from '../os/sandbox/shell.ts'
import { reasonOf } from '../os/system/error-reason.ts'
import { type CommandContext, clientAt, clientOf, serviceOf } from './client.ts'
import type { CommandInput, FlagValues } from './command.ts'
import type { applying, diffing, downFlags, labFileFlags, upFlags, validating } from './command-flags.ts'
import { requireYes } from './confirm.ts'
import { secondsOf, stopText } from './durations.ts'
import { CommandError, type ExitCode, exits } from './exits.ts'
import { linkJson } from './inspect.ts'
import type { UpNode } from './json-outputs.ts'
import {
  diagnosticsIn,
  isLabFile,
  type LabSource,
  onlyLabFile,
  readLab,
  readText,
  type WrongLabFile,
  withoutPlaces,
} from './lab-file.ts'
import type { CommandOutcome } from './outcome.ts'
import { ownService } from './own-service.ts'
import { noProgress, progressOf } from './progress.ts'
import { jobEnd } from './run-nodes.ts'
import { labIfAny } from './targets.ts'
import { trusting } from './trust.ts'

type Step = LabPlan['steps'][number]
type Query = NonNullable<Calls['PUT /v2/projects/{project_id}/topology']['query']>

/** `patchbay validate FILE`: whether a lab file is right. A service that is named, or runs here, is asked for its images. */
export async function validate({
  args: [word],
  flags,
  signal,
}: CommandInput<typeof validating>): Promise<CommandOutcome> {
  const source = await readLab(word, flags)
  const { name, desired } = source
  const unasked = (await needNoImage(desired.nodes)) ? undefined : await whyUnasked(source, flags, signal)
  const nodes = desired.nodes.filter((it) => it.segment === undefined).length
  const segments = desired.nodes.length - nodes
  const found = { lab: desired.lab, nodes, segments, links: desired.links.length, checks: desired.checks.length }
  return {
    json: { ...found, images_checked: unasked === undefined },
    text: () =>
      `${name} is valid: lab ${desired.lab} with ${[
        counted(nodes, 'node'),
        ...(segments > 0 ? [counted(segments, 'segment')] : []),
        counted(found.links, 'link'),
        ...(found.checks > 0 ? [counted(found.checks, 'check')] : []),
      ].join(', ')}${unasked === undefined ? '' : `\nImages were not checked: ${unasked}`}`,
  }
}

/** Whether no node needs an image: every lab has templates of such kinds. */
async function needNoImage(nodes: LabSource['desired']['nodes']): Promise<boolean> {
  const { kindOf } = await import('../../../src/model/kinds/node.ts')
  return nodes.every(({ kind }) => kindOf(kind).template !== undefined)
}

/** Why the images of a file could not be checked; undefined: the service has them. CommandError 3 when it lacks one. */
async function whyUnasked(
  source: LabSource,
  flags: FlagValues<typeof validating>,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const service = await serviceOf(flags)
    if (service === undefined) return 'no service is running here, and --server is not set'
    // `take_over`: a lab of this name that another user made is no fault of the file.
    const query = { dry_run: 'true', take_over: 'true' } as const
    const context = { client: clientAt(service), signal }
    if (source.imported === undefined) await put(source, context, query)
    else await requireAllRun(source, context, query)
    return undefined
  } catch (error) {
    if ((error instanceof CommandError && error.exit === exits.wrong) || signal.aborted) throw error
    return reasonOf(error)
  }
}

/** CommandError 3 with the nodes of an imported lab that cannot run, by their lines in the file of the user. */
async function requireAllRun(source: LabSource, context: CommandContext, query: Query): Promise<void> {
  const { plan } = await put(source, context, { ...query, dry_run: 'true', partial: 'true' })
  const cannotRun = await import('./cannot-run.ts')
  cannotRun.requireAllRun(source, plan)
}

/** The refusal of a lab file, with what can be done when missing images are all that is wrong with it. */
async function withWaysOut(error: unknown, source: LabSource, context: CommandContext, query: Query): Promise<unknown> {
  if (!(error instanceof CommandError) || error.exit !== exits.wrong) return error
  const tried = await put(source, context, { ...query, dry_run: 'true', partial: 'true' }).catch(
    ignore('more than images is wrong with it'),
  )
  if (tried?.plan.cannot_run === undefined) return error
  const cannotRun = await import('./cannot-run.ts')
  const ways = cannotRun.waysOut(source, cannotRun.nodesThatCannotRun(source, tried.plan))
  return new CommandError(error.exit, [...error.diagnostics, ...ways])
}

/** `patchbay diff FILE`: what `apply` would do. */
export async function diff({ args: [word], flags, signal }: CommandInput<typeof diffing>): Promise<CommandOutcome> {
  const source = await readLab(word, flags)
  const context = { client: await clientOf(flags), signal }
  // What cannot run differs in nothing else from its file.
  const partial: Query = source.imported === undefined ? {} : { partial: 'true' }
  const { plan } = await put(source, context, { ...optionsOf(flags), ...partial, dry_run: 'true' })
  const differs = plan.steps.length + plan.withheld.length > 0
  return {
    exit: flags['exit-code'] && differs ? exits.differs : exits.done,
    json: planJson(plan, new Set()),
    text: () => planText(plan, source.name),
  }
}

/** `patchbay apply FILE`: makes a lab what its file says; starts nothing. */
export async function apply({ args: [word], flags, signal }: CommandInput<typeof applying>): Promise<CommandOutcome> {
  const source = await readLab(word, flags)
  const context = { client: await clientOf(flags), signal }
  return converge(source, context, { flags, starts: false, lastLine: '' })
}

/** `patchbay up FILE`: the same, starts the nodes and waits until they are ready; starts a service where none is named or runs. */
export async function up({ args: [word], flags, signal }: CommandInput<typeof upFlags>): Promise<CommandOutcome> {
  const { ttl } = flags
  const ttl_s = ttl === undefined ? undefined : ttl === '0' ? 0 : Math.ceil(secondsOf('--ttl', ttl, 0))
  const source = await readLab(word, flags)
  const { client, lastLine } = await serviceOrOwn(flags)
  if (!(flags['no-pull'] || flags['dry-run']))
    await (await import('./images-pull.ts')).pullMissing(source, { client, signal }, flags)
  return converge(source, { client, signal }, { flags, starts: true, lastLine, ttl_s })
}

/** The service that a command names, or that of this user, which is started when it does not run; a line then says that it keeps running. */
export async function serviceOrOwn(flags: {
  readonly server: string | undefined
}): Promise<{ client: Patchbay; lastLine: string }> {
  const named = await serviceOf(flags)
  const service = named ?? (await ownService()).service
  const client = clientAt({ url: service.url, token: service.token ?? (process.env.PATCHBAY_TOKEN || undefined) })
  const isOwn = named === undefined || named.isOwn === true
  const lastLine = isOwn ? `The service on ${client.server} keeps running; "patchbay service stop" stops it` : ''
  return { client, lastLine }
}

interface Convergence {
  readonly flags: CommandInput<typeof upFlags>['flags'] | CommandInput<typeof applying>['flags']
  readonly starts: boolean
  readonly lastLine: string
  /** Time after which the service stops the lab, s. */
  readonly ttl_s?: number | undefined
}

async function converge(
  source: LabSource,
  context: CommandContext,
  { flags, starts, lastLine, ttl_s }: Convergence,
): Promise<CommandOutcome> {
  const began = Date.now()
  const isDry = flags['dry-run']
  const query: Query = {
    ...optionsOf(flags),
    ...(starts && { start: 'true' }),
    ...(isDry && { dry_run: 'true' }),
  }
  if (source.imported !== undefined && !flags.partial && !isDry) await requireAllRun(source, context, query)
  // Ctrl-C does not abort this request: the id of the job is needed to cancel it.
  const { plan } = await trusting(source.name, flags, (trust) =>
    put(
      source,
      isDry ? context : { client: context.client },
      { ...query, ...trust },
      ttl_s === undefined ? {} : { ttl_s },
    ),
  ).catch(async (error: unknown) => {
    throw flags.partial ? error : await withWaysOut(error, source, context, query)
  })
  if (isDry) {
    const differs = plan.steps.length + plan.withheld.length > 0
    return {
      exit: differs && flags['exit-code'] ? exits.differs : plan.withheld.length > 0 ? exits.withheld : exits.done,
      json: planJson(plan, new Set()),
      text: async () => [await planText(plan, source.name), ...(lastLine === '' ? [] : [lastLine])].join('\n\n'),
    }
  }
  const jobs = await jobsOf(plan, context, flags).catch(async (error) => {
    if (!context.signal.aborted) throw error
    throw interruptionOf(source, plan, { starts, isMade: await wasMade(plan, context.client) })
  })
  const failed = jobs.findLast(({ status }) => status !== 'done')
  const cannotRun =
    plan.cannot_run === undefined ? [] : (await import('./cannot-run.ts')).nodesThatCannotRun(source, plan)
  const exit = exitOf(plan, failed)
  const params = { project_id: plan.project_id }
  const topology = await context.client
    .call('GET /v2/projects/{project_id}/topology', { params, signal: context.signal })
    .catch((error) => {
      // A new lab whose apply failed was deleted again.
      if (error instanceof PatchbayError && error.status === 404)
        return { nodes: [], links: [], segments: [], revision: 0 }
      throw error
    })
  const order = new Map(source.desired.nodes.map(({ name }, index) => [name.toLowerCase(), index]))
  const orderOf = ({ name }: LabNode) => order.get(name.toLowerCase()) ?? order.size
  const inOrder = topology.nodes.toSorted((one, other) => orderOf(one) - orderOf(other))
  const nodes = [...inOrder, ...topology.segments]
  return {
    exit,
    json: {
      ...planJson(plan, undoneOf(plan, failed)),
      ...(cannotRun.length > 0 && { cannot_run: cannotRun }),
      revision: topology.revision,
      nodes: nodes.map((it) => nodeRow(it, failed)),
      links: topology.links.map((it) => linkJson(it, nodes)),
      errors: failed === undefined ? [] : faultsOf(failed).map((message) => ({ message })),
    },
    async text() {
      const { shown, tableOf } = await import('./table.ts')
      const seconds = ((Date.now() - began) / 1000).toFixed(1)
      const again = plan.interrupted ? [interruptedText] : []
      const parts = [
        ...again,
        failed === undefined ? summary(plan, source, seconds) : faultsOf(failed).map(escapeUnsafeLines).join('\n'),
      ]
      if (plan.withheld.length > 0) parts.push(withheldText(plan.withheld).map(shown).join('\n'))
      if (plan.extra.length > 0) parts.push(extraText(plan.extra).map(shown).join('\n'))
      if (starts && topology.nodes.length > 0) {
        const placeholders = new Set(cannotRun.map(({ name }) => name))
        const rows = inOrder.map((node) => [
          node.name,
          node.node_type,
          placeholders.has(node.name) ? 'placeholder' : stateOf(node),
          placeholders.has(node.name)
            ? ''
            : node.console_type === 'telnet'
              ? `patchbay console ${shellWord(`${plan.lab}/${node.name}`)}`
              : `${node.console_type} ${node.console ?? ''}`,
        ])
        parts.push(tableOf(['NODE', 'KIND', 'STATE', 'CONSOLE'], rows))
        const warned = nodes.filter(({ status, status_reason }) => status !== 'stopped' && status_reason != null)
        if (warned.length > 0)
          parts.push(warned.map(({ name, status_reason }) => shown(`${name}: ${status_reason}`)).join('\n'))
      }
      if (cannotRun.length > 0) parts.push((await import('./cannot-run.ts')).cannotRunText(source, cannotRun))
      if (plan.stop_at !== undefined) parts.push(`${plan.lab} ${stopText(plan)} (--ttl)`)
      if (lastLine !== '') parts.push(lastLine)
      return parts.join('\n\n')
    },
  }
}

function exitOf({ cannot_run, withheld }: LabPlan, failed: LabJob | undefined): ExitCode {
  if (failed !== undefined) return exits.failed
  if (cannot_run !== undefined) return exits.partial
  return withheld.length > 0 ? exits.withheld : exits.done
}

/** The jobs of an apply at their end: that of the steps, and that of the starts. */
export async function jobsOf(
  plan: LabPlan,
  context: CommandContext,
  {
    json,
    title = plan.lab,
  }: {
    readonly json: boolean
    readonly title?: string
  },
): Promise<LabJob[]> {
  if (plan.job_id === undefined) return []
  const end = async (doing: string, id: string, more: Pick<Parameters<typeof jobEnd>[1], 'isOver'> = {}) =>
    jobEnd(id, { ...context, ...more, progress: await progressOf(`${doing} ${title}`, { json }) })
  // The job of the steps runs until that of the starts has ended.
  const isOver = ({ status, start_job_id }: LabJob) => status !== 'running' || start_job_id !== undefined
  const applied = await end('Applying', plan.job_id, { isOver })
  if (applied.start_job_id === undefined) return [applied]
  const started = await end('Starting', applied.start_job_id)
  return [await jobEnd(plan.job_id, { ...context, progress: noProgress }), started]
}

/** Longest wait for an apply that was cancelled to revert its steps, ms. */
const undoMs = 10_000
const undoPollMs = 50

/** Whether all steps but the starts of an apply that was cancelled are done: the cancel may have come too late. Undefined: the service does not say. */
async function wasMade({ job_id }: LabPlan, client: Patchbay): Promise<boolean | undefined> {
  if (job_id === undefined) return true
  for (const limit = Date.now() + undoMs; ; await sleep(undoPollMs)) {
    const call = client.call('GET /v2/jobs/{job_id}', { params: { job_id }, timeoutMs: undoMs })
    const job = await call.catch((error: unknown) => (error as PatchbayError).status === 404)
    // The job of a new lab is gone with the lab.
    if (job === true) return false
    if (job === false) return undefined
    if (job.start_job_id !== undefined) return true
    if (job.status !== 'running') return job.done === job.total
    if (Date.now() > limit) return undefined
  }
}

/** What an apply that Ctrl-C ended has come to. */
function interruptionOf(
  { name }: LabSource,
  { lab }: LabPlan,
  { starts, isMade }: { readonly starts: boolean; readonly isMade: boolean | undefined },
): CommandError {
  const command = starts ? 'up' : 'apply'
  if (isMade === undefined)
    return interrupted(
      'the result is unknown, because the service did not respond',
      `"patchbay diff ${name}" shows what is left to do`,
    )
  if (!isMade) return interrupted('the completed steps were reverted', `"patchbay ${command} ${name}" starts again`)
  return starts
    ? interrupted(
        'the lab was created, and started nodes keep running',
        `"patchbay up ${name}" continues it, "patchbay down ${lab}" stops them`,
      )
    : interrupted('all steps were already done', `"patchbay diff ${name}" shows that nothing is left to do`)
}

const interrupted = (what: string, hint: string): CommandError =>
  new CommandError(exits.interrupted, [{ message: `interrupted: ${what}`, hint }])

/** A name for a shell: in quotes when it has characters that mean something there. */
const shellWord = (text: string): string => (/^[\p{L}\p{N}\p{M}_.@+/-]+$/u.test(text) ? text : quoted(text))

/** What has failed in a job. */
export function faultsOf(job: LabJob): string[] {
  const nodes = job.nodes.filter(({ state }) => state === 'failed' || state === 'skipped')
  const steps = (job.steps ?? []).filter(({ state }) => state === 'failed')
  const parts = [
    ...nodes.map(({ name, reason }) => `${name}: ${reason}`),
    ...steps.map(({ what, name, reason }) => `${what} ${name}: ${reason}`),
  ]
  const undone = job.action === 'apply' ? ['Nothing was changed: the completed steps were reverted'] : []
  return [...(parts.length > 0 ? parts : [job.reason ?? `The job was ${job.status}`]), ...undone]
}

/** The steps of a plan that are not done: all of an apply that has failed, or the starts that have. */
function undoneOf({ steps }: LabPlan, failed: LabJob | undefined): ReadonlySet<Step> {
  if (failed === undefined) return new Set()
  if (failed.action === 'apply') return new Set(steps)
  const names = new Set(failed.nodes.filter(({ state }) => state !== 'done').map(({ name }) => name))
  return new Set(steps.filter((it) => it.do === 'start' && names.has(it.name)))
}

const nodeRow = (node: LabNode, failed: LabJob | undefined): UpNode => ({
  name: node.name,
  node_id: node.node_id,
  kind: node.node_type,
  status: node.status,
  state: stateOf(node),
  ready: node.status === 'started' && failed?.nodes.some(({ node_id }) => node_id === node.node_id) !== true,
  console: node.console,
})

/** Sends a lab file, and gets the plan. CommandError 3 for a file that the service refuses, and for a lab that was made otherwise. */
export async function put(
  source: LabSource,
  { client, signal }: Pick<CommandContext, 'client'> & Partial<CommandContext>,
  query: Query,
  ttl: { readonly ttl_s?: number; readonly ttl_deletes?: boolean } = {},
): Promise<{ plan: LabPlan }> {
  const { document, files, vars, desired } = source
  const plan = await client
    .call('PUT /v2/projects/{project_id}/topology', {
      params: { project_id: desired.lab },
      query,
      body: { document, files, vars, ...ttl },
      ...(signal !== undefined && { signal }),
    })
    .catch((error) => {
      if (!(error instanceof PatchbayError)) throw error
      const { errors, more_errors } = error.answer as WrongLabFile
      if (error.status === 400 && Array.isArray(errors)) {
        const wrong = new CommandError(exits.wrong, diagnosticsIn(source.name, errors, more_errors))
        throw source.imported === undefined ? wrong : withoutPlaces(wrong)
      }
      if (error.code === 'made-otherwise' || error.status === 400) {
        const hint =
          error.status === 400 ? {} : { hint: '--name creates another lab from the file, --take-over uses this one' }
        throw new CommandError(exits.wrong, [{ message: error.message, ...hint }])
      }
      throw error
    })
  return { plan }
}

/** The options of an apply that are flags of the command. */
function optionsOf(flags: Partial<Readonly<Record<string, unknown>>>): Query {
  const options = ['restart', 'recreate', 'delete-extra', 'config-from-file', 'take-over', 'partial']
  return Object.fromEntries(
    options.flatMap((flag) => (flags[flag] === true ? [[flag.replaceAll('-', '_'), 'true']] : [])),
  )
}

const interruptedText = 'An earlier apply did not finish because the service ended; this one completes it'

const planJson = (plan: LabPlan, undone: ReadonlySet<Step>) => ({
  lab: plan.lab,
  project_id: plan.project_id,
  revision: plan.revision,
  ...(plan.interrupted && { interrupted: true }),
  steps: plan.steps.map((step) => ({ ...step, done: plan.job_id !== undefined && !undone.has(step) })),
  withheld: plan.withheld,
  extra: plan.extra,
  ...(plan.cannot_run !== undefined && { cannot_run: plan.cannot_run }),
  ...(plan.stop_at !== undefined && { stop_at: plan.stop_at }),
})

const signs = { create: '+', update: '~', delete: '-', start: '>' } as const
export const stepText = ({ do: does, what, name, how, because }: Step): string => {
  const means = { live: '', restart: ' (restart)', recreate: ' (recreate: its disk is lost)' }[how]
  return `  ${signs[does]} ${what} ${name}${means}${because === undefined ? '' : `: ${because}`}`
}

async function planText(plan: LabPlan, file: string): Promise<string> {
  const { steps, withheld, extra } = plan
  if (steps.length + withheld.length + extra.length === 0) return `${plan.lab} matches ${file}`
  const { shown } = await import('./table.ts')
  return [
    ...(plan.interrupted ? [interruptedText] : []),
    ...(steps.length > 0 ? [`${plan.lab}: ${counted(steps.length, 'step')} to match ${file}`] : []),
    ...steps.map(stepText),
    ...withheldText(withheld),
    ...extraText(extra),
  ]
    .map(shown)
    .join('\n')
}

const withheldText = (withheld: LabPlan['withheld']): string[] =>
  withheld.length === 0
    ? []
    : ['Steps that need a flag:', ...withheld.map((step) => `${stepText(step)} (--${step.flag.replaceAll('_', '-')})`)]

const extraText = (extra: LabPlan['extra']): string[] =>
  extra.length === 0
    ? []
    : [
        'In the lab, but not in the file:',
        ...extra.map(({ what, name, because }) => `  ${what} ${name}${because === undefined ? '' : `: ${because}`}`),
      ]

const listed = (parts: readonly string[]): string =>
  parts.length < 2 ? parts.join() : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`

/** `wan-edge: created 12 nodes and 12 links, started 12 nodes in 0.4 s` */
function summary({ steps, withheld, lab }: LabPlan, { name }: LabSource, seconds: string): string {
  if (steps.length === 0)
    return withheld.length > 0 ? `${lab}: nothing else to do` : `${lab} matches ${name}; nothing to do`
  const verbs = { create: 'created', update: 'changed', delete: 'deleted', start: 'started' } as const
  const parts = (Object.keys(verbs) as (keyof typeof verbs)[]).flatMap((does) => {
    const kinds = (['project', 'node', 'segment', 'link'] as const).flatMap((what) => {
      const number = steps.filter((step) => step.do === does && step.what === what).length
      return number === 0 || what === 'project' ? [] : [counted(number, what)]
    })
    return kinds.length === 0 ? [] : [`${verbs[does]} ${listed(kinds)}`]
  })
  return `${lab}: ${parts.join(', ') || 'changed'} in ${seconds} s`
}

/** `patchbay down [FILE or LAB]`: stops a lab; with `--delete` deletes it. */
export async function down({ args: [word], flags, signal }: CommandInput<typeof downFlags>): Promise<CommandOutcome> {
  const client = await clientOf(flags)
  const lab =
    flags.name ?? (word === undefined || isLabFile(word) ? await labNameIn(word ?? onlyLabFile(), flags) : word)
  const found = await labIfAny(lab, { client, signal })
  if (found === undefined)
    return { json: { lab, stopped: 0, deleted: false }, text: () => `There is no lab ${lab}; nothing to do` }
  if (flags.delete) {
    await requireYes(`Delete the lab ${found.name} with its disks and configurations?`, flags, 'deleted')
    await client.call('DELETE /v2/projects/{project_id}', { params: { project_id: found.project_id }, signal })
    return {
      json: { lab: found.name, project_id: found.project_id, deleted: true },
      text: () => `${found.name}: deleted`,
    }
  }
  const nodes =
    found.status === 'closed'
      ? []
      : await client.call('GET /v2/projects/{project_id}/nodes', { params: { project_id: found.project_id }, signal })
  const running = nodes.filter(({ status }) => status !== 'stopped').length
  const json = { lab: found.name, project_id: found.project_id, deleted: false }
  if (running === 0) return { json: { ...json, stopped: 0 }, text: () => `${found.name} is not running; nothing to do` }
  const body = { action: 'stop' as const }
  const job = await client.call('POST /v2/projects/{project_id}/jobs', {
    params: { project_id: found.project_id },
    body,
    signal,
  })
  const end = await jobEnd(job.job_id, { client, signal, progress: await progressOf(`Stopping ${found.name}`, flags) })
  const diagnostics = end.status === 'done' ? [] : faultsOf(end)
  return {
    exit: diagnostics.length === 0 ? exits.done : exits.failed,
    json: { ...json, stopped: end.done, errors: diagnostics.map((message) => ({ message })) },
    text: () =>
      diagnostics.length === 0
        ? `${found.name}: stopped; disks and configurations are kept ("patchbay down ${found.name} --delete" deletes them)`
        : [
            ...diagnostics.map(escapeUnsafeLines),
            `${found.name} could not be stopped; "patchbay down ${found.name}" retries`,
          ].join('\n'),
  }
}

/** The name of the lab of a file. It is read also from a wrong file, so that its lab can be taken down. */
export async function labNameIn(
  path: string,
  flags: Partial<CommandInput<typeof labFileFlags>['flags']>,
): Promise<string> {
  const given = { name: undefined, var: [], 'allow-outside': false, ...flags }
  try {
    return (await readLab(path, given)).desired.lab
  } catch (error) {
    if (!(error instanceof CommandError) || error.exit !== exits.wrong || path === '-') throw error
    // The key of the file itself: keys of its parts are indented.
    const key = /^(?:\{\s*)?["']?lab["']?[ \t]*:[ \t]*["']?([a-z0-9][a-z0-9-]{0,62})["']?[ \t\r]*(?:[#,}].*)?$/m
    const [, name] = key.exec(await readText(path)) ?? []
    if (name === undefined) throw error
    return name
  }
}
