import { join } from 'node:path'
import { aborted } from '../../../../src/async/abort.ts'
import { withTimeout } from '../../../../src/async/timeout.ts'
import { conflict } from '../../../../src/errors/api-error.ts'
import type { GuestControl, GuestProcess, GuestState, KindListener, StopReason } from '../kind.ts'
import { errorsName, imageLink, lastOutput } from './files.ts'
import type { Hypervisor } from './hypervisor.ts'
import type { DynamipsKindNode, DynamipsProperties } from './properties.ts'
import { reach } from './ready.ts'
import { type DynamipsReply, HypervisorError } from './replies.ts'
import type { DynamipsTimeouts } from './timeouts.ts'

/** The name of the router inside dynamips; each dynamips runs one router. */
export const routerName = 'router'
/** A router has one processor. */
const cpu = 0
const noIdlePc = '0x0'

/** A router under measurement, with a separate connection. */
export type Lent = { readonly process: GuestProcess; readonly client: Hypervisor }

type Running = { readonly process: GuestProcess; client: Hypervisor | undefined; isMeasured: boolean }

/** Controls running routers by the control connections of their dynamips. */
export class DynamipsGuests implements GuestControl<DynamipsProperties> {
  readonly #timeouts: DynamipsTimeouts
  readonly #listener: KindListener
  readonly #onEnded: (node: DynamipsKindNode) => void
  readonly #running = new Map<string, Running>()

  constructor(timeouts: DynamipsTimeouts, listener: KindListener, onEnded: (node: DynamipsKindNode) => void) {
    this.#timeouts = timeouts
    this.#listener = listener
    this.#onEnded = onEnded
  }

