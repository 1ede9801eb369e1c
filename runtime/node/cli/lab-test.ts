import { randomUUID } from 'node:crypto'
import type { LabJob } from '../../../src/client/patchbay.ts'
import { PatchbayError } from '../../../src/client/patchbay-error.ts'
import { type Score, type ScoredTask, scoredTasks, scoreOf } from '../../../src/labfile/score.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { mapLimit } from '../../../src/lib/async/map-limit.ts'
import { counted } from '../../../src/lib/text/counted.ts'
import { nearest } from '../../../src/lib/text/nearest-word.ts'
import { ArtifactDirectory, type Artifacts } from './artifacts.ts'
import { ciSystem } from './ci-system.ts'
import { type CommandContext, clientOf } from './client.ts'
import type { CommandInput } from './command.ts'
import type { testFlags } from './command-flags.ts'
import { CommandError, type ExitCode, exits, wrongArguments } from './exits.ts'
import type { CommandDiagnostic, LabResult, ListedCheck } from './json-outputs.ts'
import { junitFile } from './junit.ts'
import { type LabSource, onlyLabFile, readLab } from './lab-file.ts'
import type { CommandOutcome } from './outcome.ts'
import { noProgress, progressOf } from './progress.ts'
import { faultOf } from './run.ts'
import { jobEnd } from './run-nodes.ts'
import { shown } from './table.ts'
import { labOf } from './targets.ts'
import { linesOf, type TestLines } from './test-lines.ts'
import { faultsOf, jobsOf, put, serviceOrOwn } from './topology.ts'
import { trusting } from './trust.ts'

/** The result of one part of a test: of the start of the lab, or of a check of its file. */
export interface TestPart {
  readonly kind: 'start' | 'check'
  readonly name: string
  readonly state: 'ok' | 'failed' | 'not run'
  readonly seconds: number
  /** What a failed part saw instead. */
  readonly saw: string | null
  /** Of a check: its line in the lab file. */
  readonly line?: number
}

/** The test of one lab file. */
export interface LabTestResult {
  readonly file: string
  /** The name in the file. */
  readonly lab: string
  /** The name of the lab that was made or checked. */
  readonly name: string
  readonly exit: ExitCode
  readonly began: Date
  readonly seconds: number
  readonly parts: readonly TestPart[]
  /** With `--tasks`, of a file that has some: those with checks, and their sum. */
  readonly tasks?: readonly ScoredTask[]
  readonly score?: Score
  /** Errors that ended the test early. */
  readonly errors: readonly CommandDiagnostic[]
  /** The directory of what the failed test has left behind, with `--artifacts`. */
  readonly artifacts?: string
}

type Flags = CommandInput<typeof testFlags>['flags']

const maxJobs = 16
/** Time after which the service deletes the lab of a test that was killed, s; it is renewed while the test runs. */
const leftS = 600
const renewMs = 120_000
/** Longest wait for the deletion of a lab, ms. */
const takeAwayMs = 120_000
const maxNameLength = 63

/** `patchbay test FILE...`: makes labs, runs the checks of their files, and deletes the labs. */
export async function test({ args, flags, signal }: CommandInput<typeof testFlags>): Promise<CommandOutcome> {
  const words = args.length > 0 ? args : [onlyLabFile()]
  const atOnce = jobsIn(flags.jobs)
  if (flags.name !== undefined && words.length > 1) throw wrongArguments('--name can be used with one file only')
  for (const flag of ['keep', 'artifacts'] as const)
    if (flags.running && flags[flag]) throw wrongArguments(`--${flag} and --running exclude each other`)
  if (flags.tasks && flags.only.length > 0) throw wrongArguments('--only and --tasks exclude each other')
  const sources = onlyChecks(await readAll(words, flags), flags.only)
  if (flags.list) return listOf(sources)
  if (flags.tasks && !sources.some(({ desired }) => countsTasks(desired)))
    throw new CommandError(exits.wrong, [
      {
        message: 'there are no tasks with checks to score',
        hint: 'write tasks: in the lab file, or leave out --tasks',
      },
    ])
  const junit = flags.junit === undefined ? undefined : await junitFile(flags.junit)
  const kept = flags.artifacts === undefined ? undefined : await ArtifactDirectory.open(flags.artifacts)
  const began = Date.now()
  const { client, lastLine } = flags.running
    ? { client: await clientOf(flags), lastLine: '' }
    : await serviceOrOwn(flags)
  const ci = ciSystem(flags)
  const context = { client, signal }
  if (!flags.running && !flags['no-pull']) {
    const { pullMissing } = await import('./images-pull.ts')
    for (const source of sources) await pullMissing(source, context, { ...flags, partial: false })
  }
  ci.begin()
  const one = async (source: LabSource) => {
    const lines = linesOf(source, { json: flags.json, atOnce, section: ci.section(source.desired.lab) })
    return testOne(source, { context, flags, lines, artifacts: kept?.of(source.desired.lab, context) })
  }
  const results: LabTestResult[] = []
  try {
    await mapLimit(
      sources,
      async (source, index) => {
        results[index] = await one(source)
      },
      atOnce,
    )
  } finally {
    await ci.end(results.filter((it) => it !== undefined))
  }
  const seconds = (Date.now() - began) / 1000
  await junit?.write(results, seconds)
  return {
    exit: worstOf(results),
    json: { seconds: rounded(seconds), labs: results.map(resultJson) },
    text: () => [...summaryOf(results, seconds), ...(lastLine === '' ? [] : ['', lastLine])].join('\n'),
  }
}

