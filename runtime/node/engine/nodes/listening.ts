import { conflict } from '../../../../src/lib/errors/api-error.ts'
import type { EventPayload } from '../../../../src/model/event.ts'
import type { Listen, UnitState } from '../../keeper/protocol/protocol.ts'
import type { PortAllocator } from '../ports/allocator.ts'
import { isTcpFree } from '../ports/bind-test.ts'
import type { EngineNode } from './engine-node.ts'
import { ignoreCode, type KeeperLink, keeperErrorCode } from './keeper-link.ts'
import { consolePool } from './record.ts'

export interface ListeningOptions {
  readonly keeper: KeeperLink
  readonly ports: PortAllocator
  readonly consoleHost: string
  /** Whether telnet clients get the scroll-back. */
  readonly replay: () => boolean
  readonly emit: (node: EngineNode, payload: EventPayload) => void
}

/** The listeners of the consoles of running nodes. Callers hold the lock of the node. */
export class ConsoleListeners {
  readonly #options: ListeningOptions

  constructor(options: ListeningOptions) {
    this.#options = options
  }

  /** The listen address of a console in the keeper; undefined for none. */
  of({ record: { console, console_type } }: EngineNode): Listen | undefined {
    return console === null || console_type !== 'telnet'
      ? undefined
      : { host: this.#options.consoleHost, port: console, ...(!this.#options.replay() && { replay: false }) }
  }

  /** Moves, opens or closes the console listener of a running node. */
  async apply(node: EngineNode): Promise<void> {
    if (node.status === 'stopped') return
    try {
      await this.#options.keeper.call('console.listen', { key: node.key, listen: this.of(node) ?? null })
    } catch (error) {
      if (keeperErrorCode(error) === 'port_taken')
        throw conflict(`console: ${(error as Error).message}`, { cause: error as Error })
      // The unit has just ended; the next start listens there.
      if (keeperErrorCode(error) !== 'not_running') throw error
    }
  }

  /** Disconnects the telnet clients of a running node, and listens at the same port. */
  async reset(node: EngineNode): Promise<void> {
    if (this.of(node) === undefined) return
    await this.#options.keeper.call('console.listen', { key: node.key, listen: null }).catch(ignoreCode('not_running'))
    const [problem] = await this.restore(node, { console: null })
    if (problem !== undefined) throw conflict(problem)
  }

  /**
   * Takes over the console of a running node: the listener of the keeper wins over the record. Returns whether the record has
   * changed.
   */
  adopt(node: EngineNode, { console: found, exit = null }: Pick<UnitState, 'console'> & Partial<UnitState>): boolean {
    const { record } = node
    const { ports } = this.#options
    const pool = consolePool(record)
    const before = record.console
    if (found !== null && exit === null && record.console_type === 'telnet') record.console = found.port
    if (record.console !== null) ports.adopt(pool ?? 'console', record.console, node.owner)
    return record.console !== before
  }

  /** Opens a missing listener of a running node. Returns messages about changes of the console. */
  async restore(node: EngineNode, { console: found }: Pick<UnitState, 'console'>): Promise<string[]> {
    const { console } = node.record
    if (console === null || found !== null || this.of(node) === undefined) return []
    try {
      await this.apply(node).catch(async () => {
        await this.move(node, console)
        await node.save()
        await this.apply(node)
      })
      return []
    } catch (error) {
      return [`The console of ${node.record.name} cannot be reached: ${(error as Error).message}`]
    }
  }

  /** Frees the port of a console that the emulator opens itself: the emulator exits if another program has the port. */
  async free(node: EngineNode): Promise<void> {
    const { console, console_type } = node.record
    if (console === null || console_type === 'telnet') return
    if (!(await isTcpFree(console, this.#options.consoleHost))) await this.move(node, console)
  }

  /** Another program took the console port while the node was stopped. Allocates a new port and informs the user. */
  async move(node: EngineNode, before: number): Promise<void> {
    const { ports } = this.#options
    const pool = consolePool(node.record) ?? 'console'
    node.record.console = await ports.allocate(pool, node.owner)
    ports.release(pool, before, node.owner)
    const { name, console } = node.record
    const message = `${name}: console port ${before} is in use by another program; it is now ${console}`
    this.#options.emit(node, { type: 'log.warning', message })
  }
}
