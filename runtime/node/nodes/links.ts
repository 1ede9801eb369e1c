import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { badRequest, conflict, notFound } from '../../../src/errors.ts'
import type { PortRef } from '../../../src/host-agent.ts'
import type { Nio } from '../../../src/model/nio.ts'
import type { Wire } from '../kinds/kind.ts'
import type { PortAllocator } from '../ports/allocator.ts'
import { isUdpFree } from '../ports/bind-test.ts'
import { type KeeperLink, refusal } from './keeper-link.ts'
import type { LabNode } from './lab-node.ts'

const resolveMs = 5000

type Slot = LabNode['record']['ports'][string]

/** The ports of nodes and what is attached to them. Callers hold the lock of the node. */
export class Links {
  readonly #keeper: KeeperLink
  readonly #ports: PortAllocator

  constructor(keeper: KeeperLink, ports: PortAllocator) {
    this.#keeper = keeper
    this.#ports = ports
  }

  /** Attaches or replaces. 404 for a missing port, 400 for a host that is not known, 409 when the local port is taken. */
  async attach(node: LabNode, port: PortRef, nio: Nio): Promise<Nio> {
    const name = requirePort(node, port)
    if (!node.kind.nioTypes.includes(nio.type)) {
      throw badRequest(
        `type: a ${node.kind.kind} node does not take ${nio.type}, expected one of ${node.kind.nioTypes.join(', ')}`,
      )
    }
    const address = await resolveHost(nio.rhost)
    const slot = slotOf(node, name)
    const before = slot.nio
    const holder = this.#ports.ownerOfUdp(nio.lport)
    const owner = ownerOf(node, name)
    this.#ports.claimUdp(nio.lport, owner)
    try {
      await this.#open(node, name, slot)
      await this.#connect(node, name, nio, address)
    } catch (error) {
      this.#giveBack(nio.lport, owner, holder)
      throw error
    }
    if (before !== null && before.lport !== nio.lport) this.#ports.release('udp', before.lport, owner)
    slot.nio = nio
    await node.save()
    return nio
  }

  /** 404 when nothing is attached. */
  async update(node: LabNode, port: PortRef, nio: Nio): Promise<Nio> {
    const { suspend = false } = requireNio(node, requirePort(node, port))
    // What a change does not name keeps its value.
    return this.attach(node, port, { suspend, ...nio })
  }

