import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { ReadStream } from 'node:tty'
import { SerialQueue } from '../../../../src/lib/async/serial-queue.ts'
import { withTimeout } from '../../../../src/lib/async/timeout.ts'
import type { TerminalSize } from '../../../../src/model/schema/console-size.ts'
import type { Panel } from '../../dataplane/cable/panel.ts'
import { startProgram } from '../../os/programs/start.ts'
import { findProgram } from '../../os/system/find-program.ts'
import { openPty } from '../../os/system/pty.ts'
import { signalGroup } from '../../os/system/signal-group.ts'
import { KeeperError } from '../protocol/error.ts'
import type { ProcessSpec } from '../protocol/protocol.ts'
import { openChildLog } from './child-log.ts'
import { CpuLimit } from './cpu-limit.ts'
import { openGuestSockets } from './guest-sockets.ts'
import { DescriptorChannel } from './handed-descriptors.ts'
import { HandedTerminal } from './handed-terminal.ts'
import { type InputTaken, InputWindow } from './input-window.ts'
import { InsideCommands } from './inside-commands.ts'
import { LineEnds } from './line-ends.ts'
import type { Runner, UnitEnd } from './runner.ts'
import { ServedConsole } from './served-console.ts'
import { endOfWrapped, said, WrappedProgram } from './wrapped.ts'

// The kernel kills the child when the keeper ends (PR_SET_PDEATHSIG). setpriv executes the program, which keeps the pid.
const setpriv = ['/usr/bin/setpriv', '/bin/setpriv'].find((path) => existsSync(path))
const withDeathSignal = (command: string, args: readonly string[]): [string, readonly string[]] =>
  setpriv === undefined ? [command, args] : [setpriv, ['--pdeathsig', 'KILL', '--', command, ...args]]

/** Timeout of the start of a cell, ms: less than what the service waits for it. */
const longestWrapMs = 20_000

const ctrlC = 3

/** One child and its whole process group. */
export class ChildProcessRunner implements Runner {
  readonly pid: number
  readonly leader: number
  readonly ended: Promise<UnitEnd>
  /** The descriptors of its TAP devices, by their names; the caller closes them. */
  readonly taps: ReadonlyMap<string, number>
  /** Runs further commands in its namespaces, if it has some. */
  readonly inside: InsideCommands | undefined
  readonly #wrapped: WrappedProgram | undefined
  readonly #console: Writable | undefined
  readonly #limit: CpuLimit
  readonly #typed = new InputWindow()
  readonly #interrupts: boolean
  readonly #served: ServedConsole | undefined
  #isOver = false
  #isHeld = false
  #stopping: Promise<UnitEnd> | undefined

