import { ignore } from '../../../../src/lib/async/ignore.ts'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import type { EventPayload } from '../../../../src/model/event.ts'
import type { KindDescriptor } from '../../../../src/model/kinds/kind.ts'
import type { NodeStatus } from '../../../../src/model/schema/node-fields.ts'
import type { Exit, UnitSpec, UnitState } from '../../keeper/protocol/protocol.ts'
import { describeExit, failureOf, hinted } from './endings.ts'
import type { EngineNode } from './engine-node.ts'
import { type KeeperLink, keeperErrorCode } from './keeper-link.ts'
import type { GuestProcess, GuestState, Launch, PortWire, StopReason } from './kind.ts'
import type { Links } from './links.ts'
import type { ConsoleListeners } from './listening.ts'
import { RunningProcesses } from './running.ts'

/** EADDRINUSE in the messages of programs: the text of strerror(3), which QEMU prints, and the code of Node. */
const saysPortTaken = /address already in use|\bEADDRINUSE\b/i
/** Maximum number of starts in a row, each with other ports. */
const maxStarts = 4
/** Time after the start in which the message means a port of the start, ms. */
const startAgainMs = 30_000
/** Longest reason of a status, characters. */
const maxReason = 2000

export interface NodeLifecycleOptions {
  readonly keeper: KeeperLink
  readonly links: Links
  readonly listening: ConsoleListeners
  readonly emit: (node: EngineNode, payload: EventPayload) => void
  /** See `NodeLifecycle.isAlwaysOn`. */
  readonly runsAlways: (kind: KindDescriptor) => boolean
}

/** The starts of a node that follow from one request. */
interface StartTries {
  readonly at: number
  count: number
  mayRetryGuest: boolean
}

/** Start and stop of nodes, and events of their guests, the same for every kind. Callers hold the lock of the node. */
export class NodeLifecycle {
  readonly #options: NodeLifecycleOptions
  readonly #listening: ConsoleListeners
  readonly #processes = new RunningProcesses()
  /** The starts that are being prepared. */
  readonly #preparing = new Map<string, AbortController>()
  readonly #starts = new WeakMap<EngineNode, StartTries>()

  constructor(options: NodeLifecycleOptions) {
    this.#options = options
    this.#listening = options.listening
  }

  /** Whether a node runs from its creation on, and again when its project is opened: it is stopped by hand only. */
  isAlwaysOn(node: EngineNode): boolean {
    return this.#options.runsAlways(node.kind.descriptor)
  }

  /** Starts a stopped node, resumes a suspended node. 409 with the reason when it cannot run; it is stopped then. */
  async start(node: EngineNode): Promise<void> {
    if (node.isSuspended) return this.resume(node)
    if (!node.isStopped) return
    const tries: StartTries = { at: performance.now(), count: 1, mayRetryGuest: true }
    this.#starts.set(node, tries)
    for (;;) {
      try {
        return await this.#startOnce(node)
      } catch (error) {
        if (this.#giveOtherPorts(node, (error as Error).message)) continue
        if (this.#retryGuest(node, tries, error as Error)) continue
        this.#options.emit(node, node.updated())
        throw error
      }
    }
  }

  /** Starts what is always on; its status_reason says why it does not run. */
  async startIfPossible(node: EngineNode): Promise<void> {
    await this.start(node).catch(ignore('its status_reason says why it does not run'))
  }

  /** Gives a node other ports if its program ended because one of them was taken; true: it is to be started again. */
  #giveOtherPorts(node: EngineNode, lastWords: string): boolean {
    const tries = this.#starts.get(node)
    if (!saysPortTaken.test(lastWords) || tries === undefined) return false
    if (tries.count >= maxStarts || performance.now() - tries.at > startAgainMs) return false
    tries.count++
    this.#options.links.changePorts(node)
    this.#warn(node, 'another program uses a port of this program; it will be started again with other ports')
    return true
  }

  /** Uses the one retry of a guest whose start failed before it did anything; true: it is to be started again. */
  #retryGuest(node: EngineNode, tries: StartTries, error: Error): boolean {
    if (!tries.mayRetryGuest || node.kind.control?.startsAgain?.(error) !== true) return false
    tries.mayRetryGuest = false
    this.#warn(node, `${error.message}; it will be started again`)
    return true
  }

