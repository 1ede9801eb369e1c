import { closeSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { KeyedMutex } from '../../../../src/lib/async/keyed-mutex.ts'
import { withTimeout } from '../../../../src/lib/async/timeout.ts'
import type { TerminalSize } from '../../../../src/model/schema/console-size.ts'
import type { Panel } from '../../dataplane/cable/panel.ts'
import type { Switch } from '../../dataplane/switch/switch.ts'
import { KeeperError } from '../protocol/error.ts'
import type { BridgeSpec, Exit, ProcessSpec, UnitSpec, UnitState } from '../protocol/protocol.ts'
import { AttachedRunner } from './attached.ts'
import { BridgeRunner } from './bridge-runner.ts'
import { endOfChildLog } from './child-log.ts'
import { ChildProcessRunner } from './child-process.ts'
import type { ChildRecords } from './child-records.ts'
import { ConsoleHub } from './console-hub.ts'
import type { EmbeddedPcs } from './embedded-pcs.ts'
import type { InsideCommands } from './inside-commands.ts'
import type { Panels } from './panels.ts'
import type { Runner } from './runner.ts'

const lastWordsBytes = 2048
const defaultReadyMs = 10_000
/** Time after the start in which the `failure` text counts, ms. */
const failureMs = 3000

interface Unit {
  readonly run: number
  readonly spec: UnitSpec
  readonly hub: ConsoleHub
  readonly runner: Runner
  isStopping: boolean
  isHeld: boolean
  exit: Exit | null
  /** Resolves after the exit, when the clean-up is done. */
  readonly over: Promise<Exit>
}

/** The running emulators, and ended ones until `unit.forget`. */
export class Units {
  readonly #units = new Map<string, Unit>()
  readonly #serial = new KeyedMutex()
  readonly #records: ChildRecords
  readonly #pcs: EmbeddedPcs
  readonly #panels: Panels
  /**
   * Starts at the time of day, so that runs of other keepers have other numbers. A service may handle an exit when another keeper
   * already runs the node.
   */
  #runs = Date.now()
  readonly #onExit: (key: string, run: number, exit: Exit) => void

  readonly #packetSwitch: Switch

  constructor(
    records: ChildRecords,
    pcs: EmbeddedPcs,
    packetSwitch: Switch,
    panels: Panels,
    onExit: (key: string, run: number, exit: Exit) => void,
  ) {
    this.#records = records
    this.#pcs = pcs
    this.#packetSwitch = packetSwitch
    this.#panels = panels
    this.#onExit = onExit
  }

  get running(): number {
    return [...this.#units.values()].filter(({ exit }) => exit === null).length
  }

  list(): UnitState[] {
    return [...this.#units].map(([key, { runner, run, hub, exit, isHeld }]) => ({
      key,
      pid: runner.pid,
      run,
      console: hub.listen,
      is_held: isHeld,
      telnet_clients: hub.telnetClients,
      exit,
    }))
  }

  start(spec: UnitSpec): Promise<{ pid: number; run: number }> {
    return this.#serial.run(spec.key, async () => {
      if (this.#units.get(spec.key)?.exit === null) throw new KeeperError('exists', `${spec.key} is already running`)
      this.#units.delete(spec.key)
      const { runner, run } = await this.#start(spec)
      return { pid: runner.pid, run }
    })
  }

  /** Resolves when all processes of the unit have ended. Deletes its record. */
  stop(key: string, graceMs: number): Promise<{ exit: Exit | null }> {
    return this.#serial.run(key, async () => {
      const unit = this.#units.get(key)
      if (unit === undefined) return { exit: null }
      if (unit.exit === null) {
        unit.isStopping = true
        await unit.runner.stop(graceMs)
      }
      const exit = await unit.over
      if (this.#units.get(key) === unit) this.#units.delete(key)
      return { exit }
    })
  }

  forget(key: string): void {
    if (this.#units.get(key)?.exit != null) this.#units.delete(key)
  }

  /** The console of a running unit; `not_running`. */
  hub(key: string): ConsoleHub {
    return this.#running(key).hub
  }

  /** Resizes the terminal that is the console of a running unit, or that of a further command. `not_running`, `unsupported`. */
  resize(key: string, size: TerminalSize, terminal: string | undefined): void {
    if (terminal !== undefined) return this.inside(key).resize(terminal, size)
    const { runner } = this.#running(key)
    if (runner.resize === undefined) throw new KeeperError('unsupported', `the console of ${key} has no size`)
    runner.resize(size)
  }

  /** The scroll-back of a unit, also of an ended one; `not_running` for an unknown key. */
  consoleLog(key: string): Buffer {
    return (this.#units.get(key) ?? this.#running(key)).hub.shown
  }

  /** Limits the processor time of a running unit until it ends; 0: no limit. `not_running`, `unsupported`. */
  limit(key: string, percent: number): Promise<void> {
    return this.#serial.run(key, async () => this.#running(key).runner.limit(percent))
  }

  /** Pauses or resumes a running unit. `not_running`, `unsupported`. */
  hold(key: string, isHeld: boolean): Promise<void> {
    return this.#serial.run(key, async () => {
      const unit = this.#running(key)
      if (unit.isHeld === isHeld) return
      unit.runner.hold(isHeld)
      unit.isHeld = isHeld
    })
  }

  /** Changes a running bridge in place. `not_running`, `unsupported`. */
  configure(key: string, run: BridgeSpec): Promise<void> {
    return this.#serial.run(key, async () => {
      const { runner } = this.#running(key)
      if (runner.configure === undefined) throw new KeeperError('unsupported', `${key} is not a bridge`)
      await runner.configure(run)
    })
  }

  /** The key, when its unit runs; `not_running`. */
  requireRunning(key: string): string {
    return this.#running(key).spec.key
  }

  /** Runs further commands in the namespaces of a running unit. `not_running`, `unsupported`. */
  inside(key: string): InsideCommands {
    const { inside } = this.#running(key).runner
    if (inside === undefined) throw new KeeperError('unsupported', `${key} runs no further commands`)
    return inside
  }

  async stopAll(graceMs: number): Promise<void> {
    await Promise.all([...this.#units.keys()].map((key) => this.stop(key, graceMs)))
  }

  #running(key: string): Unit {
    const unit = this.#units.get(key)
    if (unit === undefined || unit.exit !== null) throw new KeeperError('not_running', `${key} is not running`)
    return unit
  }

  async #start(spec: UnitSpec): Promise<Unit> {
    let runner: Runner | undefined
    let shown: () => void = () => {}
    let looked: () => void = () => {}
    const hub = new ConsoleHub(
      (bytes) => runner?.input(bytes) ?? { isTaken: true },
      (isWaiting) => runner?.wait?.(isWaiting),
    )
    const output = (bytes: Uint8Array) => {
      hub.output(bytes)
      shown()
      looked()
    }
    // Earlier runs have written to the same log.
    const log = spec.run.type === 'process' ? await stat(spec.run.log).catch(() => undefined) : undefined
    const logStart = log?.size ?? 0
    // Binds the port first, because a failure then needs no undo.
    await hub.setListen(spec.console ?? null)
    const panel = spec.run.type === 'process' && spec.run.panel && (await this.#panels.open(spec.run.panel))
    try {
      runner = await this.#run(spec, output, panel || undefined)
    } catch (error) {
      hub.close()
      throw error
    }
    // Before its end is watched, which unbinds them: a program may end at once.
    const failure =
      runner instanceof ChildProcessRunner && spec.run.type === 'process' && spec.run.taps !== undefined
        ? await bindTaps(this.#packetSwitch, spec.run.taps, runner.taps, panel || undefined)
        : undefined
    const unit = this.#watch(spec, hub, runner, logStart)
    this.#units.set(spec.key, unit)
    try {
      if (runner.pid > 0) this.#records.add(spec.key, runner.leader ?? runner.pid)
    } catch (cause) {
      // Without a record the process would be lost if the keeper is killed.
      await this.#abandon(unit)
      throw new KeeperError('spawn_failed', `${spec.key} cannot be recorded: ${(cause as Error).message}`, { cause })
    }
    if (failure !== undefined) {
      const { last_words } = await this.#abandon(unit)
      throw new KeeperError('spawn_failed', last_words || failure)
    }
    if (spec.run.type === 'process' && spec.run.failure !== undefined) {
      const { failure } = spec.run
      const until = performance.now() + failureMs
      looked = () => {
        if (performance.now() > until) looked = () => {}
        else if (hub.shown.includes(failure)) {
          looked = () => {}
          void unit.runner.stop(0)
        }
      }
      looked()
    }
    if (spec.run.type === 'process' && spec.run.ready !== undefined) {
      const { ready, ready_ms = defaultReadyMs } = spec.run
      const failure = await becomesReady(unit, ready, ready_ms, (listener) => {
        shown = listener
      })
      if (failure !== undefined) {
        const { last_words } = await this.#abandon(unit)
        throw new KeeperError('spawn_failed', `${spec.run.command} ${failure}${last_words && `: ${last_words}`}`)
      }
    }
    return unit
  }

  /** Ends a unit whose start failed. */
  async #abandon(unit: Unit): Promise<Exit> {
    unit.isStopping = true
    await unit.runner.stop(1000)
    const exit = await unit.over
    this.#units.delete(unit.spec.key)
    return exit
  }

  async #run({ key, run }: UnitSpec, output: (bytes: Uint8Array) => void, panel?: Panel): Promise<Runner> {
    if (run.type === 'bridge') return BridgeRunner.start(key, run, this.#packetSwitch)
    if (run.type === 'pc') return this.#pcs.start(run, output)
    return run.type === 'attached' ? new AttachedRunner(run, output) : ChildProcessRunner.start(run, output, panel)
  }

  #watch(spec: UnitSpec, hub: ConsoleHub, runner: Runner, logStart: number): Unit {
    const unit: Unit = {
      run: ++this.#runs,
      spec,
      hub,
      runner,
      isStopping: false,
      isHeld: false,
      exit: null,
      over: runner.ended.then(async ({ code, signal }) => {
        if (runner.pid > 0) this.#records.remove(spec.key)
        for (const { port } of (spec.run.type === 'process' && spec.run.taps) || [])
          await this.#packetSwitch.unbindTap(port).catch(ignore('the unit has ended in any case'))
        const last_words = await lastWords(spec, hub, logStart)
        const exit: Exit = { code, signal, requested: unit.isStopping, last_words }
        hub.close()
        unit.exit = exit
        this.#onExit(spec.key, unit.run, exit)
        return exit
      }),
    }
    return unit
  }
}

