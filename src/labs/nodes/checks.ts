import { pause } from '../../lib/async/pause.ts'
import { ApiError } from '../../lib/errors/api-error.ts'
import { nameKey } from '../../model/lab/names.ts'
import type { LabCheck } from '../../model/lab/task.ts'
import type { LabCheckResult } from '../../model/lab/topology.ts'
import type { ComputeAgents } from '../computes/agents.ts'
import type { JobState, StartedJob } from '../jobs/jobs.ts'
import type { Lab } from '../lab/lab.ts'
import { nodeRefOf } from '../lab/node-on-compute.ts'
import { freshLinks } from '../links/link-states.ts'
import type { Labs } from '../service.ts'

/** Time after which a line is typed again, s, and between two reads of a link, ms. */
const againS = 5
/** A line is not typed for less than this, s. */
const minS = 0.05
const lookMs = 500
/** The longest text that a failed check shows, and the longest console output in it, characters. */
const maxSaw = 1000
const maxOutput = 500

/** A check that has failed. */
class NotTrue extends Error {}

/** Runs the checks of a lab file, one after the other, as a job. All run, also after one has failed. */
export function runChecks(
  labs: Pick<Labs, 'jobs'>,
  lab: Lab,
  { checks, by }: { readonly checks: readonly LabCheck[]; readonly by: string },
  agentFor: ComputeAgents,
): StartedJob {
  const results = checks.map(({ name }): LabCheckResult => ({ name, state: 'waiting', seconds: 0, saw: null }))
  return labs.jobs.run(lab, 'check', {
    by,
    state: () => stateOf(results),
    async work({ signal, changed }) {
      for (const [index, check] of checks.entries()) {
        const begun = Date.now()
        const show = (result: Partial<LabCheckResult>) => {
          const seconds = Math.round((Date.now() - begun) / 100) / 10
          results[index] = { ...(results[index] as LabCheckResult), ...result, seconds }
          changed()
        }
        show({ state: 'running' })
        try {
          const outcome = await outcomeOf(lab, check, signal, agentFor)
          show(outcome.state === 'ok' ? { state: 'ok' } : { state: 'failed', saw: outcome.saw })
        } catch (error) {
          if (!signal.aborted) throw error
          for (const result of results)
            if (result.state === 'waiting' || result.state === 'running') result.state = 'cancelled'
          throw signal.reason
        }
      }
    },
  })
}

/** How a check ended. `cause`: it is not true, a node does not run, a node or link is gone, or a compute does not answer. */
export type CheckOutcome =
  | { readonly state: 'ok' }
  | { readonly state: 'failed'; readonly saw: string; readonly cause: 'untrue' | 'stopped' | 'gone' | 'away' }

/** Runs a check. Rejects when the signal aborts, and for defects. */
export async function outcomeOf(
  lab: Lab,
  check: LabCheck,
  signal: AbortSignal,
  agentFor: ComputeAgents,
): Promise<CheckOutcome> {
  try {
    await run(lab, check, signal, agentFor)
    return { state: 'ok' }
  } catch (error) {
    if (signal.aborted || !(error instanceof NotTrue || error instanceof ApiError)) throw error
    return { state: 'failed', saw: error.message.slice(0, maxSaw), cause: causeOf(error) }
  }
}

function causeOf(error: Error): Extract<CheckOutcome, { state: 'failed' }>['cause'] {
  if (!(error instanceof ApiError)) return 'untrue'
  if (error.code === 'node-stopped') return 'stopped'
  if (error.code === 'no-such-node') return 'gone'
  return error.status >= 502 || error.code === 'compute-unreachable' ? 'away' : 'untrue'
}