  async begin(node: DynamipsKindNode, process: GuestProcess): Promise<void> {
    const { ended, expedited } = process
    try {
      await this.#connect(node, process, this.#timeouts.begin, AbortSignal.any([ended, expedited]))
      await this.#create(node)
    } catch (error) {
      if (expedited.aborted) throw conflict('The router is being stopped', { cause: error })
      // The log is complete after the exit.
      if (isClosed(error)) await withTimeout(aborted(ended), this.#timeouts.command, () => {})
      throw await explained(error, node)
    }
  }

  async adopt(node: DynamipsKindNode, process: GuestProcess): Promise<GuestState> {
    // The measurement that started it ended with the earlier service.
    if (node.record.properties.is_measured) return { status: 'stopped', reason: null }
    await this.#connect(node, process, this.#timeouts.adopt, process.ended).catch(refused)
    // The earlier service was killed during the start.
    if ((await this.#status(node)) === 'inactive') return { status: 'stopped', reason: null }
    // The earlier service may have been killed during a measurement, which changes the idle PC.
    await this.setIdlePc(node)
    return this.state(node)
  }

  async end(node: DynamipsKindNode, { ended }: GuestProcess, how: StopReason): Promise<void> {
    if (how === 'remove' || ended.aborted || node.record.properties.is_measured) return
    await this.#do(node, 'vm stop', [], this.#timeouts.stop)
  }

  ended(node: DynamipsKindNode): void {
    this.#running.get(node.key)?.client?.close()
    this.#running.delete(node.key)
    this.#onEnded(node)
  }

  async state(node: DynamipsKindNode): Promise<GuestState> {
    const statuses = { running: 'started', suspended: 'suspended', inactive: 'stopped' } as const
    return { status: statuses[await this.#status(node)], reason: null }
  }

  async suspend(node: DynamipsKindNode): Promise<void> {
    this.requireUnmeasured(node)
    await this.#do(node, 'vm suspend')
  }

  resume = (node: DynamipsKindNode): Promise<void> => this.#do(node, 'vm resume')

  async reset(node: DynamipsKindNode): Promise<void> {
    this.requireUnmeasured(node)
    await this.#do(node, 'vm stop')
    await this.#do(node, 'vm start')
  }

  async setCarrier(): Promise<void> {}

  async whileStill<T>(node: DynamipsKindNode, run: () => Promise<T>): Promise<T> {
    this.requireUnmeasured(node)
    const isRunning = (await this.#status(node)) === 'running'
    if (isRunning) await this.#do(node, 'vm suspend')
    try {
      return await run()
    } finally {
      if (isRunning) await this.#do(node, 'vm resume').catch((error: Error) => this.#notResumed(node, error))
    }
  }

  /** The work is done all the same. The new status lets the client resume the router. */
  #notResumed({ key, record }: DynamipsKindNode, { message }: Error): void {
    this.#listener.happened(key, { type: 'log.warning', message: `${record.name} could not be resumed: ${message}` })
    this.#listener.changed(key)
  }

  /** Sets the idle PC of a running router to that of its settings, or to none; 409. */
  async setIdlePc(node: DynamipsKindNode): Promise<void> {
    await this.#do(node, 'vm set_idle_pc_online', [cpu, node.record.properties.idlepc ?? noIdlePc])
  }

  /** 409 during a measurement, because other commands would change its result. */
  requireUnmeasured({ key }: DynamipsKindNode): void {
    if (this.#running.get(key)?.isMeasured === true)
      throw conflict('The router is being measured: wait for the end of the measurement, or stop the router')
  }

  /** Begins the measurement of a running router; 409. */
  async lend(node: DynamipsKindNode): Promise<Lent> {
    this.requireUnmeasured(node)
    const running = this.#runningOf(node)
    const { process } = running
    const signal = AbortSignal.any([process.ended, process.expedited])
    const client = await this.#connection(node, this.#timeouts.adopt, signal).catch(refused)
    running.isMeasured = true
    return { process, client }
  }

  /** Ends the measurement. Whether the router still runs. */
  takeBack({ key }: DynamipsKindNode, { process }: Lent): boolean {
    const running = this.#running.get(key)
    if (running?.process !== process) return false
    running.isMeasured = false
    return !process.ended.aborted
  }

  async #connect(node: DynamipsKindNode, process: GuestProcess, ms: number, signal: AbortSignal): Promise<void> {
    this.#running.get(node.key)?.client?.close()
    const running: Running = { process, client: undefined, isMeasured: false }
    this.#running.set(node.key, running)
    running.client = await this.#connection(node, ms, signal)
  }

  #connection(node: DynamipsKindNode, ms: number, signal: AbortSignal): Promise<Hypervisor> {
    return reach({ directory: node.directory, port: node.record.properties.control_port, ms, signal })
  }

  /** Creates and starts the router in a new dynamips. */
  async #create(node: DynamipsKindNode): Promise<void> {
    const { platform, ram, idlepc } = node.record.properties
    const run = (command: string, ...values: readonly (string | number)[]) => this.#run(node, command, values)
    await run('vm create', 1, platform)
    await run('vm set_ram', ram)
    // Anonymous memory, because a mapped file would fill the disk.
    await run('vm set_ram_mmap', 0)
    await run('vm set_ios', imageLink)
    // The console is on this card, and IOS does not boot without it.
    if (platform === 'c7200') await run('vm slot_add_binding', 0, 0, 'C7200-IO-FE')
    await run('vm set_idle_pc', idlepc ?? noIdlePc)
    await run('vm start')
  }

  async #status(node: DynamipsKindNode): Promise<'inactive' | 'running' | 'suspended'> {
    const { lines, text } = await this.#run(node, 'vm get_status').catch((error: unknown) =>
      isUnknown(error) ? { lines: [], text: '0' } : refused(error),
    )
    // 0 is inactive, 1 is shutting down.
    const status = ({ 2: 'running', 3: 'suspended' } as const)[Number(lines[0] ?? text)]
    return status ?? 'inactive'
  }

  /** Runs a command on the router; 409 when it fails. */
  async #do(
    node: DynamipsKindNode,
    command: string,
    values: readonly (string | number)[] = [],
    ms?: number,
  ): Promise<void> {
    await this.#run(node, command, values, ms).catch(refused)
  }

  async #run(
    node: DynamipsKindNode,
    command: string,
    values: readonly (string | number)[] = [],
    ms = this.#timeouts.command,
  ): Promise<DynamipsReply> {
    const running = this.#runningOf(node)
    const { ended } = running.process
    if (running.client?.isOpen !== true) running.client = await this.#connection(node, this.#timeouts.adopt, ended)
    return running.client.run(command, [routerName, ...values], { ms, signal: ended })
  }

  #runningOf({ key }: DynamipsKindNode): Running {
    const running = this.#running.get(key)
    if (running === undefined) throw conflict('The router does not run')
    return running
  }
}

/** Whether dynamips closed the connection, because it is about to end. */
export const isClosed = (error: unknown) => error instanceof HypervisorError && error.code === 'closed'

const unknownObject = 208
const isUnknown = (error: unknown) => error instanceof HypervisorError && error.reply === unknownObject

/** Rethrows a failed command as 409. */
export function refused(error: unknown): never {
  throw error instanceof HypervisorError ? conflict(error.message, { cause: error }) : error
}

/** The reason of a failed start, with the last errors of dynamips. */
async function explained(error: unknown, { directory }: DynamipsKindNode): Promise<unknown> {
  if (!(error instanceof HypervisorError)) return error
  const output = await lastOutput(join(directory, errorsName), directory)
  return conflict(output === '' ? error.message : `${error.message}: ${output}`, { cause: error })
}