/** Gives the ports of a unit the descriptors that its program handed over. Returns the failure, if any; then none is left open. */
async function bindTaps(
  lan: Switch,
  taps: NonNullable<ProcessSpec['taps']>,
  handed: ReadonlyMap<string, number>,
  panel: Panel | undefined,
): Promise<string | undefined> {
  const left = new Map(handed)
  try {
    const missing = taps.find(({ name }) => !left.has(name))
    if (missing !== undefined) return `the program handed over no device ${missing.name}`
    for (const { name, port } of taps) {
      await lan.bindTap(port, left.get(name) as number, panel)
      left.delete(name)
    }
    return undefined
  } catch (error) {
    return (error as Error).message
  } finally {
    for (const descriptor of left.values()) closeSync(descriptor)
  }
}

/** Waits for the text on the console, the exit or the timeout. Returns the failure, if any. */
async function becomesReady(
  unit: Unit,
  text: string,
  timeoutMs: number,
  onOutput: (listener: () => void) => void,
): Promise<string | undefined> {
  if (unit.hub.shown.includes(text)) return undefined
  const settled = new Promise<string | undefined>((resolve) => {
    onOutput(() => {
      if (unit.hub.shown.includes(text)) resolve(undefined)
    })
    void unit.over.then(({ code, signal }) => resolve(`ended at once (${signal ?? `exit code ${code}`})`))
  })
  try {
    return await withTimeout(settled, timeoutMs, () => `was not ready after ${timeoutMs} ms`)
  } finally {
    onOutput(() => {})
  }
}

/**
 * The last output of the unit. A program whose terminal is not the console writes its errors to the log, not to the guest's
 * console.
 */
async function lastWords({ run }: UnitSpec, hub: ConsoleHub, logStart: number): Promise<string> {
  const shown = printable(hub.shown)
  if (run.type !== 'process' || (run.stdio === 'pty' && shown !== '')) return shown
  return printable(await endOfChildLog(run.log, logStart, lastWordsBytes)) || shown
}

const printable = (bytes: Buffer): string =>
  bytes
    .subarray(-lastWordsBytes)
    .toString('utf8')
    .replace(/\r/g, '')
    .replace(/[^\n\t\x20-\x7e\u00a0-\uffff]/g, '')
    .trim()
