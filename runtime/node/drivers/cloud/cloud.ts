import { isDeepStrictEqual } from 'node:util'
import { type Static, Type } from '@sinclair/typebox'
import type { PortRef } from '../../../../src/host-agent.ts'
import { ApiError, badRequest, conflict, notFound } from '../../../../src/lib/errors/api-error.ts'
import type { EventPayload } from '../../../../src/model/event.ts'
import {
  type CloudCreate,
  type CloudNode,
  CloudPort,
  type CloudUpdate,
  cloud,
} from '../../../../src/model/kinds/cloud.ts'
import { keeperErrorCode } from '../../engine/nodes/keeper-link.ts'
import type { KindNode, Launch, NodeKind, PortWiring } from '../../engine/nodes/kind.ts'
import { resolveHost } from '../../engine/nodes/resolve-host.ts'
import { requirePeer } from '../../engine/nodes/udp-peers.ts'
import { fieldsOf } from '../../engine/nodes/view-fields.ts'
import type { BridgeSpec, SwitchNio } from '../../keeper/protocol/protocol.ts'
import { allowedInterfaces, requireAllowed } from '../../os/host/allowed-interfaces.ts'
import { MappedPortsKind, mappingOf } from '../bridge/mapped-ports.ts'

/** Difference of the numbers of two paired ports of the bridge (`forwards: 'paired'`). */
const pairDistance = 2048

/** The properties in the record of a cloud. */
export type CloudProperties = Static<typeof CloudProperties>
export const CloudProperties = Type.Object({ ports_mapping: mappingOf(CloudPort, []) })
type CloudKindNode = KindNode<CloudProperties>

/**
 * The cloud kind. Every port is one half of a pair of ports of a bridge in the keeper. A device or a UDP tunnel is attached to the other
 * half, the uplink, while the cloud runs and its port is linked.
 */
