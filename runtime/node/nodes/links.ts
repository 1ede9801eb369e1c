import { isDeepStrictEqual } from 'node:util'
import { ignore } from '../../../src/async/ignore.ts'
import { ApiError, badRequest, conflict, notFound } from '../../../src/errors/api-error.ts'
import type { PortRef } from '../../../src/host-agent.ts'
import type { EventPayload } from '../../../src/model/event.ts'
import type { Nio, NioState, ShownNio, UdpNio } from '../../../src/schema/nio.ts'
import { compileFilters } from '../filters/compile.ts'
import { allowedInterfaces, type InterfaceRules, requireAllowed } from '../host/allowed-interfaces.ts'
import type { PortReport, SwitchNio, SwitchPortState } from '../keeper-protocol/protocol.ts'
import type { PortWire } from '../kinds/kind.ts'
import type { PortAllocator } from '../ports/allocator.ts'
import { isUdpFree } from '../ports/bind-test.ts'
import { type DirectLinks, takenOver } from './direct-links.ts'
import { type KeeperLink, keeperErrorCode } from './keeper-link.ts'
import type { LabNode } from './lab-node.ts'
import { lineOfPort } from './line.ts'
import { nothingPassed, stateOf } from './nio-state.ts'
import { hasCarrier } from './record.ts'
import { refuseLinkLocal, resolveHost } from './resolve-host.ts'
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
import { Wiring } from './wiring.ts'

export interface LinksOptions {
  readonly keeper: KeeperLink
  readonly ports: PortAllocator
  readonly direct: DirectLinks
  readonly interfaces: () => InterfaceRules
  readonly emit: (node: LabNode, payload: EventPayload) => void
}

/** The ports of nodes and what is attached to them. Callers hold the lock of the node. */
export class Links {
  readonly #keeper: KeeperLink
  readonly #ports: PortAllocator
  readonly #direct: DirectLinks
  readonly #wiring: Wiring
  readonly #interfaces: () => InterfaceRules
  readonly #emit: (node: LabNode, payload: EventPayload) => void

  constructor({ keeper, ports, direct, interfaces, emit }: LinksOptions) {
    this.#keeper = keeper
    this.#ports = ports
    this.#direct = direct
    this.#wiring = new Wiring({ keeper, ports, emit })
    this.#interfaces = interfaces
    this.#emit = emit
  }

  /**
   * Attaches or replaces. 404 for a missing port or device, 400 for a host that is not known or a filter that is wrong, 403 for
   * a device that is not allowed, 409 when the local port or the device is taken. What it replaces is told of.
   */
  async attach(node: LabNode, port: PortRef, nio: Nio): Promise<Nio> {
    const before = node.record.ports[portName(port)]?.nio ?? null
    const attached = await this.#attach(node, port, nio)
    if (before === null || isDeepStrictEqual(before, attached)) return attached
    const what = `${node.record.name}: what was attached to adapter ${port.adapter}, port ${port.port}`
    const message = `${what} (${described(before)}) is replaced by ${described(attached)}`
    this.#emit(node, { type: 'log.warning', message })
    return attached
  }