/** Whether a lab file has tasks that count. */
const countsTasks = ({ tasks = [] }: LabSource['desired']): boolean => tasks.some(({ checks }) => checks.length > 0)

function jobsIn(text: string | undefined): number {
  if (text === undefined) return 1
  const number = Number(text)
  if (/^\d+$/.test(text) && number >= 1 && number <= maxJobs) return number
  throw wrongArguments(`--jobs: expected a number from 1 to ${maxJobs}, got ${JSON.stringify(text)}`)
}

/** Reads all files before the first lab is made. CommandError 3 with all that is wrong in any. */
async function readAll(words: readonly string[], flags: Flags): Promise<LabSource[]> {
  const sources: LabSource[] = []
  const diagnostics: CommandDiagnostic[] = []
  for (const word of words) {
    try {
      sources.push(await readLab(word, flags))
    } catch (error) {
      if (!(error instanceof CommandError) || error.exit !== exits.wrong) throw error
      diagnostics.push(...error.diagnostics)
    }
  }
  if (diagnostics.length > 0) throw new CommandError(exits.wrong, diagnostics)
  return sources
}

/** The files with only the checks that `--only` names; those without any are left out. CommandError 64 for a name that none has. */
function onlyChecks(sources: LabSource[], names: readonly string[]): LabSource[] {
  if (names.length === 0) return sources
  const all = sources.flatMap(({ desired }) => desired.checks.map(({ name }) => name))
  const unknown = names.find((name) => !all.includes(name))
  if (unknown !== undefined)
    throw wrongArguments(
      `--only: there is no check ${JSON.stringify(unknown)}`,
      all.length === 0
        ? 'the files have no checks'
        : `did you mean ${nearest(unknown, all) ?? all[0]}? --list shows all`,
    )
  return sources.flatMap((source) => {
    const checks = source.desired.checks.filter(({ name }) => names.includes(name))
    return checks.length === 0 ? [] : [{ ...source, desired: { ...source.desired, checks } }]
  })
}

/** The checks of the files, with their lines; nothing is run. */
function listOf(sources: readonly LabSource[]): CommandOutcome {
  const checks: readonly ListedCheck[] = sources.flatMap((source) =>
    source.desired.checks.map((it) => ({
      ...{ file: source.name, lab: source.desired.lab, name: it.name, ...lineOf(source, it) },
      within_s: it.within_s,
    })),
  )
  return {
    json: { checks },
    text: () =>
      checks
        .map(({ file, line, name }) => shown(`${line === undefined ? file : `${file}:${line}`}  ${name}`))
        .join('\n'),
  }
}

/** The line of a check, unless the file was made of one of another program. */
const lineOf = ({ imported }: LabSource, { at }: { readonly at: { readonly line: number } }): { line?: number } =>
  imported === undefined ? { line: at.line } : {}

