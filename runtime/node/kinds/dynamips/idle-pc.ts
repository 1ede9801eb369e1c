import { setTimeout as delay } from 'node:timers/promises'
import { conflict } from '../../../../src/errors/api-error.ts'
import type { DynamipsTimeouts } from './bounds.ts'
import { type DynamipsReply, type Hypervisor, HypervisorError } from './hypervisor.ts'
import type { LoadWatch } from './load.ts'

/** Milliseconds that pass, and a wait for some of them; a test has its own. */
export interface Clock {
  now(): number
  pause(ms: number, signal: AbortSignal): Promise<void>
}

/** A router that runs. What is set while it is measured stays: whoever asks sets its idle PC again. */
export interface MeasuredRouter {
  readonly client: Pick<Hypervisor, 'run'>
  /** As `vm create` was told it. */
  readonly name: string
  /** Whether it was just started: then it has to boot first. */
  readonly isFresh: boolean
  readonly timeouts: DynamipsTimeouts
  /** Ends the measurement. */
  readonly signal: AbortSignal
  readonly clock?: Clock
  /**
   * Begins to watch the load that dynamips makes; undefined where nothing can. By default dynamips is asked itself (`vm
   * cpu_usage`), which says whole seconds, and on a busy host what it was given and not what it would take.
   */
  readonly watchLoad?: () => Promise<LoadWatch | undefined>
}

/** A value that brings the load below so many percent of one processor is the answer. */
const idlePercent = 70
/** The one processor that a router has. */
const cpu = 0

/** Values that may be the idle PC of a router, as `0x60008120 [47]`: where it was found, and how often in 1000 looks. */
export async function idleProposals(router: MeasuredRouter): Promise<string[]> {
  const { isFresh, timeouts, clock = realClock, signal } = router
  // With one it is not measured.
  await run(router, 'vm set_idle_pc_online', [cpu, '0x0'])
  if (isFresh) await clock.pause(timeouts.boot, signal)
  return [...(await run(router, 'vm get_idle_pc_prop', [cpu], timeouts.proposals)).lines]
}

/** The first proposal that really brings the load of the host down, as `0x60008120`; 409 when none does. */
export async function autoIdlePc(router: MeasuredRouter): Promise<string> {
  // Longer ones are outside of what IOS runs in, and no client could set them.
  const proposals = (await idleProposals(router)).flatMap((it) => /^0x[0-9a-f]{8}(?=\s|$)/i.exec(it)?.[0] ?? [])
  const loads: string[] = []
  for (const value of proposals) {
    const percent = await loadWith(router, value)
    if (percent < idlePercent) return value
    loads.push(`${value} (${Math.round(percent)} %)`)
  }
  const found = loads.length === 0 ? 'dynamips proposed none' : `none of those proposed helps: ${loads.join(', ')}`
  throw conflict(`No idle-PC value was found for this image: ${found}`)
}

/** Percent of one processor that it takes with a value. */
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
  throw new HypervisorError('protocol', 'vm cpu_usage: dynamips did not say how much it used')
}

function run(
  { client, name, timeouts, signal }: MeasuredRouter,
  command: string,
  values: readonly (string | number)[],
  ms = timeouts.command,
): Promise<DynamipsReply> {
  return client.run(command, [name, ...values], { ms, signal })
}

const realClock: Clock = {
  now: () => performance.now(),
  pause: (ms, signal) => delay(ms, undefined, { signal }),
}
