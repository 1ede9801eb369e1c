import { ignore } from '../../../src/async/ignore.ts'
import { conflict } from '../../../src/errors/api-error.ts'
import type { EventPayload } from '../../../src/model/event.ts'
import type { Exit, UnitSpec, UnitState } from '../keeper-protocol/protocol.ts'
import type { GuestProcess, GuestState, Launch, StopReason } from '../kinds/kind.ts'
import { describeExit, failureOf, hinted } from './endings.ts'
import { type KeeperLink, keeperErrorCode } from './keeper-link.ts'
import type { LabNode } from './lab-node.ts'
import type { Links } from './links.ts'
import type { Listening } from './listening.ts'
import { RunningProcesses } from './running.ts'

/** EADDRINUSE as the C library says it, and QEMU after it; and as Node says it of an embedded pc. */
const saysPortTaken = /address already in use|\bEADDRINUSE\b/i
/** How often a program is started at once, with other ports every time. */
const maxStarts = 4
/** A program that said it so long after its start, ms, meant something else. */
const startAgainMs = 30_000

export interface LifeCycleOptions {
  readonly keeper: KeeperLink
  readonly links: Links
  readonly listening: Listening
  readonly emit: (node: LabNode, payload: EventPayload) => void
}

/** Start, stop and what happens by itself, the same for every kind. Callers hold the lock of the node. */
export class LifeCycle {
  readonly #options: LifeCycleOptions
  readonly #listening: Listening
  readonly #processes = new RunningProcesses()
  readonly #starts = new WeakMap<LabNode, { tries: number; readonly at: number }>()

  constructor(options: LifeCycleOptions) {
    this.#options = options
    this.#listening = options.listening
  }

  /** A node that runs is left alone, one that is suspended goes on. 409 with the reason when it cannot run; it is then as before. */
  async start(node: LabNode): Promise<void> {
    if (node.status === 'suspended') return this.resume(node)
    if (node.status === 'started') return
    this.#starts.set(node, { tries: 1, at: performance.now() })
    for (;;) {
      try {
        return await this.#startOnce(node)
      } catch (error) {
        if (this.#changesPorts(node, (error as Error).message)) continue
        this.#options.emit(node, node.updated())
        throw error
      }
    }
  }

  /** Whether a program ended because a port of it was taken, and may be started again: it has other ports then. */
  #changesPorts(node: LabNode, words: string): boolean {
    const start = this.#starts.get(node)
    if (!saysPortTaken.test(words) || start === undefined) return false
    if (start.tries >= maxStarts || performance.now() - start.at > startAgainMs) return false
    start.tries++
    this.#options.links.changePorts(node)
    const message = `${node.record.name}: a port of the program is in use by another one; it is started again with other ports`
    this.#options.emit(node, { type: 'log.warning', message })
    return true
  }