export class CloudKind
  extends MappedPortsKind<CloudPort, CloudProperties>
  implements NodeKind<CloudProperties, typeof cloud>
{
  readonly descriptor = cloud
  readonly schema = CloudProperties

  override readonly wiring: PortWiring<CloudProperties> = {
    bridgePortOf: (_, { port }) => port,
    connect: (node, port) => this.#connect(node, port),
    disconnect: (node, port) => this.#disconnect(node, port.port),
  }

  readonly #interfaces = new ReadAhead(() =>
    allowedInterfaces(this.host.interfaces()).map(({ name, type, special }) => ({ name, type, special })),
  )

  view(node: CloudKindNode): CloudNode {
    return {
      ...fieldsOf(node),
      console_type: 'none',
      ports_mapping: node.record.properties.ports_mapping,
      interfaces: this.#interfaces.read(),
    }
  }

  /** Without `ports_mapping`: one port for every allowed device, except loopback and the like. */
  async prepare(node: CloudKindNode, { ports_mapping }: CloudCreate): Promise<void> {
    const devices = () => allowedInterfaces(this.host.interfaces()).filter(({ special }) => !special)
    const named = devices().map(({ name }, port_number) => ({
      name,
      port_number,
      type: 'ethernet' as const,
      interface: name,
    }))
    await this.update(node, { ports_mapping: ports_mapping ?? named })
  }

  async update(node: CloudKindNode, { ports_mapping }: CloudUpdate): Promise<void> {
    if (ports_mapping == null) return
    const before = node.record.properties.ports_mapping
    const given = ports_mapping.map((port) => ({ ...port, name: port.name ?? port.interface }))
    const ports = this.mapping(
      given.map(({ name, ...port }) => (name === undefined ? port : { ...port, name })),
      { type: 'ethernet' },
    )
    for (const port of ports) this.#requireWhole(port)
    await this.change(node, { ports_mapping: ports })
    if (node.status === 'stopped') return
    const changed = before.filter((port) => !ports.some((next) => isDeepStrictEqual(next, port)))
    for (const { port_number } of changed) await this.#disconnect(node, port_number)
    for (const { port_number } of ports) {
      const port = { adapter: 0, port: port_number }
      if (changed.some((it) => it.port_number === port_number) && isLinked(node, port)) await this.#connect(node, port)
    }
  }

  /** A port whose device cannot be opened is a warning; the other ports work. */
  override async launch(node: CloudKindNode): Promise<Launch> {
    const notices: EventPayload[] = []
    for (const port of this.ports(node)) {
      if (!isLinked(node, port)) continue
      await this.#connect(node, port).catch((error: unknown) => {
        if (!(error instanceof ApiError)) throw error
        notices.push({ type: 'log.warning', message: `${node.record.name}, port ${port.port}: ${error.message}` })
      })
    }
    return { ...(await super.launch(node)), notices }
  }

  onStarted(node: CloudKindNode, isNew: boolean): void {
    for (const port of isNew ? [] : this.ports(node)) {
      const { lport } = this.#mapped(node, port.port) ?? {}
      if (lport !== undefined && isLinked(node, port)) this.host.ports.adopt('udp', lport, ownerOf(node, port.port))
    }
  }

  async onExited(node: CloudKindNode): Promise<void> {
    for (const { port } of this.ports(node)) await this.#disconnect(node, port)
  }

  bridgeOf({ ports_mapping }: CloudProperties): BridgeSpec {
    const plain = { mode: 'access', vlan: 1, ethertype: 0x8100 } as const
    const numbers = ports_mapping.flatMap(({ port_number }) => [port_number, port_number + pairDistance])
    const ports = numbers.map((port_number) => ({ port_number, ...plain }))
    return { type: 'bridge', forwards: 'paired', ageing_s: 300, ports }
  }

  #mapped({ record }: CloudKindNode, port: number): CloudPort | undefined {
    return record.properties.ports_mapping.find(({ port_number }) => port_number === port)
  }

  /** 400 for a port without a field that its type needs, 403 for a device that is not allowed. */
  #requireWhole({ type, name, interface: device, lport, rhost, rport }: CloudPort): void {
    const needed = type === 'udp' ? { lport, rhost, rport } : { interface: device }
    const missing = Object.entries(needed).find(([, value]) => value === undefined)
    if (missing !== undefined) throw badRequest(`ports_mapping: the ${type} port ${name} needs ${missing[0]}`)
    if (device !== undefined) requireAllowed('interface', device, this.host.interfaces())
  }

  /** Attaches the device or the tunnel of a port to its uplink; 403, 404, 409. */
  async #connect(node: CloudKindNode, { port }: PortRef): Promise<void> {
    const mapped = this.#mapped(node, port)
    if (mapped === undefined) return
    this.#requireWhole(mapped)
    const { type, interface: device = '', lport = 0, rhost = '', rport = 0 } = mapped
    const stages = { suspend: false, filters: [] }
    let nio: SwitchNio = { type: type === 'tap' ? 'tap' : 'ethernet', device, ...stages }
    if (type === 'udp') {
      const address = await resolveHost(rhost)
      const rules = { isLocal: this.host.isLocal(), networks: this.host.udpPeers(), ports: this.host.ports }
      requirePeer({ address, port: rport }, { projectId: node.projectId, isOwnLink: false }, rules)
      this.host.ports.claimUdp(lport, ownerOf(node, port))
      nio = { type: 'udp', lport, rport, rhost: address, ...stages }
    }
    const key = uplinkOf(node, port)
    try {
      await this.host.keeper.call('port.open', { key, bridge_port: port + pairDistance })
      await this.host.keeper.call('nio.attach', { key, nio })
    } catch (error) {
      await this.#disconnect(node, port)
      throw refused(error as Error, type === 'udp' ? `UDP port ${lport}` : device)
    }
  }

  async #disconnect(node: CloudKindNode, port: number): Promise<void> {
    await this.host.keeper.call('port.close', { key: uplinkOf(node, port) })
    const { lport } = this.#mapped(node, port) ?? {}
    if (lport !== undefined) this.host.ports.release('udp', lport, ownerOf(node, port))
  }
}

const uplinkOf = ({ key }: CloudKindNode, port: number): string => `${key}/uplink/${port}`
const ownerOf = (node: CloudKindNode, port: number): string => `${node.projectId}/${uplinkOf(node, port)}`
const isLinked = ({ record }: CloudKindNode, { adapter, port }: PortRef): boolean =>
  record.ports[`${adapter}/${port}`]?.nio != null

function refused(cause: Error, what: string): Error {
  const message = `${what}: ${cause.message}`
  switch (keeperErrorCode(cause)) {
    case undefined:
      return cause
    case 'no_device':
      return notFound(message, { cause })
    case 'bad_request':
      return badRequest(message, { cause })
    default:
      return conflict(message, { cause })
  }
}

/** Age at which a list is read again, and the delay of that read, ms. */
const [staleMs, aheadMs] = [2000, 100]

/** Caches a list of the system. A read returns the cached list at once; an old one is renewed for later reads. */
class ReadAhead<T> {
  readonly #load: () => readonly T[]
  #list: readonly T[] | undefined
  #takenAt = 0
  #isPending = false

  constructor(load: () => readonly T[]) {
    this.#load = load
  }

  read(): T[] {
    if (this.#list === undefined) this.#refresh()
    else if (!this.#isPending && performance.now() - this.#takenAt > staleMs) {
      this.#isPending = true
      setTimeout(() => this.#refresh(), aheadMs).unref()
    }
    return [...(this.#list ?? [])]
  }

  #refresh(): void {
    this.#isPending = false
    this.#list = this.#load()
    this.#takenAt = performance.now()
  }
}
