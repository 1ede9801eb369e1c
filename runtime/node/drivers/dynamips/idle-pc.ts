import { setTimeout as delay } from 'node:timers/promises'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import type { Hypervisor } from './hypervisor.ts'
import type { LoadWatch } from './load.ts'
import { type DynamipsReply, HypervisorError } from './replies.ts'
import type { DynamipsTimeouts } from './timeouts.ts'

/** Times in ms. Tests use their own clock. */
export type Clock = { now(): number; pause(ms: number, signal: AbortSignal): Promise<void> }

/** A running router. The measurement changes its idle PC; the caller sets it again. */
export interface MeasuredRouter {
  readonly client: Pick<Hypervisor, 'run'>
  /** The name given to `vm create`. */
  readonly name: string
  /** Whether the router was just started, and must boot first. */
  readonly isFresh: boolean
  readonly timeouts: DynamipsTimeouts
  /** Cancels the measurement. */
  readonly signal: AbortSignal
  readonly clock?: Clock
  /**
   * Begins to measure the load of dynamips; undefined where that is not possible. The fallback is `vm cpu_usage`, which counts
   * whole seconds, and on a busy host the time that dynamips got, not the time that it needs.
   */
  readonly watchLoad?: () => Promise<LoadWatch | undefined>
}

/** A value is accepted when the load is below this percentage of one processor. */
const idlePercent = 70
/** A router has one processor. */
const cpu = 0

/** Proposed idle PCs, such as `0x60008120 [47]`: the address, and how often it was found in 1000 samples. */
export async function idleProposals(router: MeasuredRouter): Promise<string[]> {
  const { isFresh, timeouts, clock = realClock, signal } = router
  // Dynamips takes no samples while an idle PC is set.
  await run(router, 'vm set_idle_pc_online', [cpu, '0x0'])
  if (isFresh) await clock.pause(timeouts.boot, signal)
  return [...(await run(router, 'vm get_idle_pc_prop', [cpu], timeouts.proposals)).lines]
}

/** The first proposal that reduces the load, such as `0x60008120`; 409 when none does. */
export async function autoIdlePc(router: MeasuredRouter): Promise<string> {
  // Longer addresses are outside the address space of IOS, and the API does not accept them.
  const proposals = (await idleProposals(router)).flatMap((it) => /^0x[0-9a-f]{8}(?=\s|$)/i.exec(it)?.[0] ?? [])
  const loads: string[] = []
  for (const value of proposals) {
    const percent = await loadWith(router, value)
    if (percent < idlePercent) return value
    loads.push(`${value} (${Math.round(percent)} %)`)
  }
  const result =
    loads.length === 0 ? 'dynamips proposed none' : `none of the proposed values helps: ${loads.join(', ')}`
  throw conflict(`No idle-PC value was found for this image: ${result}`)
}

/** The load with a value, percent of one processor. */
async function loadWith(router: MeasuredRouter, value: string): Promise<number> {
  const { timeouts, clock = realClock, signal, watchLoad } = router
  await run(router, 'vm set_idle_pc_online', [cpu, value])
  const watch = await watchLoad?.()
  if (watch !== undefined) {
    await clock.pause(timeouts.sample, signal)
    return watch()
  }
  const [seconds, since] = [await processorSeconds(router), clock.now()]
  await clock.pause(timeouts.sample, signal)
  const used = Math.abs((await processorSeconds(router)) - seconds)
  const elapsed = Math.max(1, clock.now() - since) / 1000
  return Math.min(100, (used * 100) / elapsed)
}

async function processorSeconds(router: MeasuredRouter): Promise<number> {
  const { lines } = await run(router, 'vm cpu_usage', [cpu])
  const seconds = Number(lines[0])
  if (lines[0] !== undefined && Number.isFinite(seconds)) return seconds
  throw new HypervisorError('protocol', 'vm cpu_usage: dynamips sent no number')
}

const run = (
  { client, name, timeouts, signal }: MeasuredRouter,
  command: string,
  values: readonly (string | number)[],
  ms = timeouts.command,
): Promise<DynamipsReply> => client.run(command, [name, ...values], { ms, signal })

const realClock: Clock = { now: () => performance.now(), pause: (ms, signal) => delay(ms, undefined, { signal }) }
