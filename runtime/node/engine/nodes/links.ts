import { isIP } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import type { NioOrigin, PortRef } from '../../../../src/host-agent.ts'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { ApiError, badRequest, conflict, notFound } from '../../../../src/lib/errors/api-error.ts'
import type { EventPayload } from '../../../../src/model/event.ts'
import type { Filters } from '../../../../src/model/schema/filters.ts'
import type { Nio, NioChange, NioState, NioView, UdpNio } from '../../../../src/model/schema/nio.ts'
import { compileFilters } from '../../dataplane/filters/compile.ts'
import type { PortReport, SwitchNio, SwitchPortState } from '../../keeper/protocol/protocol.ts'
import { allowedInterfaces, type InterfaceRules, requireAllowed } from '../../os/host/allowed-interfaces.ts'
import type { PortAllocator } from '../ports/allocator.ts'
import { isUdpFree } from '../ports/bind-test.ts'
import { type DirectLinks, takenOver } from './direct-links.ts'
import type { EngineNode } from './engine-node.ts'
import { ignoreCode, type KeeperLink, keeperErrorCode } from './keeper-link.ts'
import type { PortWire } from './kind.ts'
import { lineOfPort } from './line.ts'
import { nothingPassed, stateOf } from './nio-state.ts'
import { hasCarrier } from './record.ts'
import { resolveHost } from './resolve-host.ts'
import {
  lportOf,
  ownerOf,
  parsePortName,
  portKey,
  portName,
  requireNio,
  requirePort,
  type Slot,
  slotOf,
} from './slots.ts'
import { type PeerRules, requirePeer } from './udp-peers.ts'
import { bridgePortOf, PortWirer } from './wiring.ts'

export interface LinksOptions {
  readonly keeper: KeeperLink
  readonly ports: PortAllocator
  readonly direct: DirectLinks
  readonly interfaces: () => InterfaceRules
  /** The setting udp_peers. */
  readonly udpPeers: () => readonly string[]
  readonly emit: (node: EngineNode, payload: EventPayload) => void
}

/** The ports of nodes, and their NIOs. Callers hold the lock of the node. */
export class Links {
  readonly #keeper: KeeperLink
  readonly #ports: PortAllocator
  readonly #direct: DirectLinks
  readonly #wiring: PortWirer
  readonly #interfaces: () => InterfaceRules
  readonly #udpPeers: () => readonly string[]
  readonly #emit: (node: EngineNode, payload: EventPayload) => void

  constructor({ keeper, ports, direct, interfaces, udpPeers, emit }: LinksOptions) {
    this.#keeper = keeper
    this.#ports = ports
    this.#direct = direct
    this.#wiring = new PortWirer({ keeper, ports, emit })
    this.#interfaces = interfaces
    this.#udpPeers = udpPeers
    this.#emit = emit
  }

  /**
   * Attaches or replaces a NIO; emits a warning about a replaced one. 404 for a missing port or device, 400 for an unknown host or a
   * wrong filter, 403 for a device or a host that is not allowed, 409 when the local port or the device is taken.
   */
  async attach(node: EngineNode, port: PortRef, nio: Nio, origin: NioOrigin = 'client'): Promise<Nio> {
    const before = node.record.ports[portName(port)]?.nio ?? null
    const attached = await this.#attach(node, port, nio, origin)
    if (before === null || isDeepStrictEqual(before, attached)) return attached
    const where = `${node.record.name}: the NIO of adapter ${port.adapter}, port ${port.port}`
    const message = `${where} (${described(before)}) was replaced by ${described(attached)}`
    this.#emit(node, { type: 'log.warning', message })
    return attached
  }

