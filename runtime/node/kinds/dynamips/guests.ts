import { join } from 'node:path'
import { ignore } from '../../../../src/async/ignore.ts'
import { ApiError, conflict } from '../../../../src/errors/api-error.ts'
import type { GuestControl, GuestProcess, GuestState, StopReason } from '../kind.ts'
import type { DynamipsTimeouts } from './bounds.ts'
import { errorsName, imageLink } from './files.ts'
import { type DynamipsReply, type Hypervisor, HypervisorError } from './hypervisor.ts'
import type { DynamipsKindNode, DynamipsProperties } from './properties.ts'
import { reach } from './ready.ts'
import { lastOutput } from './words.ts'

/** What dynamips calls the router, of which it has one. */
export const routerName = 'router'
/** The one processor that a router has. */
const cpu = 0
const none = '0x0'

/** A router that is being measured, on a connection of its own. */
export interface Lent {
  readonly process: GuestProcess
  readonly client: Hypervisor
}

interface Held {
  readonly process: GuestProcess
  client: Hypervisor | undefined
  isMeasured: boolean
}

/** Running routers, held by the connections on which dynamips takes commands. */
export class DynamipsGuests implements GuestControl<DynamipsProperties> {
  readonly #timeouts: DynamipsTimeouts
  readonly #ended: (node: DynamipsKindNode) => void
  readonly #held = new Map<string, Held>()

  constructor(timeouts: DynamipsTimeouts, ended: (node: DynamipsKindNode) => void) {
    this.#timeouts = timeouts
    this.#ended = ended
  }

  async begin(node: DynamipsKindNode, process: GuestProcess): Promise<void> {
    const { ended, expedited } = process
    try {
      await this.#hold(node, process, this.#timeouts.begin, AbortSignal.any([ended, expedited]))
      await this.#create(node)
    } catch (error) {
      if (expedited.aborted) throw conflict('The router is being stopped', { cause: error })
      // With its end comes what it said.
      if (isGone(error)) await exitOfProgram(process, this.#timeouts.command)
      throw await explained(error, node)
    }
  }

  async adopt(node: DynamipsKindNode, process: GuestProcess): Promise<GuestState> {
    // Nobody waits any more for what it was started for.
    if (node.record.properties.is_measured) return { status: 'stopped', reason: null }
    await this.#hold(node, process, this.#timeouts.adopt, process.ended).catch(refused)
    // The service before us was killed while it started this one.
    if ((await this.#status(node)) === 'inactive') return { status: 'stopped', reason: null }
    // Or while it tried values.
    await this.setIdlePc(node)
    return this.state(node)
  }

  async end(node: DynamipsKindNode, { ended }: GuestProcess, how: StopReason): Promise<void> {
    if (how === 'remove' || ended.aborted || node.record.properties.is_measured) return
    await this.#do(node, 'vm stop', [], this.#timeouts.stop)
  }

  ended(node: DynamipsKindNode): void {
    this.#held.get(node.key)?.client?.close()
    this.#held.delete(node.key)
    this.#ended(node)
  }

  async state(node: DynamipsKindNode): Promise<GuestState> {
    switch (await this.#status(node)) {
      case 'running':
        return { status: 'started', reason: null }
      case 'suspended':
        return { status: 'suspended', reason: null }
      default:
        return { status: 'stopped', reason: null }
    }
  }

  async suspend(node: DynamipsKindNode): Promise<void> {
    this.requireUnmeasured(node)
    await this.#do(node, 'vm suspend')
  }

  async resume(node: DynamipsKindNode): Promise<void> {
    await this.#do(node, 'vm resume')
  }

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
      if (isRunning)
        await this.#do(node, 'vm resume').catch(ignore('what was done is done, whether the router runs on or not'))
    }
  }

  /** Has a router that runs rest by the idle PC of its settings, or (without one) not at all; 409. */
  async setIdlePc(node: DynamipsKindNode): Promise<void> {
    await this.#do(node, 'vm set_idle_pc_online', [cpu, node.record.properties.idlepc ?? none])
  }

  /** 409 while a router is measured: what would then be done to it would be measured, too. */
  requireUnmeasured({ key }: DynamipsKindNode): void {
    if (this.#held.get(key)?.isMeasured === true)
      throw conflict('The router is being measured: wait for the end of it, or stop the router')
  }

  /** Gives a router that runs away to be measured; 409. */
  async lend(node: DynamipsKindNode): Promise<Lent> {
    this.requireUnmeasured(node)
    const held = this.#heldOf(node)
    const { process } = held
    const signal = AbortSignal.any([process.ended, process.expedited])
    const client = await this.#connection(node, this.#timeouts.adopt, signal).catch(refused)
    held.isMeasured = true
    return { process, client }
  }

  /** Whether it still runs, so that it can be looked after. */
  takeBack({ key }: DynamipsKindNode, { process }: Lent): boolean {
    const held = this.#held.get(key)
    if (held?.process !== process) return false
    held.isMeasured = false
    return !process.ended.aborted
  }

  async #hold(node: DynamipsKindNode, process: GuestProcess, ms: number, signal: AbortSignal): Promise<void> {
    this.#held.get(node.key)?.client?.close()
    const held: Held = { process, client: undefined, isMeasured: false }
    this.#held.set(node.key, held)
    held.client = await this.#connection(node, ms, signal)
  }

  #connection(node: DynamipsKindNode, ms: number, signal: AbortSignal): Promise<Hypervisor> {
    return reach({ directory: node.directory, port: node.record.properties.control_port, ms, signal })
  }