/** Tests one file. Rejects only for a defect, and deletes the lab then, too. */
async function testOne(source: LabSource, { context, flags, lines, artifacts }: LabTest): Promise<LabTestResult> {
  const { lab, checks, tasks = [] } = source.desired
  const name = flags.running ? lab : nameFor(lab)
  const began = new Date()
  const parts: TestPart[] = []
  const show = (part: TestPart) => {
    parts.push(part)
    lines.part(part)
  }
  const errors: CommandDiagnostic[] = []
  const ended: { exit: ExitCode } = { exit: exits.done }
  const note = (error: unknown) => {
    const fault = faultOf(error)
    if (fault === undefined) throw error
    ended.exit = fault.exit
    errors.push(...fault.diagnostics)
  }
  const hasFailed = () => errors.length > 0 || parts.some(({ state }) => state === 'failed')
  const isKept = () => flags.running || (flags.keep && !context.signal.aborted)
  const isLent = !flags.running && !flags.keep
  const renewal = isLent ? setInterval(() => void renew(name, context), renewMs) : undefined
  try {
    const run = { context, flags, show, artifacts }
    const isReady = flags.running ? await isThere(lab, context) : await starts(source, name, run)
    if (isReady && checks.length > 0) await check(source, name, run)
  } catch (error) {
    note(error)
  } finally {
    clearInterval(renewal)
    await artifacts?.end(hasFailed())
    if (!isKept()) await takeAway(name, context).catch(note)
  }
  const reached = parts.filter(({ kind }) => kind === 'check').length
  for (const it of checks.slice(reached))
    show({ kind: 'check', name: it.name, state: 'not run', seconds: 0, saw: null, ...lineOf(source, it) })
  const left = artifacts?.directory === undefined ? {} : { artifacts: artifacts.directory }
  if (checks.length === 0) errors.push({ message: 'the file has no checks', hint: 'add "checks" to it' })
  const exit = ended.exit === exits.done ? exitOf(parts, checks.length) : ended.exit
  const holding = parts.filter(({ kind, state }) => kind === 'check' && state === 'ok').map((part) => part.name)
  const scored = scoredTasks(tasks, new Set(holding))
  const result = { ...(flags.tasks && scored.length > 0 && { tasks: scored, score: scoreOf(scored) }) }
  if (flags.tasks && scored.length > 0) lines.tasks(scored, scoreOf(scored))
  const running = !flags.running && isKept() && parts.length > 0 ? name : undefined
  lines.end(exit === exits.interrupted ? [] : errors, { running, ...left })
  const seconds = (Date.now() - began.getTime()) / 1000
  return { file: source.name, lab, name, exit, began, seconds, parts, ...result, errors, ...left }
}

/** A name that no other lab has: the lab may run already, and several tests of it. */
function nameFor(lab: string): string {
  const mark = `-test-${randomUUID().slice(0, 6)}`
  return lab.slice(0, maxNameLength - mark.length) + mark
}

interface LabTest {
  readonly context: CommandContext
  readonly flags: Flags
  readonly lines: TestLines
  readonly artifacts: Artifacts | undefined
}

type Run = Omit<LabTest, 'lines'> & { readonly show: (part: TestPart) => void }

async function isThere(lab: string, context: CommandContext): Promise<boolean> {
  const { status } = await labOf(lab, context)
  if (status === 'closed')
    throw new CommandError(exits.failed, [
      { message: `the lab ${lab} is closed`, hint: `"patchbay start ${lab}" opens it` },
    ])
  return true
}

/** Makes and starts a lab. True when it is ready. */
async function starts(source: LabSource, name: string, { context, flags, show, artifacts }: Run): Promise<boolean> {
  const began = Date.now()
  const { desired } = source
  // Ctrl-C does not abort this request: otherwise it would be unknown whether there is a lab to delete.
  const unbroken = { ...context, signal: new AbortController().signal }
  const lent = flags.keep ? {} : { ttl_s: leftS, ttl_deletes: true }
  let isTrusted = flags.trust
  const applied = async (start: { readonly start?: 'true' }) => {
    const { plan } = await trusting(source.name, { ...flags, trust: isTrusted }, (trust) => {
      isTrusted ||= trust.trust === 'true'
      return put({ ...source, desired: { ...desired, lab: name } }, unbroken, { ...start, ...trust }, lent)
    })
    return { plan, jobs: await jobsOf(plan, context, { json: flags.json, title: desired.lab }) }
  }
  // The capture begins before the first frame.
  const made = artifacts && (await applied({}))
  const isMade = made?.jobs.every(({ status }) => status === 'done') === true
  if (isMade) await artifacts?.begin(made.plan)
  const { jobs } = made !== undefined && !isMade ? made : await applied({ start: 'true' })
  const failed = jobs.findLast(({ status }) => status !== 'done')
  const saw = failed === undefined ? null : faultsOf(failed).join('\n')
  show({
    kind: 'start',
    name: 'starts',
    state: failed === undefined ? 'ok' : 'failed',
    seconds: (Date.now() - began) / 1000,
    saw,
  })
  return failed === undefined
}