  private constructor(
    child: ChildProcess,
    ended: Promise<UnitEnd>,
    console: Writable | undefined,
    wrapped: WrappedProgram | undefined,
    interrupts: boolean,
    served: ServedConsole | undefined,
    taps: ReadonlyMap<string, number>,
    inside: InsideCommands | undefined,
  ) {
    this.taps = taps
    this.inside = inside
    this.#interrupts = interrupts
    this.#served = served
    this.leader = child.pid ?? 0
    this.pid = wrapped?.pid ?? this.leader
    this.#wrapped = wrapped
    this.ended = ended
    this.#console = console
    this.#limit = new CpuLimit(this.pid, this.leader)
    // Before the output has been read: another process may get the pid.
    child.once('exit', () => this.#runFreely())
  }

  /** Resolves when the kernel has accepted the program; `spawn_failed` when it cannot be started. */
  static async start(
    spec: ProcessSpec,
    output: (bytes: Uint8Array) => void,
    panel?: Panel,
  ): Promise<ChildProcessRunner> {
    const descriptors: number[] = []
    let terminal: ReadStream | undefined
    let channel: DescriptorChannel | undefined
    await starts.run(() => setImmediate())
    try {
      // setpriv always starts, so a missing program must be found before.
      const named = spec.command.includes('/') ? resolve(spec.cwd, spec.command) : spec.command
      if (findProgram(named, spec.env?.PATH) === undefined) throw new Error('no such program')
      const log = openChildLog(spec.log)
      descriptors.push(log)
      const pty = spec.stdio === 'pty' && spec.console_at === undefined ? openPty() : undefined
      if (pty !== undefined) {
        descriptors.push(pty.slave)
        terminal = new ReadStream(pty.master)
      }
      const isWrapped = spec.is_wrapped === true
      const sockets = openGuestSockets(spec.sockets ?? [])
      descriptors.push(...sockets)
      channel = spec.taps === undefined ? undefined : DescriptorChannel.open()
      if (channel !== undefined) descriptors.push(channel.theirs)
      // A wrapper asks for the death signal itself.
      const [command, args] = isWrapped ? [spec.command, spec.args] : withDeathSignal(spec.command, spec.args)
      const child = startProgram(command, args, {
        cwd: spec.cwd,
        ...(spec.env !== undefined && { set: spec.env }),
        detached: true,
        stdio: [
          ...(pty !== undefined
            ? [pty.slave, pty.slave, pty.slave]
            : spec.console_at !== undefined
              ? ['ignore' as const, 'ignore' as const, log]
              : spec.stdio === 'pipe'
                ? ['pipe' as const, 'pipe' as const, log]
                : ['ignore' as const, log, log]),
          ...(isWrapped ? ['pipe' as const] : sockets.length > 0 ? ['ignore' as const] : []),
          ...(channel === undefined ? sockets : [channel.theirs, ...(panel?.descriptors ?? [])]),
        ],
      })
      const streams = terminal === undefined ? [child.stdout, child.stdin] : [terminal]
      // A pty master reads EIO when the last process has closed the terminal.
      for (const stream of streams) stream?.on('error', () => stream.destroy())
      const lineEnds = new LineEnds()
      const shown = (bytes: Buffer) => output(lineEnds.complete(bytes))
      const source = terminal ?? child.stdout
      source?.on('data', terminal === undefined ? output : shown)
      const sources: Source[] = [source]
      const ended = exitOfChild(child, sources, isWrapped)
      await once(child, 'spawn')
      const begin = isWrapped ? child.stdio[3] : null
      if (begin != null && !(await said(begin as Readable, longestWrapMs))) {
        if (child.pid !== undefined) signalGroup(child.pid, 'SIGKILL')
        throw new Error(`it has not begun within ${longestWrapMs / 1000} s`)
      }
      const wrapped = begin == null ? undefined : WrappedProgram.of(child.pid ?? 0)
      const handed = channel?.take() ?? new Map<string, number>()
      const own = terminalIn(handed)
      if (own !== undefined) sources.push(own.on('data', shown))
      const inside = channel && new InsideCommands(channel)
      channel = undefined
      void ended.then(() => inside?.close())
      return new ChildProcessRunner(
        child,
        ended,
        own ?? terminal ?? child.stdin ?? undefined,
        wrapped,
        spec.interrupts ?? false,
        spec.console_at && new ServedConsole(spec.console_at, output),
        handed,
        inside,
      )
    } catch (cause) {
      terminal?.destroy()
      throw new KeeperError('spawn_failed', `${spec.command} cannot be started: ${(cause as Error).message}`, { cause })
    } finally {
      for (const descriptor of descriptors) closeSync(descriptor)
      channel?.close()
    }
  }

  input(bytes: Uint8Array): InputTaken {
    if (this.#served !== undefined) return this.#served.input(bytes)
    const console = this.#console
    if (!console?.writable) return { isTaken: false }
    const taken = this.#typed.send(console, bytes)
    if (this.#interrupts && bytes.includes(ctrlC) && !this.#isOver) signalGroup(this.leader, 'SIGINT')
    return taken
  }

  resize(size: TerminalSize): void {
    if (!(this.#console instanceof HandedTerminal)) throw new KeeperError('unsupported', 'its console has no size')
    this.#console.resize(size)
  }

  hold(isHeld: boolean): void {
    if (this.#isOver) throw new KeeperError('not_running', 'the program has ended')
    // The limit would resume it.
    if (isHeld) this.#limit.lift()
    this.#isHeld = isHeld
    signalGroup(this.leader, isHeld ? 'SIGSTOP' : 'SIGCONT')
  }

  limit(percent: number): void {
    if (this.#isOver) throw new KeeperError('not_running', 'the program has ended')
    this.#limit.set(percent)
  }

  stop(graceMs: number): Promise<UnitEnd> {
    this.#stopping ??= this.#stop(graceMs)
    return this.#stopping
  }

  async #stop(graceMs: number): Promise<UnitEnd> {
    if (this.#wrapped === undefined) signalGroup(this.leader, 'SIGTERM')
    else this.#wrapped.signal('SIGTERM')
    // Exiting takes processor time, and a stopped process does not handle the signal.
    this.#runFreely()
    const timer = setTimeout(() => signalGroup(this.leader, 'SIGKILL'), graceMs)
    const ending = await this.ended
    clearTimeout(timer)
    return ending
  }

  #runFreely(): void {
    this.#isOver = true
    this.inside?.close()
    this.#served?.close()
    this.#limit.lift()
    if (this.#isHeld) signalGroup(this.leader, 'SIGCONT')
    this.#isHeld = false
  }
}

/**
 * Gives each start a turn of the event loop of its own. A fork blocks the process, on a slow host for 0.1 s and more: between those of a whole
 * lab the keeper answers, and is not taken for hung.
 */
const starts = new SerialQueue()

/** What is shown on the console of a program. */
type Source = Readable | ReadStream | null

/** The terminal of a program in namespaces of its own, which hands it over under this name. */
function terminalIn(handed: Map<string, number>): HandedTerminal | undefined {
  const master = handed.get('console')
  if (master === undefined) return undefined
  handed.delete('console')
  // If it is no terminal, the program runs on without it.
  return HandedTerminal.of(master)
}

/** The end of the process, after its last output was read; a grandchild that holds the pipe does not delay it. */
async function exitOfChild(child: ChildProcess, sources: readonly Source[], isWrapped: boolean): Promise<UnitEnd> {
  const ending = await new Promise<UnitEnd>((resolve) => {
    child.once('exit', (code, signal) => {
      // The leader may leave children behind.
      if (child.pid !== undefined) signalGroup(child.pid, 'SIGKILL')
      resolve(isWrapped ? endOfWrapped({ code, signal }) : { code, signal })
    })
    child.once('error', () => resolve({ code: null, signal: null }))
  })
  for (const source of sources) {
    if (source === null || source.destroyed || !source.readable) continue
    const closed = new Promise<void>((resolve) => source.once('close', resolve))
    await withTimeout(closed, 50, () => {})
    source.destroy()
  }
  return ending
}
