import { conflict } from '../../../src/errors.ts'
import type { Happening } from '../../../src/model/event.ts'
import { KeeperError } from '../keeper/error.ts'
import type { Exit, Listen, UnitSpec } from '../keeper/protocol.ts'
import type { PortAllocator } from '../ports/allocator.ts'
import { type KeeperLink, refusal } from './keeper-link.ts'
import type { LabNode } from './lab-node.ts'
import type { Links } from './links.ts'

export interface LifeCycleOptions {
  readonly keeper: KeeperLink
  readonly ports: PortAllocator
  readonly links: Links
  readonly consoleHost: string
  readonly emit: (node: LabNode, happening: Happening) => void
}

/** Start, stop and what happens by itself, the same for every kind. Callers hold the lock of the node. */
export class LifeCycle {
  readonly #options: LifeCycleOptions

  constructor(options: LifeCycleOptions) {
    this.#options = options
  }

  /** A node that runs is left alone. 409 with the reason when it cannot run; it is then stopped, as before. */
  async start(node: LabNode): Promise<void> {
    if (node.status !== 'stopped') return
    try {
      const wires = await this.#options.links.wires(node)
      const { run, command_line } = await node.kind.launch(node, wires)
      node.record.command_line = command_line
      node.record.status_reason = null
      node.record.running = true
      const [started] = await Promise.all([this.#run(node, run), node.save()])
      node.run = started.run
    } catch (error) {
      // It may run although its record could not be written.
      await this.#options.keeper.call('unit.stop', { key: node.key, grace_ms: node.kind.stopGraceMs }).catch(() => {})
      node.record.running = false
      node.record.status_reason = (error as Error).message.slice(0, 2000)
      await node.save().catch(() => {})
      if (error instanceof KeeperError) throw conflict(error.message, { cause: error })
      throw error
    }
    node.status = 'started'
    this.#options.emit(node, node.updated('started'))
  }

  /** Resolves when everything of it has ended; a stopped node is left alone. */
  async stop(node: LabNode): Promise<void> {
    if (node.status === 'stopped') return
    const { stopGraceMs } = node.kind
    await this.#options.keeper.call('unit.stop', { key: node.key, grace_ms: stopGraceMs }, stopGraceMs + 10_000)
    node.record.running = false
    // A disk that is full must not keep a node running; the next service would only find it stopped without a reason.
    await node.save().catch(() => {})
    this.#stopped(node)
  }

  /** The unit ended without being asked to: the same clean-up as a stop, and the reason is kept. */
  async exited(node: LabNode, run: number, { code, signal, last_words }: Exit): Promise<void> {
    if (node.run !== run || node.status === 'stopped') return
    await this.#options.keeper.call('unit.forget', { key: node.key }).catch(() => {})
    const isQuiet = code === 0
    node.record.running = false
    const how = signal === null ? `exit code ${code}` : `signal ${signal}`
    node.record.status_reason = isQuiet ? null : `The program ended by itself (${how})${last(last_words)}`
    await node.save().catch(() => {})
    this.#stopped(node)
    if (!isQuiet) {
      const message = `${node.record.name}: the program ended by itself (${how})${last(last_words)}`
      this.#options.emit(node, { type: 'log.error', message })
    }
  }

  /** The node is known not to run any more. */
  async lost(node: LabNode, reason: string): Promise<void> {
    if (node.status === 'stopped') return
    node.record.running = false
    node.record.status_reason = reason
    await node.save().catch(() => {})
    this.#stopped(node)
  }

  /** Moves, opens or closes the console of a node that runs. */
  async listen(node: LabNode): Promise<void> {
    if (node.status === 'stopped') return
    try {
      await this.#options.keeper.call('console.listen', { key: node.key, listen: this.#listenOf(node) ?? null })
    } catch (error) {
      if (refusal(error) === 'port_taken')
        throw conflict(`console: ${(error as Error).message}`, { cause: error as Error })
      // It has just ended by itself; the next start listens there.
      if (refusal(error) !== 'not_running') throw error
    }
  }

  async #run(node: LabNode, run: UnitSpec['run']): Promise<{ run: number }> {
    const start = () => {
      const listen = this.#listenOf(node)
      return this.#options.keeper.call('unit.start', {
        key: node.key,
        run,
        ...(listen !== undefined && { console: listen }),
      })
    }
    try {
      return await start()
    } catch (error) {
      if (refusal(error) === 'exists') {
        // A run that nobody here knows of, left by a service that was killed at the wrong moment.
        await this.#options.keeper.call('unit.stop', { key: node.key, grace_ms: node.kind.stopGraceMs })
        return start()
      }
      if (refusal(error) !== 'port_taken' || node.record.console === null) throw error
      return this.#onAnotherPort(node, node.record.console, start)
    }
  }

  /** Another program took the console port while the node was stopped: the node gets a new one, and its user is told. */
  async #onAnotherPort(node: LabNode, before: number, start: () => Promise<{ run: number }>): Promise<{ run: number }> {
    const console = await this.#options.ports.allocate('console', node.owner)
    this.#options.ports.release('console', before, node.owner)
    node.record.console = console
    const message = `${node.record.name}: console port ${before} is in use by another program; it is ${console} now`
    const started = await start()
    await node.save()
    this.#options.emit(node, { type: 'log.warning', message })
    return started
  }

  #listenOf(node: LabNode): Listen | undefined {
    const { console, console_type } = node.record
    return console === null || console_type !== 'telnet'
      ? undefined
      : { host: this.#options.consoleHost, port: console }
  }

  #stopped(node: LabNode): void {
    node.status = 'stopped'
    node.run = undefined
    this.#options.emit(node, node.updated('stopped'))
  }
}

/** The last lines of what a program said. */
function last(words: string): string {
  const lines = words.split('\n').filter((line) => line.trim() !== '')
  return lines.length === 0 ? '' : `: ${lines.slice(-3).join(' / ').slice(-500)}`
}