  async #startOnce(node: LabNode): Promise<void> {
    let launch: Launch | undefined
    const { losses } = this.#processes
    try {
      await this.#listening.free(node)
      const wires = await this.#options.links.wires(node)
      launch = await node.kind.launch(node, wires)
      node.record.command_line = launch.command_line
      node.record.status_reason = null
      node.record.running = true
      // What only the record says of a guest is on disk before the guest has it; the rest is told by the keeper.
      const isFirst = node.hasUnsavedFacts
      if (isFirst) await node.save()
      const [started] = await Promise.all([this.#run(node, launch.run), isFirst ? undefined : node.save()])
      // Another keeper runs it than the one that its ports are in.
      if (this.#processes.losses !== losses) throw conflict(`${keeperDied}; start the node again`)
      node.run = started.run
      await node.kind.control?.begin(node, this.#processes.add(node.key, started))
      node.kind.onStarted?.(node, true)
    } catch (error) {
      throw await this.#failed(node, error as Error, launch)
    }
    node.status = 'started'
    for (const notice of launch.notices ?? []) this.#options.emit(node, notice)
    this.#options.emit(node, node.updated('started'))
  }

  /** Resolves when everything of it has ended; a stopped node is left alone. */
  async stop(node: LabNode, how: StopReason = 'stop'): Promise<void> {
    if (node.status === 'stopped') return
    const process = this.#processes.get(node.key)
    if (process !== undefined) {
      const { control } = node.kind
      await control?.end(node, process, how).catch((error: unknown) => {
        if (control.isForeign === true && how !== 'close') throw error
        const message = `${node.record.name}: ${(error as Error).message}`
        this.#options.emit(node, { type: 'log.warning', message })
      })
    }
    await this.#end(node)
  }

  /** Lets go of a node that could not be stopped, and must not stay. */
  async abandon(node: LabNode): Promise<void> {
    if (node.status !== 'stopped') await this.#end(node)
  }

  /** Ends the process of a node whose guest has nothing more to do. */
  async #end(node: LabNode): Promise<void> {
    const { stopGraceMs } = node.kind
    await this.#options.keeper.call('unit.stop', { key: node.key, grace_ms: stopGraceMs }, stopGraceMs + 10_000)
    node.record.running = false
    node.record.status_reason = null
    // A disk that is full must not keep a node running; the next service would only find it stopped without a reason.
    await node.saveOrTell()
    await this.#stopped(node)
  }

  /** A kind that cannot be paused goes on running, as its clients expect. 409 when the guest does not obey. */
  async suspend(node: LabNode): Promise<void> {
    const { control, canBeHeld } = node.kind
    if (node.status !== 'started') return
    if (control !== undefined) await control.suspend(node)
    else if (canBeHeld === true) await this.#hold(node, true)
    else return
    await this.#became(node, { status: 'suspended', reason: null })
  }

  async resume(node: LabNode): Promise<void> {
    if (node.status === 'stopped') throw conflict('The node is stopped: start it instead', { word: 'node-stopped' })
    const { control } = node.kind
    if (node.status === 'started' && control?.isForeign !== true) return
    if (control !== undefined) await control.resume(node)
    else if (node.kind.canBeHeld === true) await this.#hold(node, false)
    else return
    await this.#became(node, { status: 'started', reason: null })
  }

  /** 409 when its program cannot be held, or has just ended. */
  async #hold(node: LabNode, is_held: boolean): Promise<void> {
    await this.#options.keeper.call('unit.hold', { key: node.key, is_held }).catch((error: unknown) => {
      if (keeperErrorCode(error) === 'bad_request')
        throw conflict('The node was started by an earlier version, which cannot hold it: stop it and start it again')
      if (keeperErrorCode(error) === undefined) throw error
      throw conflict((error as Error).message, { cause: error as Error })
    })
  }

  /** A hardware reset where there is one: a stopped machine is left alone then. */
  async reload(node: LabNode): Promise<void> {
    const { control } = node.kind
    if (control !== undefined) {
      if (node.status === 'stopped') {
        if (control.isForeign === true)
          throw conflict('The node is stopped: start it instead', { word: 'node-stopped' })
        return
      }
      await control.reset(node)
      // One that stood still because something went wrong goes on.
      return this.refresh(node)
    }
    await this.stop(node)
    await this.start(node)
  }

  /** Looks at a guest again that has told of a change. */
  async refresh(node: LabNode): Promise<void> {
    const { control } = node.kind
    if (control === undefined || node.status === 'stopped') return
    // One that has ended is told of by the keeper.
    const state = await control.state(node).catch(() => undefined)
    if (state?.status === 'stopped') await this.#end(node)
    else if (state !== undefined) await this.#became(node, state)
  }

  /** The news that a process has ended, before the node has its turn. */
  heard(key: string, run: number): void {
    this.#processes.end(key, run)
  }

  /** The unit ended without being asked to: the same clean-up as a stop, and the reason is kept; `quietly`: that of a good end. */
  async exited(node: LabNode, run: number, exit: Exit, quietly: string | null = null): Promise<void> {
    if (node.run !== run || node.status === 'stopped') return
    await this.#options.keeper
      .call('unit.forget', { key: node.key })
      .catch(ignore('a keeper that cannot be asked has the unit no more, or says it again'))
    // What was asked for and not waited for is no accident.
    const isQuiet = exit.code === 0 || exit.requested
    const end = `${describeExit(exit)}${hinted(node.kind.hint?.(exit))}`
    node.record.running = false
    node.record.status_reason = isQuiet ? quietly : `The program ended by itself ${end}`
    await node.saveOrTell()
    await this.#stopped(node)
    if (!isQuiet && this.#changesPorts(node, exit.last_words))
      await this.#startOnce(node).catch(() => this.#options.emit(node, node.updated()))
    else if (!isQuiet) {
      const message = `${node.record.name}: the program ended by itself ${end}`
      this.#options.emit(node, { type: 'log.error', message })
    }
  }

  /** Takes over a unit that an earlier service started. */
  async adopt(node: LabNode, unit: UnitState): Promise<void> {
    node.status = 'started'
    node.run = unit.run
    const process = this.#processes.add(node.key, unit)
    // It may have ended since the keeper was asked: the news of it came when the node was not there yet.
    const exit = unit.exit ?? (process.ended.aborted ? await this.#exitOf(node) : null)
    if (exit !== null) {
      this.#processes.end(node.key, unit.run)
      return this.exited(node, unit.run, exit, 'It ended by itself while no service was there')
    }
    if (unit.is_held === true) node.status = 'suspended'
    node.kind.onStarted?.(node, false)
    await this.#adoptGuest(node, process)
  }

  /** The node is about to be closed or deleted: an end that is being waited for is waited for no longer. */
  expedite(node: LabNode): void {
    this.#processes.expedite(node.key)
  }

  /** A keeper died, and all that ran with it. */
  heardLoss(isHeld: (key: string) => boolean, isOwn: boolean): void {
    this.#processes.lost(isHeld, isOwn)
  }

  /** What held the node is gone; it does not run any more, unless it was started again before this had its turn. */
  async lost(node: LabNode, reason: string): Promise<void> {
    if (node.status === 'stopped') return
    const mayRun = this.#processes.get(node.key)?.ended.aborted === false
    if (mayRun && (await this.#options.keeper.unit(node.key, node.run))?.exit === null) return
    node.record.running = false
    node.record.status_reason = reason
    await node.saveOrTell()
    await this.#stopped(node)
  }

  async #adoptGuest(node: LabNode, process: GuestProcess): Promise<void> {
    const { control } = node.kind
    if (control === undefined) return
    try {
      const { status, reason } = await control.adopt(node, process)
      node.status = status === 'stopped' ? 'started' : status
      node.record.status_reason = reason
      if (status === 'stopped') await this.#end(node)
    } catch (error) {
      const message = `${node.record.name} runs, but does not obey: ${(error as Error).message}`
      node.record.status_reason = message
      this.#options.emit(node, { type: 'log.warning', message })
    }
  }

  /** How a run ended of which that is known. */
  async #exitOf({ key, run }: LabNode): Promise<Exit> {
    const unit = await this.#options.keeper.unit(key, run)
    return unit?.exit ?? { code: null, signal: null, requested: false, last_words: '' }
  }

  async #became(node: LabNode, { status, reason }: GuestState): Promise<void> {
    const isSame = node.status === status
    if (isSame && node.record.status_reason === reason) return
    node.status = status
    node.record.status_reason = reason
    await node.saveOrTell()
    this.#options.emit(node, node.updated(isSame ? undefined : status === 'suspended' ? 'suspended' : 'resumed'))
  }

  /** Undoes a start that failed; the error to tell. */
  async #failed(node: LabNode, error: Error, launch: Launch | undefined): Promise<Error> {
    const hasEnded = this.#processes.get(node.key)?.ended.aborted ?? false
    // It may run although its record could not be written.
    const { exit } = await this.#options.keeper
      .call('unit.stop', { key: node.key, grace_ms: node.kind.stopGraceMs })
      .catch(() => ({ exit: null }))
    this.#letGo(node)
    const hint = launch?.hint ?? (exit === null ? undefined : node.kind.hint?.(exit))
    // What another program says of its guest is more than that the guest's port is gone.
    const isToBeTold = hasEnded && node.kind.control?.isForeign !== true
    const reason = failureOf(error, isToBeTold ? exit : null, hint)
    node.record.running = false
    node.record.status_reason = reason.message.slice(0, 2000)
    await node.saveOrTell()
    if (launch !== undefined) await this.#over(node)
    return reason
  }

  async #run(node: LabNode, run: UnitSpec['run']): Promise<{ run: number; pid: number }> {
    const start = () => {
      const listen = this.#listening.of(node)
      return this.#options.keeper.call('unit.start', {
        key: node.key,
        run,
        ...(listen !== undefined && { console: listen }),
      })
    }
    try {
      return await start()
    } catch (error) {
      if (keeperErrorCode(error) === 'exists') {
        // A run that nobody here knows of, left by a service that was killed at the wrong moment.
        await this.#options.keeper.call('unit.stop', { key: node.key, grace_ms: node.kind.stopGraceMs })
        return start()
      }
      if (keeperErrorCode(error) !== 'port_taken' || node.record.console === null) throw error
      await this.#listening.move(node, node.record.console)
      // Before it is there: a service that is killed now leaves the port that is listened on, or none.
      await node.save()
      return start()
    }
  }

  /** It is shown as stopped when nothing of it is left. */
  async #stopped(node: LabNode): Promise<void> {
    await this.#over(node)
    this.#letGo(node)
    this.#options.emit(node, node.updated('stopped'))
  }

  /** What a kind cannot do any more must not keep the node from being stopped. */
  async #over(node: LabNode): Promise<void> {
    await node.kind.onExited?.(node).catch((error: unknown) => {
      const message = `${node.record.name}: ${(error as Error).message}`
      this.#options.emit(node, { type: 'log.warning', message })
    })
  }

  #letGo(node: LabNode): void {
    node.status = 'stopped'
    node.run = undefined
    this.#processes.forget(node.key)
    node.kind.control?.ended(node)
  }
}

export const keeperDied = 'The process that holds the nodes died'
