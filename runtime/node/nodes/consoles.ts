import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Writable } from 'node:stream'
import { conflict } from '../../../src/errors.ts'
import type { ConsoleStream } from '../../../src/host-agent.ts'
import type { PortAllocator } from '../ports/allocator.ts'
import { webStream } from '../web-stream.ts'
import { type KeeperLink, refusal } from './keeper-link.ts'
import type { LabNode } from './lab-node.ts'
import type { Listening } from './listening.ts'

/** What listens on the host itself answers within this, ms. */
const connectMs = 5000
/** VNC displays are counted from here (RFC 6143, appendix of the numbers in use). */
const firstVncPort = 5900

export interface ConsolesOptions {
  readonly keeper: KeeperLink
  readonly ports: PortAllocator
  readonly listening: Listening
  /** Where emulators let their screens be seen. */
  readonly consoleHost: string
}

/** The consoles of nodes. Callers hold the lock of the node, but for opening one. */
export class Consoles {
  readonly #options: ConsolesOptions

  constructor(options: ConsolesOptions) {
    this.#options = options
  }

  /** The scroll-back, then what is shown; 409. */
  async open(node: LabNode, signal: AbortSignal): Promise<ConsoleStream> {
    const { console_type } = node.record
    if (console_type === 'none') throw conflict('The node has no console: its console_type is none')
    if (console_type === 'vnc') throw conflict('The console of the node is a screen: use .../console/vnc')
    if (console_type !== 'telnet')
      throw conflict(
        `The console of the node speaks ${console_type}: use a client of it at port ${node.record.console}`,
      )
    try {
      return streams(await this.#options.keeper.attachConsole(node.key), signal)
    } catch (error) {
      if (refusal(error) === 'not_running')
        throw conflict('The node does not run: start it first', { cause: error as Error })
      throw error
    }
  }

  /** A connection to the VNC server of the node; 409. */
  async screen(node: LabNode, signal: AbortSignal): Promise<ConsoleStream> {
    const { console_type } = node.record
    const port = node.kind.screenPort?.(node) ?? (console_type === 'vnc' ? node.record.console : null)
    if (port === null) {
      const why =
        node.kind.screenPort === undefined
          ? `its console_type is ${console_type}`
          : 'enable_remote_console is off, or has been set since its start'
      throw conflict(`The node has no screen that speaks VNC: ${why}`)
    }
    if (node.status === 'stopped') throw conflict('The node does not run: start it first')
    const socket = connect({ port, host: reachable(this.#options.consoleHost) })
    try {
      await once(socket, 'connect', { signal: AbortSignal.any([signal, AbortSignal.timeout(connectMs)]) })
    } catch (cause) {
      socket.destroy()
      throw conflict(`The screen of the node cannot be reached: ${(cause as Error).message}`, { cause })
    }
    socket.setNoDelay(true)
    return streams(socket, signal)
  }

  /** A console for a new node. */
  async give(node: LabNode, wanted: number | undefined): Promise<void> {
    const pool = node.kind.consolePool(node.record.console_type)
    requireScreenPort(node, wanted)
    node.record.console = pool === undefined ? null : await this.#options.ports.allocate(pool, node.owner, wanted)
  }

  /** Gives the node the console that fits its type and the wish; the port that is then free again. 409. */
  async change(node: LabNode, wanted: number | undefined, typeBefore: string): Promise<number | undefined> {
    const { record } = node
    const before = record.console
    const isSameType = record.console_type === typeBefore
    const isKept = before !== null && (wanted === undefined || wanted === before)
    if (isSameType && (isKept || record.console_type === 'none')) return undefined
    if (record.console_type !== 'telnet' && node.status !== 'stopped') throw conflict('console: stop the node first')
    await this.give(node, wanted)
    await this.#options.listening.apply(node)
    return before ?? undefined
  }
}

function requireScreenPort({ record }: LabNode, wanted: number | undefined): void {
  if (record.console_type === 'vnc' && wanted !== undefined && wanted < firstVncPort)
    throw conflict(`console: a vnc console has port ${firstVncPort} or above, got ${wanted}`)
}

/** Where something that listens on every address can be reached from here. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  return host === '::' ? '::1' : host
}

function streams(socket: Socket, signal: AbortSignal): ConsoleStream {
  signal.addEventListener('abort', () => socket.destroy(), { once: true })
  if (signal.aborted) socket.destroy()
  return { readable: webStream(socket), writable: Writable.toWeb(socket) }
}