  async #startOnce(node: EngineNode): Promise<void> {
    let launch: Launch | undefined
    const { keeperDeaths } = this.#processes
    node.move('start')
    try {
      await this.#listening.free(node)
      const wires = await this.#options.links.wires(node)
      launch = await this.#prepare(node, wires)
      node.record.command_line = launch.command_line
      node.startWarning = startWarningOf(node, launch)
      node.record.status_reason = node.startWarning
      node.record.running = true
      // Facts that only the record has must be on disk before the guest starts; the keeper knows the rest.
      const isFirst = node.hasUnsavedFacts
      if (isFirst) await node.save()
      const [started] = await Promise.all([this.#run(node, launch.run), isFirst ? undefined : node.save()])
      // The keeper with the ports of the node died; the unit runs in a new one.
      if (this.#processes.keeperDeaths !== keeperDeaths) throw conflict(`${keeperDiedReason}; start the node again`)
      node.run = started.run
      await node.kind.control?.begin(node, this.#processes.add(node.key, started))
      node.kind.onStarted?.(node, true)
    } catch (error) {
      throw await this.#failed(node, error as Error, launch)
    }
    node.move('run')
    for (const notice of launch.notices ?? []) this.#options.emit(node, notice)
    this.#options.emit(node, node.updated('started'))
  }

  async #prepare(node: EngineNode, wires: ReadonlyMap<string, PortWire>): Promise<Launch> {
    const over = new AbortController()
    this.#preparing.set(node.key, over)
    try {
      return await node.kind.launch(node, wires, over.signal)
    } finally {
      this.#preparing.delete(node.key)
    }
  }

  /** Ends the preparation of a start, which holds the lock of the node, for a stop that waits for the lock. */
  interrupt(node: EngineNode): void {
    this.#preparing.get(node.key)?.abort()
  }

  /** Stops a node; resolves when all its processes have ended. One that is stopped begins without kept memory then. */
  async stop(node: EngineNode, how: StopReason = 'stop'): Promise<void> {
    if (!node.can('stop')) return how === 'stop' ? node.kind.control?.dropMemory?.(node) : undefined
    await this.#stopUnit(node, how, async () => {
      const process = this.#processes.get(node.key)
      const { control } = node.kind
      if (process === undefined || control === undefined) return
      await control.endGuest(node, process, how).catch((error: unknown) => {
        if (control.isOutsideKeeper === true && how !== 'close') throw error
        this.#warn(node, (error as Error).message)
      })
    })
  }

  /** Stops a node without its guest, which could not be stopped, for a project that must close. */
  async forceStop(node: EngineNode): Promise<void> {
    if (node.can('stop')) await this.#stopUnit(node)
  }