  /** Makes the router in a dynamips that was just started, and starts it. */
  async #create(node: DynamipsKindNode): Promise<void> {
    const { platform, ram, idlepc } = node.record.properties
    const run = (command: string, ...values: readonly (string | number)[]) => this.#run(node, command, values)
    await run('vm create', 1, platform)
    await run('vm set_ram', ram)
    // Memory of its own: a file as large as it would be left to the disk.
    await run('vm set_ram_mmap', 0)
    await run('vm set_ios', imageLink)
    // Its console is on this card, and IOS does not go on without one.
    if (platform === 'c7200') await run('vm slot_add_binding', 0, 0, 'C7200-IO-FE')
    await run('vm set_idle_pc', idlepc ?? none)
    await run('vm start')
  }

  async #status(node: DynamipsKindNode): Promise<'inactive' | 'running' | 'suspended'> {
    const { lines, text } = await this.#run(node, 'vm get_status').catch((error: unknown) => {
      if (isUnknown(error)) return { lines: [], text: '0' }
      throw refused(error)
    })
    // 0: inactive, 1: shutting down.
    const status = ({ 2: 'running', 3: 'suspended' } as const)[Number(lines[0] ?? text)]
    return status ?? 'inactive'
  }

  /** Has dynamips do something to the router; 409 when it does not. */
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
    const held = this.#heldOf(node)
    const { ended } = held.process
    if (held.client?.isOpen !== true) held.client = await this.#connection(node, this.#timeouts.adopt, ended)
    return held.client.run(command, [routerName, ...values], { ms, signal: ended })
  }

  #heldOf({ key }: DynamipsKindNode): Held {
    const held = this.#held.get(key)
    if (held === undefined) throw conflict('The router does not run')
    return held
  }
}

/** Whether dynamips has closed its connection: it is about to end. */
export const isGone = (error: unknown) => error instanceof HypervisorError && error.code === 'closed'

const unknownObject = 208
const isUnknown = (error: unknown) => error instanceof HypervisorError && error.reply === unknownObject

/** What dynamips refuses, or that it cannot be reached, is told as 409. */
export function refused(error: unknown): never {
  throw error instanceof HypervisorError ? conflict(error.message, { cause: error }) : error
}

/** Why a router does not begin, with what dynamips complained of before that. */
async function explained(error: unknown, { directory }: DynamipsKindNode): Promise<unknown> {
  if (!(error instanceof HypervisorError)) return error
  const words = await lastOutput(join(directory, errorsName), directory)
  return new ApiError(409, words === '' ? error.message : `${error.message}: ${words}`, { cause: error })
}

/** Resolves when the process has ended, or after the bound. */
export async function exitOfProgram({ ended }: GuestProcess, ms: number): Promise<void> {
  if (ended.aborted) return
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms)
    ended.addEventListener(
      'abort',
      () => {
        clearTimeout(timer)
        resolve()
      },
      { once: true },
    )
  })
}