  async #attach(node: EngineNode, port: PortRef, nio: Nio, origin: NioOrigin): Promise<Nio> {
    const name = requirePort(node, port)
    if (!node.kind.descriptor.nioTypes.includes(nio.type))
      throw badRequest(`type: nodes of kind ${node.record.kind} do not support ${nio.type}`)
    await node.kind.wiring?.requireFree?.(node, port)
    const slot = slotOf(node, name)
    const keepsPeer = slot.nio?.type === 'nio_udp' && nio.type === 'nio_udp' && hasSamePeer(slot.nio, nio)
    const isOwnLink = origin === 'service' || (keepsPeer && slot.is_own_link === true)
    const wanted = await this.#resolve(node, name, nio, { isOwnLink, isKnown: keepsPeer })
    const before = lportOf(slot.nio)
    const lport = lportOf(nio)
    const owner = ownerOf(node, name)
    const holder = lport === undefined ? undefined : this.#ports.ownerOfUdp(lport)
    if (lport !== undefined && holder === undefined) await this.#requireUsable(lport)
    if (lport !== undefined) this.#ports.claimUdp(lport, owner)
    try {
      await this.#wiring.open(node, name, slot)
      await this.#connect(node, name, wanted)
    } catch (error) {
      if (lport !== undefined) this.#giveBack(lport, owner, holder)
      throw error
    }
    if (slot.nio?.type === 'nio_link') await this.#direct.detach(node, slot.nio, takenOver(node, name))
    slot.nio = nio
    if (isOwnLink) slot.is_own_link = true
    else delete slot.is_own_link
    if (before !== undefined && before !== lport) await this.#giveUp(node, name, before)
    if (node.kind.wiring?.lineOf !== undefined) slot.line = lineOfPort(node, port)
    await node.save()
    await this.#showCarrier(node, port)
    return nio
  }

  /** 409 for a local port that the service did not allocate, except for a free port in local mode. */
  async #requireUsable(lport: number): Promise<void> {
    const reason = this.#ports.refusal('udp', '', lport)
    if (reason === undefined || (this.#interfaces().isLocal && (await isUdpFree(lport)))) return
    const more = this.#interfaces().isLocal ? ', and another program uses it' : ''
    throw conflict(`lport: ${reason}${more}; POST .../ports/udp reserves a free one`, { code: 'port-taken' })
  }

  /** Throws 400 for filters that a NIO of the port cannot have, 404 for a missing port. */
  checkFilters(node: EngineNode, port: PortRef, filters: Filters): void {
    requirePort(node, port)
    compileFilters(filters, lineOfPort(node, port))
  }

  /** 404 when nothing is attached. */
  async update(node: EngineNode, port: PortRef, changes: NioChange): Promise<Nio> {
    const attached = requireNio(node, requirePort(node, port))
    if (changes.type === undefined || changes.type === attached.type) {
      if (attached.type === 'nio_link')
        throw conflict(
          `The port is joined by the link ${attached.link_id}: change that, or attach a NIO to take the port over`,
        )
      return this.#attach(node, port, { ...attached, ...changes } as Nio, 'client')
    }
    const { suspend, filters = undefined } = { filters: undefined, ...attached }
    const kept = { ...(suspend !== undefined && { suspend }), ...(filters !== undefined && { filters }) }
    return this.#attach(node, port, { ...kept, ...changes } as Nio, 'client')
  }

  /** 404 when nothing is attached. */
  async detach(node: EngineNode, port: PortRef): Promise<void> {
    const name = requirePort(node, port)
    const nio = requireNio(node, name)
    if (nio.type === 'nio_link') {
      return this.#direct.detach(
        node,
        nio,
        `The NIO of ${node.record.name}, port ${name}, was deleted: join the link again`,
      )
    }
    const lport = lportOf(nio)
    await this.#keeper.call('nio.detach', { key: portKey(node, name) }).catch(ignoreCode('unknown_key'))
    const slot = slotOf(node, name)
    slot.nio = null
    delete slot.is_own_link
    if (lport !== undefined) await this.#giveUp(node, name, lport)
    await node.save()
    await this.#showCarrier(node, port)
  }

  /** The NIO of a port with the state of its link. Attaches a missing link again. 404. */
  async state(node: EngineNode, port: PortRef): Promise<NioState> {
    const name = requirePort(node, port)
    const nio = requireNio(node, name)
    try {
      return { ...nio, ...stateOf(await this.#attached(node, name, nio, true)) }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      const link = error.status === 409 ? 'port_taken' : 'peer_unreachable'
      return { ...nio, link, link_reason: error.message, ...nothingPassed }
    }
  }

  /** The name of a port, whose NIO is attached; 404, 409 without one. */
  async requireLinked(node: EngineNode, port: PortRef): Promise<string> {
    const name = requirePort(node, port)
    const nio = node.record.ports[name]?.nio
    if (nio == null) throw conflict('Nothing is attached to the port: attach a NIO first', { code: 'nothing-attached' })
    await this.#attached(node, name, nio, false)
    return name
  }

  /** The switch's report on a link, which is attached again when it is missing; `fresh`: after a new check. */
  async #attached(node: EngineNode, name: string, nio: NioView, fresh: boolean): Promise<PortReport> {
    const known = await this.#report(node, name, fresh)
    if (known !== undefined && known.link !== null) return known
    await this.#reattach(node, name, slotOf(node, name), nio)
    const report = await this.#report(node, name, fresh)
    if (report === undefined) throw conflict('The keeper of the port has just ended; try again')
    return report
  }

  /** undefined when the switch does not have the port. */
  async #report(node: EngineNode, name: string, fresh: boolean): Promise<PortReport | undefined> {
    const key = portKey(node, name)
    const { ports } = await this.#keeper.call('port.report', { key, fresh }).catch((error: unknown) => {
      if (keeperErrorCode(error) !== 'unknown_key') throw error
      return { ports: [] }
    })
    return ports[0]
  }

  /** Attaches the NIO of the record: claims its ports and wires the port. */
  async #reattach(node: EngineNode, name: string, slot: Slot, nio: NioView): Promise<void> {
    if (nio.type === 'nio_link') {
      await this.#wiring.open(node, name, slot)
      return this.#direct.joinPorts(node.project, nio.link_id)
    }
    const lport = lportOf(nio)
    if (lport !== undefined) this.#ports.claimUdp(lport, ownerOf(node, name))
    await this.#wiring.open(node, name, slot)
    await this.#connect(node, name, await this.#resolveStored(node, name, nio))
  }

  /** Wires every port for a start, and attaches its NIO. */
  async wires(node: EngineNode): Promise<Map<string, PortWire>> {
    await this.#keeper.leaveOlder(node.key)
    await this.prune(node)
    await this.#wiring.claimIdentity(node)
    const wires = new Map<string, PortWire>()
    for (const port of node.kind.ports(node)) {
      const name = portName(port)
      // A switch has up to 1024 ports: those that nothing is linked to need not be open.
      if (bridgePortOf(node, name) !== undefined && node.record.ports[name]?.nio == null) continue
      const slot = slotOf(node, name)
      // If another program took the port meanwhile, the node gets another one.
      if (slot.guest_port !== null && !(await this.#isFree(node, slot.guest_port)))
        this.#wiring.release(node, name, slot)
      const wire = await this.#wiring.open(node, name, slot)
      if (slot.nio?.type === 'nio_link') await this.#direct.joinPorts(node.project, slot.nio.link_id)
      else if (slot.nio !== null) await this.#connect(node, name, await this.#resolveStored(node, name, slot.nio))
      wires.set(name, wire)
    }
    return wires
  }

  async #isFree(node: EngineNode, port: number): Promise<boolean> {
    for (const distance of [0, ...(node.kind.wiring?.portsBeside?.(node, false) ?? [])])
      if (!(await isUdpFree(port + distance))) return false
    return true
  }

  /** Makes the next start of a node use other UDP ports. */
  changePorts(node: EngineNode): void {
    for (const [name, slot] of Object.entries(node.record.ports)) this.#wiring.release(node, name, slot)
  }

  /** Attaches the NIOs of the record again, after a restart. Returns messages about failures. */
  async restore(node: EngineNode): Promise<string[]> {
    if (!this.#keeper.isChangeable(node.key)) return []
    await this.prune(node)
    const failures: string[] = []
    for (const [name, slot] of Object.entries(node.record.ports)) {
      if (slot.nio === null) continue
      try {
        // The port of a node that does not run joins when it is opened.
        if (slot.nio.type === 'nio_link' && node.status === 'stopped')
          await this.#direct.joinPorts(node.project, slot.nio.link_id)
        else await this.#reattach(node, name, slot, slot.nio)
      } catch (error) {
        failures.push(`The link of ${node.record.name}, port ${name}, is not attached: ${(error as Error).message}`)
      }
    }
    return failures
  }

  /** Takes over the ports of a running node from the keeper; returns whether the record has changed. */
  adopt(node: EngineNode, found: readonly SwitchPortState[]): boolean {
    let isChanged = false
    for (const { key, guest_port } of found) {
      const slot = slotOf(node, key.slice(node.key.length + 1))
      if (!(guest_port > 0) || slot.guest_port === guest_port) continue
      // The running guest uses this port.
      slot.guest_port = guest_port
      isChanged = true
    }
    for (const [name, { guest_port, nio }] of Object.entries(node.record.ports)) {
      const beside = node.kind.wiring?.portsBeside?.(node, true) ?? []
      if (guest_port !== null) this.#ports.adopt('udp', guest_port, ownerOf(node, name), beside)
      const lport = lportOf(nio)
      if (lport !== undefined) this.#ports.adopt('udp', lport, ownerOf(node, name))
    }
    return isChanged
  }

  /** Detaches the NIOs of ports that the node no longer has, or that have another line type now. Closes the ports of a stopped node. */
  async prune(node: EngineNode): Promise<void> {
    const { record } = node
    const there = new Map(node.kind.ports(node).map((port) => [portName(port), lineOfPort(node, port)]))
    const gone = Object.entries(record.ports).filter(
      ([name, { line }]) => !there.has(name) || (line !== undefined && line !== there.get(name)),
    )
    // People know the links that the service made by the names of their ports: the lab tells of them.
    const lost = gone
      .filter(([, { nio, is_own_link }]) => nio !== null && nio.type !== 'nio_link' && is_own_link !== true)
      .map(([name]) => name)
    for (const [name, slot] of gone) {
      const owner = ownerOf(node, name)
      const lport = lportOf(slot.nio)
      if (lport !== undefined) await this.#giveUp(node, name, lport)
      if (slot.nio?.type === 'nio_link')
        await this.#direct.detach(
          node,
          slot.nio,
          `${record.name} no longer has the port ${name}: give it back, or remove the link`,
        )
      if (node.status === 'stopped') {
        await this.#keeper.call('port.close', { key: portKey(node, name) }).catch(reconciledLater)
        this.#ports.releaseAll(owner)
        delete record.ports[name]
      } else {
        await this.#keeper.call('nio.detach', { key: portKey(node, name) }).catch(reconciledLater)
        slot.nio = null
        delete slot.is_own_link
        delete slot.line
        await this.#showCarrier(node, parsePortName(name))
      }
    }
    // A full disk is not an error here: the next start prunes again.
    if (gone.length > 0) await node.saveOrTell()
    if (lost.length === 0) return
    const message = `${record.name}: its adapters have changed, and the NIOs of ${lost.join(', ')} were removed`
    this.#emit(node, { type: 'log.warning', message })
  }

  /** Detaches links in the keeper that are not in the record: the service did not wait for the answer to an attach or detach. */
  async reconcile(node: EngineNode, found: readonly SwitchPortState[]): Promise<void> {
    if (!this.#keeper.isChangeable(node.key)) return
    for (const { key, nio } of found) {
      const isKnown = node.record.ports[key.slice(node.key.length + 1)]?.nio != null
      if (nio != null && !isKnown) await this.#keeper.call('nio.detach', { key }).catch(reconciledLater)
    }
  }

  /** Closes the ports of a node that is closed or deleted. */
  async release(node: EngineNode): Promise<void> {
    // A killed service may have opened ports that are not in the record.
    const names = new Set([...Object.keys(node.record.ports), ...node.kind.ports(node).map(portName)])
    const close = (name: string) => this.#keeper.call('port.close', { key: portKey(node, name) }).catch(reconciledLater)
    await Promise.all([...names].map(close))
  }

  /** A NIO of the record, which was judged when it was attached. */
  #resolveStored(node: EngineNode, name: string, nio: Nio): Promise<SwitchNio> {
    return this.#resolve(node, name, nio, { isOwnLink: slotOf(node, name).is_own_link === true, isKnown: true })
  }

  /**
   * The NIO in the form of the keeper protocol. The address of a UDP link is judged unless it is known (`isKnown`); that of a name is
   * judged each time, because a name may lead elsewhere the next time.
   */
  async #resolve(
    node: EngineNode,
    name: string,
    nio: Nio,
    { isOwnLink, isKnown }: { readonly isOwnLink: boolean; readonly isKnown: boolean },
  ): Promise<SwitchNio> {
    const filters = compileFilters(nio.filters, lineOfPort(node, parsePortName(name)))
    const stages = { suspend: nio.suspend ?? false, filters }
    if (nio.type === 'nio_udp') {
      const { lport, rport, rhost } = nio
      const address = await resolveHost(rhost)
      if (!isKnown || isIP(rhost) === 0)
        requirePeer({ address, port: rport }, { projectId: node.projectId, isOwnLink }, this.#peerRules())
      return { type: 'udp', lport, rport, rhost: address, ...stages }
    }
    const { field, device } = deviceOf(nio)
    requireAllowed(field, device, this.#interfaces())
    return { type: nio.type === 'nio_tap' ? 'tap' : 'ethernet', device, ...stages }
  }

  #peerRules(): PeerRules {
    return { isLocal: this.#interfaces().isLocal, networks: this.#udpPeers(), ports: this.#ports }
  }

  async #connect(node: EngineNode, name: string, nio: SwitchNio): Promise<void> {
    try {
      await this.#keeper.call('nio.attach', { key: portKey(node, name), nio })
    } catch (error) {
      throw this.#refused(nio, error as Error)
    }
  }

  /** The error of the switch in the form for clients. */
  #refused(nio: SwitchNio, cause: Error): Error {
    const udpField = keeperErrorCode(cause) === 'bad_request' ? 'rhost' : 'lport'
    const deviceField = nio.type === 'tap' ? 'tap_device' : 'ethernet_device'
    const message = `${nio.type === 'udp' ? udpField : deviceField}: ${cause.message}`
    switch (keeperErrorCode(cause)) {
      case 'bad_request':
        return badRequest(message, { cause })
      case 'no_device': {
        const names = allowedInterfaces(this.#interfaces()).map((it) => it.name)
        return notFound(`${message}; the host has ${names.join(', ')}`, { cause })
      }
      case 'port_taken':
        return conflict(message, { code: 'port-taken', cause })
      case 'no_privilege':
      case 'unsupported':
        return conflict(message, { cause })
      case undefined:
        return cause
      default:
        return conflict(`${message}; try again`, { cause })
    }
  }

  async #showCarrier(node: EngineNode, port: PortRef): Promise<void> {
    if (node.status !== 'stopped' && node.record.ports[portName(port)]?.nio == null)
      await node.kind.wiring?.disconnect?.(node, port)
    if (node.status !== 'stopped') await node.kind.control?.setCarrier(node, port, hasCarrier(node.record, port))
  }

  /** Frees the local port of a removed NIO, and its reservation for the project. */
  async #giveUp(node: EngineNode, name: string, lport: number): Promise<void> {
    this.#ports.release('udp', lport, ownerOf(node, name))
    await node.project.forgetUdpPorts([lport]).catch((error: unknown) => node.unsaved(error))
  }

  #giveBack(port: number, owner: string, before: string | undefined): void {
    if (before === owner) return
    this.#ports.release('udp', port, owner)
    if (before !== undefined) this.#ports.adopt('udp', port, before)
  }
}

/** Links that the keeper has beyond the record are removed by `reconcile`. */
const reconciledLater = ignore('the keeper does not answer, or has ended: `reconcile` runs when it answers again')

/** A NIO as text. */
const described = (nio: NioView): string =>
  nio.type === 'nio_link'
    ? `link ${nio.link_id}`
    : nio.type === 'nio_udp'
      ? `UDP port ${nio.lport} to ${nio.rhost}:${nio.rport}`
      : `${nio.type} ${deviceOf(nio).device}`

const hasSamePeer = (a: UdpNio, b: UdpNio): boolean => a.rhost === b.rhost && a.rport === b.rport

const deviceOf = (nio: Exclude<Nio, UdpNio>): { field: string; device: string } =>
  nio.type === 'nio_tap'
    ? { field: 'tap_device', device: nio.tap_device }
    : { field: 'ethernet_device', device: nio.ethernet_device }