  async #attach(node: LabNode, port: PortRef, nio: Nio): Promise<Nio> {
    const name = requirePort(node, port)
    if (!node.kind.descriptor.nioTypes.includes(nio.type))
      throw badRequest(`type: nodes of kind ${node.record.kind} do not take ${nio.type}`)
    await node.kind.wiring?.requireFree?.(node, port)
    const wanted = await this.#resolve(node, name, nio)
    const slot = slotOf(node, name)
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
    if (before !== undefined && before !== lport) await this.#giveUp(node, name, before)
    if (node.kind.wiring?.lineOf !== undefined) slot.line = lineOfPort(node, port)
    await node.save()
    await this.#showCarrier(node, port)
    return nio
  }

  /** 409 for a local port that is none of ours to give: in local mode a user may take one that is free. */
  async #requireUsable(lport: number): Promise<void> {
    const reason = this.#ports.refusal('udp', '', lport)
    if (reason === undefined || (this.#interfaces().isLocal && (await isUdpFree(lport)))) return
    throw conflict(
      `lport: ${reason}${this.#interfaces().isLocal ? ', and another program has it' : ''}; POST .../ports/udp gives a free one`,
      { word: 'port-taken' },
    )
  }

  /** 404 when nothing is attached. */
  async update(node: LabNode, port: PortRef, nio: Nio): Promise<Nio> {
    const { suspend, filters = undefined } = { filters: undefined, ...requireNio(node, requirePort(node, port)) }
    // What a change does not name keeps its value.
    const kept = { ...(suspend !== undefined && { suspend }), ...(filters !== undefined && { filters }) }
    return this.#attach(node, port, { ...kept, ...nio })
  }

  /** 404 when nothing is attached. */
  async detach(node: LabNode, port: PortRef): Promise<void> {
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
    await this.#keeper.call('nio.detach', { key: portKey(node, name) }).catch((error: unknown) => {
      if (keeperErrorCode(error) !== 'unknown_key') throw error
    })
    slotOf(node, name).nio = null
    if (lport !== undefined) await this.#giveUp(node, name, lport)
    await node.save()
    await this.#showCarrier(node, port)
  }

  /** What is attached with the state of its link. A link that could not be attached again is tried once more. 404. */
  async state(node: LabNode, port: PortRef): Promise<NioState> {
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

  /** The name of a port on which something is attached; 404, 409. */
  async requireLinked(node: LabNode, port: PortRef): Promise<string> {
    const name = requirePort(node, port)
    const nio = node.record.ports[name]?.nio
    if (nio == null) throw conflict('Nothing is attached to the port: attach a NIO first', { word: 'nothing-attached' })
    await this.#attached(node, name, nio, false)
    return name
  }

  /** What the switch says of a link, which is attached again when it is not there; `fresh`: after another look at it. */
  async #attached(node: LabNode, name: string, nio: ShownNio, fresh: boolean): Promise<PortReport> {
    const known = await this.#report(node, name, fresh)
    if (known !== undefined && known.link !== null) return known
    await this.#reattach(node, name, slotOf(node, name), nio)
    const report = await this.#report(node, name, fresh)
    if (report === undefined) throw conflict('The port has just gone with the process that held it; try again')
    return report
  }

  /** undefined when the switch does not have the port. */
  async #report(node: LabNode, name: string, fresh: boolean): Promise<PortReport | undefined> {
    const key = portKey(node, name)
    const { ports } = await this.#keeper.call('port.report', { key, fresh }).catch((error: unknown) => {
      if (keeperErrorCode(error) !== 'unknown_key') throw error
      return { ports: [] }
    })
    return ports[0]
  }

  /** Claims and wires what the record says is attached. */
  async #reattach(node: LabNode, name: string, slot: Slot, nio: ShownNio): Promise<void> {
    if (nio.type === 'nio_link') {
      await this.#wiring.open(node, name, slot)
      return this.#direct.place(node.project, nio.link_id)
    }
    const lport = lportOf(nio)
    if (lport !== undefined) this.#ports.claimUdp(lport, ownerOf(node, name))
    await this.#wiring.open(node, name, slot)
    await this.#connect(node, name, await this.#resolve(node, name, nio))
  }

  /** Makes sure that every port is wired for a start; what is attached comes along. */
  async wires(node: LabNode): Promise<Map<string, PortWire>> {
    await this.#keeper.bring(node.key)
    await this.prune(node)
    await this.#wiring.claimIdentity(node)
    const wires = new Map<string, PortWire>()
    for (const port of node.kind.ports(node)) {
      const name = portName(port)
      const slot = slotOf(node, name)
      if (slot.guest_port !== null && !(await this.#isFree(node, slot.guest_port))) {
        // Somebody else has it by now; the guest is not running, so another one will do.
        this.#wiring.release(node, name, slot)
      }
      const wire = await this.#wiring.open(node, name, slot)
      if (slot.nio?.type === 'nio_link') await this.#direct.place(node.project, slot.nio.link_id)
      else if (slot.nio !== null) await this.#connect(node, name, await this.#resolve(node, name, slot.nio))
      wires.set(name, wire)
    }
    return wires
  }

  async #isFree(node: LabNode, port: number): Promise<boolean> {
    for (const distance of [0, ...(node.kind.wiring?.portsBeside?.(node, false) ?? [])])
      if (!(await isUdpFree(port + distance))) return false
    return true
  }

  /** Has the next start of a node use other UDP ports: another program has one of these. */
  changePorts(node: LabNode): void {
    for (const [name, slot] of Object.entries(node.record.ports)) this.#wiring.release(node, name, slot)
  }

  /** After a restart: gives the node its ports back, and attaches again what was. The messages say what did not work. */
  async restore(node: LabNode): Promise<string[]> {
    if (!this.#keeper.isChangeable(node.key)) return []
    await this.prune(node)
    const failures: string[] = []
    for (const [name, slot] of Object.entries(node.record.ports)) {
      if (slot.nio === null) continue
      try {
        // The port of a node that does not run joins when it is opened.
        if (slot.nio.type === 'nio_link' && node.status === 'stopped')
          await this.#direct.place(node.project, slot.nio.link_id)
        else await this.#reattach(node, name, slot, slot.nio)
      } catch (error) {
        failures.push(`The link of ${node.record.name}, port ${name}, is not there: ${(error as Error).message}`)
      }
    }
    return failures
  }

  /** Takes the ports of a node whose guest runs, as they are in the keeper; whether the record is another now. */
  adopt(node: LabNode, found: readonly SwitchPortState[]): boolean {
    let isChanged = false
    for (const { key, guest_port } of found) {
      const slot = slotOf(node, key.slice(node.key.length + 1))
      if (!(guest_port > 0) || slot.guest_port === guest_port) continue
      // The guest has this one: with another it would be cut off.
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

  /**
   * Takes away what is attached to ports that the node does not have any more, or has for another line, and the ports too when
   * no guest has them.
   */
  async prune(node: LabNode): Promise<void> {
    const { record } = node
    const there = new Map(node.kind.ports(node).map((port) => [portName(port), lineOfPort(node, port)]))
    const gone = Object.entries(record.ports).filter(
      ([name, { line }]) => !there.has(name) || (line !== undefined && line !== there.get(name)),
    )
    const lost = gone.filter(([, { nio }]) => nio !== null).map(([name]) => name)
    for (const [name, slot] of gone) {
      const owner = ownerOf(node, name)
      const lport = lportOf(slot.nio)
      if (lport !== undefined) await this.#giveUp(node, name, lport)
      if (slot.nio?.type === 'nio_link')
        await this.#direct.detach(node, slot.nio, `${record.name} does not have port ${name} any more: remove the link`)
      if (node.status === 'stopped') {
        await this.#keeper
          .call('port.close', { key: portKey(node, name) })
          .catch(ignore('what the keeper has beyond the record is taken away when it answers again'))
        this.#ports.releaseAll(owner)
        delete record.ports[name]
      } else {
        await this.#keeper
          .call('nio.detach', { key: portKey(node, name) })
          .catch(ignore('what the keeper has beyond the record is taken away when it answers again'))
        slot.nio = null
        delete slot.line
        await this.#showCarrier(node, parsePortName(name))
      }
    }
    // A disk that is full must not undo what was done; a start prunes again.
    if (gone.length > 0) await node.saveOrTell()
    if (lost.length === 0) return
    const message = `${record.name}: its adapters have changed, and what was attached to ${lost.join(', ')} is removed`
    this.#emit(node, { type: 'log.warning', message })
  }

  /** Takes away what is attached in the keeper, and not by the record: the answer to it was not waited for. */
  async reconcile(node: LabNode, found: readonly SwitchPortState[]): Promise<void> {
    if (!this.#keeper.isChangeable(node.key)) return
    for (const { key, nio } of found) {
      const isKnown = node.record.ports[key.slice(node.key.length + 1)]?.nio != null
      if (nio != null && !isKnown)
        await this.#keeper
          .call('nio.detach', { key })
          .catch(ignore('what the keeper has beyond the record is taken away when it answers again'))
    }
  }

  /** Closes the ports of a node that goes. */
  async release(node: LabNode): Promise<void> {
    // A service that was killed may have opened more than the record says.
    const names = new Set([...Object.keys(node.record.ports), ...node.kind.ports(node).map(portName)])
    await Promise.all(
      [...names].map((name) =>
        this.#keeper
          .call('port.close', { key: portKey(node, name) })
          .catch(ignore('what the keeper has beyond the record is taken away when it answers again')),
      ),
    )
  }

  /** The NIO as the switch takes it. */
  async #resolve(node: LabNode, name: string, nio: Nio): Promise<SwitchNio> {
    const filters = compileFilters(nio.filters, lineOfPort(node, parsePortName(name)))
    const stages = { suspend: nio.suspend ?? false, filters }
    if (nio.type === 'nio_udp') {
      const { lport, rport, rhost } = nio
      const address = await resolveHost(rhost)
      if (!this.#interfaces().isLocal) refuseLinkLocal(address)
      return { type: 'udp', lport, rport, rhost: address, ...stages }
    }
    const { field, device } = deviceOf(nio)
    requireAllowed(field, device, this.#interfaces())
    return { type: nio.type === 'nio_tap' ? 'tap' : 'ethernet', device, ...stages }
  }

  async #connect(node: LabNode, name: string, nio: SwitchNio): Promise<void> {
    try {
      await this.#keeper.call('nio.attach', { key: portKey(node, name), nio })
    } catch (error) {
      throw this.#refused(nio, error as Error)
    }
  }

  /** The switch's refusal as the client is told it. */
  #refused(nio: SwitchNio, cause: Error): Error {
    const udpField = keeperErrorCode(cause) === 'bad_request' ? 'rhost' : 'lport'
    const deviceField = nio.type === 'tap' ? 'tap_device' : 'ethernet_device'
    const message = `${nio.type === 'udp' ? udpField : deviceField}: ${cause.message}`
    switch (keeperErrorCode(cause)) {
      case 'bad_request':
        return badRequest(message, { cause })
      case 'no_device': {
        const names = allowedInterfaces(this.#interfaces()).map((it) => it.name)
        return notFound(`${message}, there are ${names.join(', ')}`, { cause })
      }
      case 'port_taken':
        return conflict(message, { word: 'port-taken', cause })
      case 'no_privilege':
      case 'unsupported':
        return conflict(message, { cause })
      case undefined:
        return cause
      default:
        return conflict(`${message}; try again`, { cause })
    }
  }

  async #showCarrier(node: LabNode, port: PortRef): Promise<void> {
    if (node.status !== 'stopped') await node.kind.control?.setCarrier(node, port, hasCarrier(node.record, port))
  }

  /** The local port of a NIO that is gone is anybody's, also when it was reserved for the project. */
  async #giveUp(node: LabNode, name: string, lport: number): Promise<void> {
    this.#ports.release('udp', lport, ownerOf(node, name))
    await node.project.forgetUdpPorts([lport]).catch((error: unknown) => node.unsaved(error))
  }

  #giveBack(port: number, owner: string, before: string | undefined): void {
    if (before === owner) return
    this.#ports.release('udp', port, owner)
    if (before !== undefined) this.#ports.adopt('udp', port, before)
  }
}

/** A NIO, in words. */
const described = (nio: ShownNio): string =>
  nio.type === 'nio_link'
    ? `link ${nio.link_id}`
    : nio.type === 'nio_udp'
      ? `UDP port ${nio.lport} to ${nio.rhost}:${nio.rport}`
      : `${nio.type} ${deviceOf(nio).device}`

const deviceOf = (nio: Exclude<Nio, UdpNio>): { field: string; device: string } =>
  nio.type === 'nio_tap'
    ? { field: 'tap_device', device: nio.tap_device }
    : { field: 'ethernet_device', device: nio.ethernet_device }