/** Runs the checks of a file on a lab, and shows each when it is over. */
async function check(source: LabSource, name: string, { context, flags, show }: Run): Promise<void> {
  const { name: file, document, files, vars, desired } = source
  const params = { project_id: name }
  // A service of an earlier version does not know `only`.
  const only = flags.only.length > 0 ? { only: [...new Set(desired.checks.map(({ name }) => name))] } : {}
  const body = { document, files, vars, ...only }
  const { job_id } = await trusting(file, flags, (query) =>
    context.client.call('POST /v2/projects/{project_id}/checks', { params, query, body, signal: context.signal }),
  )
  const progress = flags.json || process.stderr.isTTY ? await progressOf(`Checking ${desired.lab}`, flags) : noProgress
  let finished = 0
  const onState = ({ checks = [] }: LabJob) => {
    for (const { name, state, seconds, saw } of checks.slice(finished)) {
      if (state !== 'ok' && state !== 'failed') return
      progress.end()
      const of = desired.checks[finished]
      show({ kind: 'check', name, state, seconds, saw, ...(of !== undefined && lineOf(source, of)) })
      finished += 1
    }
  }
  const { status, reason } = await jobEnd(job_id, { ...context, progress, onState })
  if (finished < desired.checks.length)
    throw new CommandError(exits.failed, `the checks ended with the status ${status}: ${reason ?? 'no reason given'}`)
}

/** Keeps the lab of a test for longer. */
const renew = (name: string, { client, signal }: CommandContext): Promise<unknown> =>
  client
    .call('PUT /v2/projects/{project_id}', {
      params: { project_id: name },
      body: { ttl_s: leftS },
      signal,
      timeoutMs: renewMs,
    })
    .catch(ignore('the next renewal is in time, too; and the test reports what is wrong with the service'))

/** Deletes a lab with its disks; there may be none. CommandError 1. */
async function takeAway(name: string, { client, signal }: CommandContext): Promise<void> {
  if (signal.aborted) process.stderr.write(`Interrupted: the lab ${name} is being deleted\n`)
  const params = { project_id: name }
  await client.call('DELETE /v2/projects/{project_id}', { params, timeoutMs: takeAwayMs }).catch((error: unknown) => {
    if (!(error instanceof PatchbayError)) throw error
    if (error.status === 404) return
    const hint = `"patchbay down ${name} --delete" deletes it`
    const exit = error.status === 0 ? exits.noService : exits.failed
    throw new CommandError(exit, [{ message: `the lab ${name} could not be deleted: ${error.message}`, hint }])
  })
}

/** The exit code of a test that nothing has ended early. */
const exitOf = (parts: readonly TestPart[], checks: number): ExitCode =>
  parts.some(({ state }) => state !== 'ok') ? exits.failed : checks === 0 ? exits.unchecked : exits.done

const rank: readonly ExitCode[] = [exits.interrupted, exits.noService, exits.failed, exits.wrong, exits.unchecked]
const worstOf = (results: readonly LabTestResult[]): ExitCode =>
  rank.find((code) => results.some(({ exit }) => exit === code)) ?? exits.done

const rounded = (seconds: number): number => Math.round(seconds * 10) / 10

const resultJson = ({
  file,
  lab,
  name,
  exit,
  seconds,
  parts,
  tasks,
  score,
  errors,
  artifacts,
}: LabTestResult): LabResult => ({
  file,
  lab,
  name,
  ok: exit === exits.done,
  seconds: rounded(seconds),
  checks: parts.map(({ name, state, seconds, saw, line }) => ({
    name,
    ok: state === 'ok',
    state,
    seconds: rounded(seconds),
    ...(saw !== null && { saw }),
    ...(line !== undefined && { line }),
  })),
  ...(tasks !== undefined && {
    tasks: tasks.map(({ isDone, holding, ...task }) => ({ ...task, done: isDone, holding })),
    score,
  }),
  errors: [...errors],
  ...(artifacts !== undefined && { artifacts }),
})

/** `2 labs, 5 checks: all ok in 3.1 s` */
function summaryOf(results: readonly LabTestResult[], seconds: number): string[] {
  const parts = results.flatMap((result) => result.parts.filter(({ kind }) => kind === 'check'))
  const isBad = ({ exit }: LabTestResult) => exit !== exits.done && exit !== exits.unchecked
  const namesOf = (labs: readonly LabTestResult[]) => labs.map(({ lab }) => lab).join(', ')
  const bad = results.filter(isBad)
  const unchecked = results.filter(({ exit }) => exit === exits.unchecked)
  const verdict = bad.some(({ exit }) => exit === exits.interrupted)
    ? 'interrupted'
    : bad.length > 0
      ? `${namesOf(bad)} failed`
      : unchecked.length > 0
        ? `no checks in ${namesOf(unchecked)}`
        : 'all ok'
  const line = `${counted(results.length, 'lab')}, ${counted(parts.length, 'check')}: ${verdict} in ${seconds.toFixed(1)} s`
  return results.length > 1 ? ['', line] : [line]
}