function stateOf(results: readonly LabCheckResult[]): JobState {
  const of = (state: LabCheckResult['state']) => results.filter((result) => result.state === state)
  const [failed] = of('failed')
  return {
    reason: failed === undefined ? null : `${failed.name}: ${failed.saw ?? 'not true'}`,
    isCancelled: of('cancelled').length > 0,
    total: results.length,
    done: of('ok').length,
    failed: of('failed').length,
    skipped: of('cancelled').length,
    nodes: [],
    checks: results.map((it) => ({ ...it })),
  }
}

/** Resolves when a check has passed; rejects with what was there instead. */
async function run(lab: Lab, check: LabCheck, signal: AbortSignal, agentFor: ComputeAgents): Promise<void> {
  if (check.check === 'not') return runNot(lab, check, signal, agentFor)
  const until = Date.now() + check.within_s * 1000
  if (check.check === 'link') return linkIs(lab, check, { until, signal }, agentFor)
  const typed =
    check.check === 'ping'
      ? {
          node: check.from,
          line: pingOf(check.address),
          expect: 'bytes from|icmp_seq=\\d+ ttl=',
          missed: `${check.address} did not answer within ${check.within_s} s`,
        }
      : {
          node: check.on,
          line: check.type,
          expect: check.expect,
          missed: `Nothing after "${check.type}" matched ${check.expect} within ${check.within_s} s`,
        }
  return typeUntil(lab, typed, { until, signal }, agentFor)
}

/** The command of a pc that sends one echo. */
const pingOf = (address: string): string => `ping ${address} -c 1`

/** Resolves when the inner check has not passed during the whole of its time. */
async function runNot(
  lab: Lab,
  { of, within_s }: Extract<LabCheck, { check: 'not' }>,
  signal: AbortSignal,
  agentFor: ComputeAgents,
): Promise<void> {
  try {
    await run(lab, { ...of, within_s }, signal, agentFor)
  } catch (error) {
    if (error instanceof NotTrue) return
    throw error
  }
  throw new NotTrue(`The inner check passed: ${of.name}`)
}

interface Deadline {
  /** Ms since 1970. */
  readonly until: number
  readonly signal: AbortSignal
}

/** Types a line on a console, and again every `againS`, until the output after its echo matches. */
async function typeUntil(
  lab: Lab,
  { node, line, expect, missed }: { node: string; line: string; expect: string; missed: string },
  { until, signal }: Deadline,
  agentFor: ComputeAgents,
): Promise<void> {
  const record = lab.node(node)
  const { nodes } = agentFor(record.compute_id)
  let output = ''
  for (;;) {
    const left = (until - Date.now()) / 1000
    if (left <= minS) throw new NotTrue(output === '' ? missed : `${missed}; the last output was:\n${output}`)
    try {
      // Echoes of the line are not an answer, nor are echoes of earlier tries, which a busy node shows late.
      const input = { send: `${line}\r`, expect, echoes: true, within_s: Math.min(againS, left) }
      await nodes.expect(nodeRefOf(lab, record), input, signal)
      return
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'not-in-time') throw error
      // The first line of the message is about the expression of the wait, the others are the output.
      output = error.message.split('\n').slice(1).join('\n').slice(-maxOutput)
    }
  }
}

async function linkIs(
  lab: Lab,
  { link, verdict }: Extract<LabCheck, { check: 'link' }>,
  { until, signal }: Deadline,
  agentFor: ComputeAgents,
): Promise<void> {
  const found = [...lab.document.links.values()].find(({ name }) => name != null && nameKey(name) === nameKey(link))
  if (found === undefined) throw new NotTrue(`No such link: ${link}`)
  for (;;) {
    await freshLinks(lab, agentFor)
    const state = lab.linkStates.get(found.link_id)
    if (state?.verdict === verdict) return
    if (Date.now() >= until)
      throw new NotTrue(
        `Its verdict is ${state?.verdict ?? 'unknown'}${state?.verdict_reason ? `: ${state.verdict_reason}` : ''}`,
      )
    await pause(lookMs, signal)
    signal.throwIfAborted()
  }
}