  /** 404 when nothing is attached. */
  async detach(node: LabNode, port: PortRef): Promise<void> {
    const name = requirePort(node, port)
    const nio = requireNio(node, name)
    await this.#keeper.call('nio.detach', { key: portKey(node, name) }).catch((error: unknown) => {
      if (refusal(error) !== 'unknown_key') throw error
    })
    slotOf(node, name).nio = null
    this.#ports.release('udp', nio.lport, ownerOf(node, name))
    await node.save()
  }

  /** Makes sure that every port is wired for a start; what is attached comes along. */
  async wires(node: LabNode): Promise<Map<string, Wire>> {
    const wires = new Map<string, Wire>()
    for (const port of node.kind.ports(node.record)) {
      const name = portName(port)
      const slot = slotOf(node, name)
      if (slot.guest_port !== null && !(await isUdpFree(slot.guest_port))) {
        // Somebody else has it by now; the guest is not running, so another one will do.
        this.#ports.release('udp', slot.guest_port, ownerOf(node, name))
        slot.guest_port = null
      }
      const wire = await this.#open(node, name, slot)
      if (slot.nio !== null) await this.#reattach(node, name, slot.nio)
      wires.set(name, wire)
    }
    return wires
  }

  /** After a restart: gives the node its ports back, and attaches again what was. The messages say what did not work. */
  async restore(node: LabNode): Promise<string[]> {
    const failures: string[] = []
    for (const [name, slot] of Object.entries(node.record.ports)) {
      if (slot.nio === null) continue
      try {
        this.#ports.claimUdp(slot.nio.lport, ownerOf(node, name))
        await this.#open(node, name, slot)
        await this.#reattach(node, name, slot.nio)
      } catch (error) {
        failures.push(`The link of ${node.record.name}, port ${name}, is not there: ${(error as Error).message}`)
      }
    }
    return failures
  }

  /** Takes the ports of a node whose guest runs, as they are in the keeper. */
  adopt(node: LabNode): void {
    for (const [name, { guest_port, nio }] of Object.entries(node.record.ports)) {
      if (guest_port !== null) this.#ports.adopt('udp', guest_port, ownerOf(node, name))
      if (nio !== null) this.#ports.adopt('udp', nio.lport, ownerOf(node, name))
    }
  }

  /** Closes the ports of a node that goes. */
  async release(node: LabNode): Promise<void> {
    const names = Object.keys(node.record.ports)
    await Promise.all(
      names.map((name) => this.#keeper.call('port.close', { key: portKey(node, name) }).catch(() => {})),
    )
  }

  async #open(node: LabNode, name: string, slot: Slot): Promise<Wire> {
    const owner = ownerOf(node, name)
    const isOurs = slot.guest_port !== null && this.#ports.adopt('udp', slot.guest_port, owner)
    const guest_port = isOurs && slot.guest_port !== null ? slot.guest_port : await this.#ports.allocate('udp', owner)
    slot.guest_port = guest_port
    const { switch_port } = await this.#keeper.call('port.open', { key: portKey(node, name), guest_port })
    return { guest_port, switch_port }
  }

  async #reattach(node: LabNode, name: string, nio: Nio): Promise<void> {
    await this.#connect(node, name, nio, await resolveHost(nio.rhost))
  }

  async #connect(node: LabNode, name: string, nio: Nio, address: string): Promise<void> {
    const { type, lport, rport, suspend = false } = nio
    try {
      await this.#keeper.call('nio.attach', {
        key: portKey(node, name),
        nio: { type, lport, rport, rhost: address, suspend },
      })
    } catch (error) {
      if (refusal(error) === 'port_taken')
        throw conflict(`lport: ${(error as Error).message}`, { cause: error as Error })
      if (refusal(error) === 'bad_request')
        throw badRequest(`rhost: ${(error as Error).message}`, { cause: error as Error })
      throw error
    }
  }

  #giveBack(port: number, owner: string, before: string | undefined): void {
    if (before === owner) return
    this.#ports.release('udp', port, owner)
    if (before !== undefined) this.#ports.adopt('udp', port, before)
  }
}

const portName = ({ adapter, port }: PortRef): string => `${adapter}/${port}`
const portKey = (node: LabNode, name: string): string => `${node.key}/${name}`
const ownerOf = (node: LabNode, name: string): string => `${node.owner}/${name}`

function slotOf(node: LabNode, name: string): Slot {
  node.record.ports[name] ??= { guest_port: null, nio: null }
  return node.record.ports[name]
}

function requirePort(node: LabNode, wanted: PortRef): string {
  const ports = node.kind.ports(node.record)
  if (ports.some(({ adapter, port }) => adapter === wanted.adapter && port === wanted.port)) return portName(wanted)
  const adapters = new Set(ports.map(({ adapter }) => adapter))
  throw notFound(
    adapters.has(wanted.adapter)
      ? `port_number: adapter ${wanted.adapter} has no port ${wanted.port}`
      : `adapter_number: the node has no adapter ${wanted.adapter}, its adapters are numbered from 0 to ${Math.max(...adapters)}`,
  )
}

function requireNio(node: LabNode, name: string): Nio {
  const nio = node.record.ports[name]?.nio
  if (nio == null) throw notFound(`Nothing is attached to adapter ${name.replace('/', ', port ')}`)
  return nio
}

/** The numeric address of a host; 400 when the name is not known. */
async function resolveHost(host: string): Promise<string> {
  if (isIP(host) !== 0) return host
  let timer: NodeJS.Timeout | undefined
  try {
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${resolveMs} ms`)), resolveMs)
    })
    return (await Promise.race([lookup(host, { family: 0, verbatim: false }), late])).address
  } catch (cause) {
    throw badRequest(`rhost: ${JSON.stringify(host)} cannot be resolved: ${(cause as Error).message}`, {
      cause: cause as Error,
    })
  } finally {
    clearTimeout(timer)
  }
}
