import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Writable } from 'node:stream'
import type { ConsoleReplay, ConsoleStream } from '../../../../src/host-agent.ts'
import { onAbort } from '../../../../src/lib/async/abort.ts'
import { conflict, notFound } from '../../../../src/lib/errors/api-error.ts'
import { webStream } from '../../os/system/web-stream.ts'
import type { PortAllocator } from '../ports/allocator.ts'
import type { EngineNode } from './engine-node.ts'
import { type KeeperLink, keeperErrorCode } from './keeper-link.ts'
import type { ConsoleListeners } from './listening.ts'
import { consolePool } from './record.ts'

/** Timeout for a connection to this host, ms. */
const connectMs = 5000

export interface ConsolesOptions {
  readonly keeper: KeeperLink
  readonly ports: PortAllocator
  readonly listening: ConsoleListeners
  /** Address on which emulators listen for VNC and SPICE clients. */
  readonly consoleHost: string
}

/** The consoles of nodes. Callers hold the lock of the node, except for opening a console. */
export class Consoles {
  readonly #options: ConsolesOptions
  /** Console connections of HTTP clients, by node key. */
  readonly #sockets = new Map<string, Set<Socket>>()

  constructor(options: ConsolesOptions) {
    this.#options = options
  }

  /** The scroll-back, or its last lines, unless `replay` is false, then live output; 409. */
  async open(
    node: EngineNode,
    signal: AbortSignal,
    { name, terminal, ...shown }: ConsoleReplay,
  ): Promise<ConsoleStream> {
    const { key, kind } = node
    if (name === undefined) requireText(node)
    const words = name === undefined ? undefined : wordsOf(kind.consoleWords?.(node, name), { node, name })
    try {
      const socket =
        words === undefined
          ? await this.#options.keeper.attach('console.attach', { key, ...shown })
          : await this.#options.keeper.attach('console.run', {
              key,
              words: [...words],
              ...(terminal !== undefined && { terminal }),
            })
      return this.#streams(node, socket, signal)
    } catch (error) {
      const code = keeperErrorCode(error)
      if (code === 'not_running') throw stopped(error)
      if (words === undefined || code === undefined || code === 'no_answer') throw error
      const why = code === 'unsupported' ? 'the node was started by an earlier version' : (error as Error).message
      throw conflict(`The console ${name} cannot be opened: ${why}`, { cause: error })
    }
  }

  /** The scroll-back; empty when the keeper has none. 409. */
  async log(node: EngineNode): Promise<Uint8Array> {
    requireText(node)
    const { key } = node
    // A call would start a keeper.
    if (node.status === 'stopped' && !this.#options.keeper.isUp) return new Uint8Array()
    const { text } = await this.#options.keeper.call('console.log', { key }).catch((error: unknown) => {
      if (keeperErrorCode(error) === 'not_running') return { text: '' }
      throw error
    })
    return Buffer.from(text, 'base64')
  }

  /** Telnet clients of the consoles of these nodes. */
  async telnetClients(nodes: readonly EngineNode[]): Promise<number> {
    // A call would start a keeper.
    if (!this.#options.keeper.isUp) return 0
    const keys = new Set(nodes.map(({ key }) => key))
    const { units } = await this.#options.keeper.inventory()
    return units.reduce((sum, { key, telnet_clients = 0 }) => sum + (keys.has(key) ? telnet_clients : 0), 0)
  }

  /** A connection to the VNC server of the node; 409. */
  async screen(node: EngineNode, signal: AbortSignal): Promise<ConsoleStream> {
    const { console_type } = node.record
    const port = node.kind.screenPort?.(node) ?? (console_type === 'vnc' ? node.record.console : null)
    if (port === null) {
      const why =
        node.kind.screenPort === undefined
          ? `its console_type is ${console_type}`
          : 'enable_remote_console is off, or was set after its start'
      throw conflict(`The node has no VNC screen: ${why}`)
    }
    if (node.status === 'stopped') throw stopped()
    const socket = connect({ port, host: reachable(this.#options.consoleHost) })
    try {
      await once(socket, 'connect', { signal: AbortSignal.any([signal, AbortSignal.timeout(connectMs)]) })
    } catch (cause) {
      socket.destroy()
      throw conflict(`The screen of the node cannot be reached: ${(cause as Error).message}`, { cause })
    }
    socket.setNoDelay(true)
    return this.#streams(node, socket, signal)
  }

  /** Disconnects every console client of a running node, and listens for new ones. 409. */
  async reset(node: EngineNode): Promise<void> {
    if (node.status === 'stopped') throw stopped()
    for (const socket of this.#sockets.get(node.key) ?? []) socket.destroy()
    await this.#options.listening.reset(node)
  }

  #streams({ key }: EngineNode, socket: Socket, signal: AbortSignal): ConsoleStream {
    const sockets = this.#sockets.get(key) ?? new Set()
    this.#sockets.set(key, sockets.add(socket))
    socket.once('close', () => {
      sockets.delete(socket)
      if (sockets.size === 0 && this.#sockets.get(key) === sockets) this.#sockets.delete(key)
    })
    return streams(socket, signal)
  }

  /** Allocates the console of a new node: the wanted port, or another one. Returns a message for the user if the port differs. */
  async give(node: EngineNode, wanted: number | undefined): Promise<string | undefined> {
    const { record, owner } = node
    const { ports } = this.#options
    const pool = consolePool(record)
    const reason = pool === undefined || wanted === undefined ? undefined : ports.refusal(pool, owner, wanted)
    record.console = pool === undefined ? null : await ports.allocate(pool, owner, wanted)
    if (record.console === null || wanted === undefined || record.console === wanted) return undefined
    return `${record.name}: console ${reason ?? `port ${wanted} is in use by another program`}; it is now ${record.console}`
  }

  /**
   * Allocates the console port for the node's console type and the wanted port; returns the port that becomes free. 409 when
   * `isExact` and the wanted port is not available; otherwise another port is used, and `report` gets a message for the user.
   */
  async change(
    node: EngineNode,
    wanted: number | undefined,
    { typeBefore, isExact, report }: { typeBefore: string; isExact: boolean; report: (message: string) => void },
  ): Promise<number | undefined> {
    const { record } = node
    const before = record.console
    const isSameType = record.console_type === typeBefore
    const isKept = before !== null && (wanted === undefined || wanted === before)
    if (isSameType && (isKept || record.console_type === 'none')) return undefined
    if (record.console_type !== 'telnet' && node.status !== 'stopped')
      throw conflict('console: stop the node first', { code: 'node-running' })
    const pool = consolePool(record)
    if (isExact && pool !== undefined && wanted !== undefined) {
      await this.#options.ports.reserve(pool, node.owner, wanted)
      record.console = wanted
    } else {
      const message = await this.give(node, wanted)
      if (message !== undefined) report(message)
    }
    await this.#options.listening.apply(node)
    return before ?? undefined
  }

  /** Has the keeper listen as in the record, after a change was undone. */
  async undone(node: EngineNode): Promise<void> {
    await this.#options.listening.apply(node)
  }
}

/** The command of another console of a node; 404. */
function wordsOf(
  words: readonly string[] | undefined,
  { node, name }: { readonly node: EngineNode; readonly name: string },
): readonly string[] {
  if (words !== undefined) return words
  throw notFound(`${node.record.name} has no console ${name.slice(0, 64)}`)
}

/** 409 unless the console of a node has text. */
function requireText({ record: { console, console_type } }: EngineNode): void {
  if (console_type === 'none') throw conflict('The node has no console: its console_type is none')
  if (console_type === 'vnc') throw conflict('The console of the node is a screen: use .../console/vnc')
  if (console_type !== 'telnet')
    throw conflict(`The console of the node speaks ${console_type}: connect a client to port ${console}`)
}

/** The address to connect to; loopback for a wildcard address. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  return host === '::' ? '::1' : host
}

function streams(socket: Socket, signal: AbortSignal): ConsoleStream {
  onAbort(signal, () => socket.destroy())
  if (signal.aborted) socket.destroy()
  return { readable: webStream(socket), writable: Writable.toWeb(socket) }
}

const stopped = (cause?: unknown) =>
  conflict('The node is not running: start it first', { code: 'node-stopped', cause })
