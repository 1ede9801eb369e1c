import { conflict } from '../../../../src/lib/errors/api-error.ts'
import type { EventPayload } from '../../../../src/model/event.ts'
import type { NetioPort, PortGuest } from '../../keeper/protocol/protocol.ts'
import type { PortAllocator } from '../ports/allocator.ts'
import type { EngineNode } from './engine-node.ts'
import { type KeeperLink, keeperErrorCode } from './keeper-link.ts'
import type { PortWire } from './kind.ts'
import { lineOfPort } from './line.ts'
import { ownerOf, parsePortName, portKey, type Slot } from './slots.ts'

/** Maximum number of tries for a free identity; other programs may take it first. */
const maxChanges = 8

export interface WiringOptions {
  readonly keeper: KeeperLink
  readonly ports: PortAllocator
  readonly emit: (node: EngineNode, payload: EventPayload) => void
}

/** The port of a bridge; undefined for nodes of other kinds. */
export const bridgePortOf = (node: EngineNode, name: string): number | undefined =>
  node.kind.wiring?.bridgePortOf?.(node, parsePortName(name))

/** Wires the ports of nodes to the switch. Callers hold the lock of the node. */
export class PortWirer {
  readonly #options: WiringOptions

  constructor(options: WiringOptions) {
    this.#options = options
  }

  /** Claims the identity of a node that is about to start, so that no other program has it. */
  async claimIdentity(node: EngineNode): Promise<void> {
    if (node.kind.identity?.isTaken(node)) await this.#changeIdentity(node)
  }

  /** Wires a port, unless it is wired. 409. */
  async open(node: EngineNode, name: string, slot: Slot): Promise<PortWire> {
    const netio = node.kind.wiring?.netioOf?.(node, parsePortName(name))
    if (netio !== undefined) return this.#openNetio(node, name, netio)
    if (node.kind.wiring?.isTap?.(node, parsePortName(name)) === true) return this.#openWith(node, name, { tap: true })
    const bridge_port = bridgePortOf(node, name)
    if (bridge_port !== undefined) {
      if (node.status !== 'stopped') await node.kind.wiring?.connect?.(node, parsePortName(name))
      return this.#openWith(node, name, { bridge_port })
    }
    const { ports } = this.#options
    const owner = ownerOf(node, name)
    const beside = node.kind.wiring?.portsBeside?.(node, node.status !== 'stopped') ?? []
    const isOurs = slot.guest_port !== null && (await this.#keeps(node, slot.guest_port, owner, beside))
    const guest_port =
      isOurs && slot.guest_port !== null ? slot.guest_port : await ports.allocateWith('udp', owner, beside)
    slot.guest_port = guest_port
    const is_serial = lineOfPort(node, parsePortName(name)) === 'serial'
    return this.#openWith(node, name, { guest_port, ...(is_serial && { is_serial }) })
  }

  /** Whether the node can keep a port with the ports bound beside it. A running program keeps its ports. */
  async #keeps(node: EngineNode, port: number, owner: string, beside: readonly number[]): Promise<boolean> {
    const { ports } = this.#options
    if (node.status !== 'stopped') {
      ports.adopt('udp', port, owner, beside)
      return true
    }
    if (!ports.adopt('udp', port, owner)) return false
    if (await ports.takeBeside('udp', owner, port, beside)) return true
    ports.release('udp', port, owner)
    return false
  }

  /** Releases the UDP ports of a stopped node; the next start uses new ones. */
  release(node: EngineNode, name: string, slot: Slot): void {
    if (slot.guest_port === null) return
    const { ports } = this.#options
    const owner = ownerOf(node, name)
    ports.releaseBeside('udp', owner, slot.guest_port, node.kind.wiring?.portsBeside?.(node, false) ?? [])
    ports.release('udp', slot.guest_port, owner)
    slot.guest_port = null
  }

  async #openNetio(node: EngineNode, name: string, netio: NetioPort, left = maxChanges): Promise<PortWire> {
    try {
      return await this.#openWith(node, name, { netio })
    } catch (error) {
      const isTaken = keeperErrorCode((error as Error).cause) === 'port_taken'
      const mayChange = node.status === 'stopped' && node.kind.identity !== undefined && left > 0
      if (!isTaken || !mayChange) throw error
    }
    await this.#changeIdentity(node)
    return this.#openNetio(node, name, node.kind.wiring?.netioOf?.(node, parsePortName(name)) ?? netio, left - 1)
  }

  async #openWith(node: EngineNode, name: string, guest: PortGuest): Promise<PortWire> {
    try {
      const { switch_port } = await this.#options.keeper.call('port.open', { key: portKey(node, name), ...guest })
      return { guest_port: 'guest_port' in guest ? guest.guest_port : 0, switch_port }
    } catch (cause) {
      if (keeperErrorCode(cause) === undefined) throw cause
      throw conflict(`The port cannot be wired: ${(cause as Error).message}`, { cause: cause as Error })
    }
  }

  async #changeIdentity(node: EngineNode): Promise<void> {
    const payload = node.kind.identity?.change(node)
    if (payload === undefined) return
    await node.saveOrTell()
    this.#options.emit(node, payload)
    this.#options.emit(node, node.updated())
  }
}