  /** Ends the unit of a node, after `endGuest`; the node is stopped then. */
  async #stopUnit(node: EngineNode, how: StopReason = 'stop', endGuest = async () => {}): Promise<void> {
    const { stopGraceMs } = node.kind
    node.move('stop')
    try {
      await endGuest()
      await this.#options.keeper.call('unit.stop', { key: node.key, grace_ms: stopGraceMs }, stopGraceMs + 10_000)
    } catch (error) {
      node.move('refuse')
      throw error
    }
    // What is always on runs again when its project is opened again.
    node.record.running = how === 'close' && this.isAlwaysOn(node)
    node.startWarning = null
    node.record.status_reason = null
    // A full disk must not keep a node running.
    await node.saveOrTell()
    await this.#finishStop(node)
  }

  /** Pauses a node; does nothing for kinds that cannot be paused. 409 when the guest does not pause. */
  async suspend(node: EngineNode): Promise<void> {
    const { control, canBeHeld } = node.kind
    if (!node.can('suspend')) return
    if (control !== undefined) await control.suspend(node)
    else if (canBeHeld === true) await this.#hold(node, true)
    else return
    await this.#setState(node, { status: 'suspended', reason: null })
  }

  async resume(node: EngineNode): Promise<void> {
    if (node.isStopped) throw conflict('The node is stopped: start it instead', { code: 'node-stopped' })
    const { control } = node.kind
    if (!node.isSuspended && control?.isOutsideKeeper !== true) return
    if (control !== undefined) await control.resume(node)
    else if (node.kind.canBeHeld === true) await this.#hold(node, false)
    else return
    await this.#setState(node, { status: 'started', reason: null })
  }

  /** 409 when the program cannot be held, or has just ended. */
  async #hold(node: EngineNode, is_held: boolean): Promise<void> {
    await this.#options.keeper.call('unit.hold', { key: node.key, is_held }).catch((error: unknown) => {
      if (keeperErrorCode(error) === 'bad_request')
        throw conflict('The node was started by an earlier version, which cannot hold it: stop it and start it again')
      if (keeperErrorCode(error) === undefined) throw error
      throw conflict((error as Error).message, { cause: error as Error })
    })
  }

  /** Resets the hardware of a guest, or stops and starts a node without a reset. Does nothing for a stopped machine with one. */
  async reload(node: EngineNode): Promise<void> {
    const { control } = node.kind
    if (control !== undefined) {
      if (node.isStopped) {
        if (control.isOutsideKeeper === true)
          throw conflict('The node is stopped: start it instead', { code: 'node-stopped' })
        return
      }
      await control.reset(node)
      // The reset may have resumed a guest that an error had paused.
      return this.refresh(node)
    }
    await this.stop(node)
    await this.start(node)
  }

  /** Reads the state of a guest again, after an event. */
  async refresh(node: EngineNode): Promise<void> {
    const { control } = node.kind
    if (control === undefined || !node.isRunning) return
    // The keeper reports the end of a guest.
    const state = await control.state(node).catch(() => undefined)
    if (state?.status === 'stopped') await this.#stopUnit(node)
    else if (state !== undefined) await this.#setState(node, state)
  }

  /** Notes the end of a process at once; `onUnitExit` follows with the lock of the node. */
  recordExit(key: string, run: number): void {
    this.#processes.end(key, run)
  }

  /** Cleans up after a unit that ended by itself, and stores the reason; `cleanExitReason`: that of an end without an error. */
  async onUnitExit(node: EngineNode, run: number, exit: Exit, cleanExitReason: string | null = null): Promise<void> {
    if (node.run !== run || !node.isRunning) return
    await this.#options.keeper
      .call('unit.forget', { key: node.key })
      .catch(ignore('a keeper that cannot be asked has the unit no more, or says it again'))
    // A requested end that was not awaited is not a failure.
    const isQuiet = exit.code === 0 || exit.requested
    const end = `${describeExit(exit)}${hinted(node.kind.hint?.(exit))}`
    node.record.running = false
    node.record.status_reason = isQuiet ? cleanExitReason : `The program ended by itself ${end}`
    await node.saveOrTell()
    await this.#finishStop(node)
    if (isQuiet) return
    const report = (what: string) =>
      this.#options.emit(node, { type: 'log.error', message: `${node.record.name}: ${what}` })
    if (!this.#giveOtherPorts(node, exit.last_words)) return report(`the program ended by itself ${end}`)
    await this.#startOnce(node).catch((error: Error) => {
      this.#options.emit(node, node.updated())
      report(error.message)
    })
  }

  /** Adopts a unit that an earlier service started. */
  async adopt(node: EngineNode, unit: UnitState): Promise<void> {
    node.move('adopt')
    node.run = unit.run
    const process = this.#processes.add(node.key, unit)
    // The unit may have ended after the inventory; its exit event came before the node was in the table.
    const exit = unit.exit ?? (process.ended.aborted ? await this.#exitOf(node) : null)
    if (exit !== null) {
      this.#processes.end(node.key, unit.run)
      return this.onUnitExit(node, unit.run, exit, 'It ended by itself while no service was running')
    }
    if (unit.is_held === true) node.move('suspend')
    node.kind.onStarted?.(node, false)
    await this.#adoptGuest(node, process)
  }

  /** Ends a start, or a wait for the guest, of a node that is about to be closed or deleted. */
  skipGracePeriod(node: EngineNode): void {
    this.interrupt(node)
    this.#processes.skipGracePeriod(node.key)
  }

  /** Notes at once that a keeper died with its units; `onUnitGone` follows with the lock of each node. */
  recordKeeperDeath(isHeld: (key: string) => boolean, isOwn: boolean): void {
    this.#processes.endAllOf(isHeld, isOwn)
  }

  /** Its unit is gone without an exit, as its keeper died: the node is stopped, unless it was started again meanwhile. */
  async onUnitGone(node: EngineNode, reason: string): Promise<void> {
    if (!node.isRunning) return
    const mayRun = this.#processes.get(node.key)?.ended.aborted === false
    if (mayRun && (await this.#options.keeper.unit(node.key, node.run))?.exit === null) return
    node.record.running = false
    node.record.status_reason = reason
    await node.saveOrTell()
    await this.#finishStop(node)
  }

  async #adoptGuest(node: EngineNode, process: GuestProcess): Promise<void> {
    const { control } = node.kind
    if (control === undefined) return
    try {
      const { status, reason } = await control.adopt(node, process)
      follow(node, status)
      node.record.status_reason = reason
      if (status === 'stopped') await this.#stopUnit(node)
    } catch (error) {
      const message = `${node.record.name} is running, but cannot be controlled: ${(error as Error).message}`
      node.record.status_reason = message
      this.#options.emit(node, { type: 'log.warning', message })
    }
  }

  /** Shows a warning about the start of a node that runs as the reason of its status. */
  async warnOfStart(node: EngineNode, message: string): Promise<void> {
    if (node.status === 'stopped' || node.startWarning?.includes(message) === true) return
    node.startWarning = [node.startWarning, message].filter(Boolean).join('; ').slice(0, maxReason)
    await this.#setState(node, { status: node.status, reason: null })
  }

  /** The exit of a run. */
  async #exitOf({ key, run }: EngineNode): Promise<Exit> {
    const unit = await this.#options.keeper.unit(key, run)
    return unit?.exit ?? { code: null, signal: null, requested: false, last_words: '' }
  }

  async #setState(node: EngineNode, state: GuestState): Promise<void> {
    const reason = state.reason ?? node.startWarning
    const before = node.status
    follow(node, state.status)
    const isSame = node.status === before
    if (isSame && node.record.status_reason === reason) return
    node.record.status_reason = reason
    await node.saveOrTell()
    this.#options.emit(node, node.updated(isSame ? undefined : node.status === 'suspended' ? 'suspended' : 'resumed'))
  }

  /** Undoes a failed start; returns the error for the client. */
  async #failed(node: EngineNode, error: Error, launch: Launch | undefined): Promise<Error> {
    const hasEnded = this.#processes.get(node.key)?.ended.aborted ?? false
    // The unit may run, for instance when the record could not be written.
    const { exit } = await this.#options.keeper
      .call('unit.stop', { key: node.key, grace_ms: node.kind.stopGraceMs })
      .catch(() => ({ exit: null }))
    this.#releaseProcess(node, 'fail')
    const hint = launch?.hint ?? (exit === null ? undefined : node.kind.hint?.(exit))
    // For a guest of another program the error says more than the end of its serial port.
    const isShown = hasEnded && node.kind.control?.isOutsideKeeper !== true
    const reason = failureOf(error, isShown ? exit : null, hint)
    node.record.running = false
    node.record.status_reason = reason.message.slice(0, maxReason)
    await node.saveOrTell()
    if (launch !== undefined) await this.#cleanUpOfKind(node)
    return reason
  }

  async #run(node: EngineNode, run: UnitSpec['run']): Promise<{ run: number; pid: number }> {
    const start = () => {
      const listen = this.#listening.of(node)
      return this.#options.keeper.call('unit.start', { key: node.key, run, ...(listen && { console: listen }) })
    }
    try {
      return await start()
    } catch (error) {
      if (keeperErrorCode(error) === 'exists') {
        // The service before was killed between the start of this unit and its record.
        await this.#options.keeper.call('unit.stop', { key: node.key, grace_ms: node.kind.stopGraceMs })
        return start()
      }
      if (keeperErrorCode(error) !== 'port_taken' || node.record.console === null) throw error
      await this.#listening.move(node, node.record.console)
      // Saved before the start: if the service is killed now, the record has the port of the listener.
      await node.save()
      return start()
    }
  }

  /** Shows the node as stopped, after the clean-up. */
  async #finishStop(node: EngineNode): Promise<void> {
    await this.#cleanUpOfKind(node)
    this.#releaseProcess(node, 'end')
    this.#options.emit(node, node.updated('stopped'))
  }

  /** Runs the clean-up of the kind. Its failure does not keep the node from being stopped. */
  async #cleanUpOfKind(node: EngineNode): Promise<void> {
    await node.kind.onExited?.(node).catch((error: unknown) => this.#warn(node, (error as Error).message))
  }

  #warn(node: EngineNode, text: string): void {
    this.#options.emit(node, { type: 'log.warning', message: `${node.record.name}: ${text}` })
  }

  /** Ends a run: nothing of its process is kept. */
  #releaseProcess(node: EngineNode, event: 'fail' | 'end'): void {
    node.move(event)
    node.run = undefined
    this.#processes.forget(node.key)
    node.kind.control?.release(node)
  }
}

/** Takes the state of a guest that runs or is paused; the caller handles one that has stopped. */
function follow(node: EngineNode, status: NodeStatus): void {
  if (status === 'suspended' && node.can('suspend')) node.move('suspend')
  else if (status !== 'suspended' && node.isSuspended) node.move('resume')
}

export const keeperDiedReason = 'The process that holds the nodes died'

/** What a start warns of, as the reason of the status: for clients that have not read the feed. */
function startWarningOf({ record }: EngineNode, { notices = [] }: Launch): string | null {
  const prefix = `${record.name}: `
  const warnings = notices.flatMap((it) => (it.type === 'log.warning' && 'message' in it ? [it.message] : []))
  const texts = warnings.map((it) => (it.startsWith(prefix) ? it.slice(prefix.length) : it))
  return texts.length === 0 ? null : texts.join('; ').slice(0, maxReason)
}
