import { createHash } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { existsSync, realpathSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { createServer, isIP, isIPv6 } from 'node:net'
import { dirname, join } from 'node:path'
import type { PortRef } from '../../../../src/host-agent.ts'
import { badRequest, conflict } from '../../../../src/lib/errors/api-error.ts'
import type { EventPayload } from '../../../../src/model/event.ts'
import { type NatCreate, type NatNode, type NatUpdate, nat, natSettings } from '../../../../src/model/kinds/nat.ts'
import {
  defaultHostAddress,
  forwardsCollide,
  type NatGuest,
  type PortForward,
} from '../../../../src/model/kinds/nat-guests.ts'
import { numberOf4, type Subnet, subnetOf } from '../../../../src/model/kinds/nat-subnet.ts'
import type { Launch, NodeKind, PortWire } from '../../engine/nodes/kind.ts'
import { withChanges } from '../../engine/nodes/record.ts'
import { fieldsOf } from '../../engine/nodes/view-fields.ts'
import { replaceOwn } from '../../engine/storage/own-files.ts'
import type { ProcessSpec } from '../../keeper/protocol/protocol.ts'
import { programArguments } from '../../os/programs/own-program.ts'
import { give } from '../../os/sandbox/box.ts'
import type { Confinement } from '../../os/sandbox/sandbox.ts'
import { reasonOf } from '../../os/system/error-reason.ts'
import type { DriverHost } from '../node-driver.ts'
import { bytesOf, guestsName, leasesName } from './addresses.ts'
import { libslirpInstall, libslirpVersion } from './libslirp.ts'
import type { NatConfig } from './network.ts'
import { type NatKindNode, NatProperties } from './properties.ts'

type NatHost = DriverHost<NatProperties, { readonly reach: readonly string[] }>

const settingNames = Object.keys(natSettings) as (keyof typeof natSettings)[]
const resolvConf = '/etc/resolv.conf'

/** The nat kind: libslirp in a Node process of its own, for each node (docs/decisions/nat.md). */
export class NatKind implements NodeKind<NatProperties, typeof nat> {
  readonly descriptor = nat
  readonly schema = NatProperties
  readonly stopGraceMs = 2000
  readonly #host: NatHost

  constructor(host: NatHost) {
    this.#host = host
  }

  ports({ record }: NatKindNode): readonly PortRef[] {
    return Array.from({ length: record.properties.port_count }, (_, port) => ({ adapter: 0, port }))
  }

  view(node: NatKindNode): NatNode {
    return { ...fieldsOf(node), console_type: 'none', ...node.record.properties }
  }

  async prepare(node: NatKindNode, input: NatCreate): Promise<void> {
    this.#apply(node, { ...input, ipv6_prefix: input.ipv6_prefix ?? ownPrefix(node.record.node_id) })
  }

  async update(node: NatKindNode, changes: NatUpdate): Promise<void> {
    this.#apply(node, changes)
    if (node.status !== 'stopped') await writeGuests(node)
  }

  async launch(node: NatKindNode, wires: ReadonlyMap<string, PortWire>): Promise<Launch> {
    const { directory, record } = node
    const { subnet, ipv6_prefix, port_forwards } = record.properties
    this.#check(node, record.properties)
    try {
      libslirpVersion()
    } catch (cause) {
      throw conflict(`nat nodes need libslirp, which is not installed: ${libslirpInstall}`, {
        cause: cause as Error,
      })
    }
    for (const forward of port_forwards) await requireFree(forward)
    await writeGuests(node)
    const notices: EventPayload[] = []
    const confinement = await this.#host.sandbox.confinement((reason) =>
      notices.push({ type: 'log.warning', message: `${record.name}: ${reason}` }),
    )
    const config: NatConfig = {
      wires: this.ports(node).flatMap(({ adapter, port }) => {
        const wire = wires.get(`${adapter}/${port}`)
        return wire === undefined ? [] : [{ ...wire, number: port }]
      }),
      subnet,
      ipv6_prefix,
      port_forwards,
      reach: this.#host.settings().reach,
      isLocal: this.#host.isLocal(),
    }
    const args = [...program(), JSON.stringify(config)]
    const run =
      confinement === undefined ? { command: process.execPath, args } : await confined(node, confinement, args)
    return {
      command_line: `nat ${[subnet, ipv6_prefix].filter(Boolean).join(' ')}`,
      notices,
      run: {
        type: 'process',
        ...run,
        cwd: directory,
        log: join(directory, 'nat.log'),
        stdio: 'pipe',
        ready: 'the nat was ready',
      },
    }
  }

  async duplicate(...[source, { record }, copy]: Parameters<NodeKind<NatProperties>['duplicate']>): Promise<void> {
    await copy((directory) => rm(join(directory, leasesName), { force: true }))
    const { ipv6_prefix } = record.properties
    // A copy has no forwards: a port of the host leads to one nat.
    record.properties = { ...source.record.properties, ipv6_prefix, port_forwards: [] }
  }

  #apply(node: NatKindNode, changes: NatUpdate): void {
    const before = node.record.properties
    const next = withChanges(before, changes, settingNames)
    const isLive = (key: keyof NatProperties) => nat.liveFields.includes(key as never)
    const fixed = (of: NatProperties) =>
      JSON.stringify(settingNames.filter((key) => !isLive(key)).map((key) => of[key]))
    if (node.status !== 'stopped' && fixed(next) !== fixed(before)) {
      throw conflict('The nat is running: stop it before changing these settings')
    }
    this.#check(node, next)
    for (let port = next.port_count; port < before.port_count; port++) {
      if (node.record.ports[`0/${port}`]?.nio != null)
        throw conflict(`port_count: port ${port} is linked; delete its link first`)
    }
    node.record.properties = next
  }

  /** 400 and 409 for settings that do not fit together, or with those of other nats. */
  #check(node: NatKindNode, { subnet, ipv6_prefix, port_forwards, ...own }: NatProperties): void {
    const guests = subnetOf(subnet)
    if (guests === undefined)
      throw badRequest(`subnet: ${subnet} is not a network address with a prefix from /8 to /28`)
    const prefix = ipv6_prefix.split('/')[0] ?? ''
    if (prefix !== '' && !isIPv6(prefix)) throw badRequest(`ipv6_prefix: ${ipv6_prefix} is not an IPv6 network`)
    checkGuests(own.guests, own.port_count, guests)
    const others = [...this.#host.nodes()].filter(({ key }) => key !== node.key)
    const taken = others.flatMap(({ record }) =>
      record.properties.port_forwards.map((forward) => ({ ...forward, of: record.name })),
    )
    for (const [index, forward] of port_forwards.entries()) {
      const where = `port_forwards/${index}`
      const { host_address = defaultHostAddress, guest_address } = forward
      if (isIP(host_address) === 0) throw badRequest(`${where}/host_address: ${host_address} is not an address`)
      if (!this.#host.isLocal() && !isLoopback(host_address)) {
        throw conflict(`${where}/host_address: outside local mode ports are forwarded from loopback addresses only`)
      }
      if (guest_address === undefined && isIPv6(host_address)) {
        throw badRequest(`${where}/guest_address: required with an IPv6 host_address`)
      }
      if (guest_address !== undefined) {
        const isGuest =
          isIP(guest_address) === 4
            ? (numberOf4(guest_address) & guests.mask) >>> 0 === guests.network
            : isIPv6(guest_address) && prefix !== '' && isIn(guest_address, prefix)
        if (!isGuest) throw badRequest(`${where}/guest_address: ${guest_address} is not in the network of the guests`)
        if (isIP(guest_address) !== isIP(host_address)) {
          throw badRequest(`${where}/guest_address: expected the address family of host_address`)
        }
      }
      const clash = [...port_forwards.slice(0, index).map((it) => ({ ...it, of: 'this nat' })), ...taken].find((it) =>
        forwardsCollide(it, forward),
      )
      if (clash !== undefined) {
        throw conflict(
          `${where}/host_port: ${forward.protocol} port ${forward.host_port} is forwarded by ${clash.of}`,
          {
            code: 'port-taken',
          },
        )
      }
    }
  }
}

/** 400 for guests that cannot all have their port, name and address. */
function checkGuests(guests: readonly NatGuest[], port_count: number, subnet: Subnet): void {
  const seen = new Set<string | number>()
  for (const [index, { port_number, name, address }] of guests.entries()) {
    const where = `guests/${index}`
    const number = numberOf4(address)
    const isInside = isIP(address) === 4 && number > subnet.host && number < subnet.broadcast
    if (port_number >= port_count)
      throw badRequest(`${where}/port_number: the nat has ${port_count} ports, from 0 to ${port_count - 1}`)
    if (!isInside) throw badRequest(`${where}/address: ${address} is not an address for guests of the network`)
    const members = { port_number, name: name.toLowerCase(), address }
    for (const [member, value] of Object.entries(members)) {
      if (seen.has(value)) throw badRequest(`${where}/${member}: another guest has ${value}`)
      seen.add(value)
    }
  }
}

/** Writes the guests for the process of the nat, which reads them when they have changed. */
const writeGuests = ({ directory, record }: NatKindNode): Promise<void> =>
  // The process may run as another user, which writes in the directory, too.
  replaceOwn(directory, guestsName, JSON.stringify(record.properties.guests), 0o644)

/** The unique local prefix of a node, derived from its id (RFC 4193, 3.2). */
function ownPrefix(nodeId: string): string {
  const global = createHash('sha256').update(nodeId).digest('hex')
  return `fd${global.slice(0, 2)}:${global.slice(2, 6)}:${global.slice(6, 10)}::/64`
}

const isLoopback = (address: string): boolean => address.startsWith('127.') || address === '::1'
const isIn = (address: string, prefix: string): boolean => {
  const [a, b] = [bytesOf(address), bytesOf(prefix)]
  return a.subarray(0, 8).every((byte, index) => byte === b[index])
}

/** 409 when another program has the port. */
async function requireFree({
  protocol,
  host_port: port,
  host_address: host = defaultHostAddress,
}: PortForward): Promise<void> {
  try {
    if (protocol === 'tcp') {
      const server = createServer()
      const listening = once(server, 'listening')
      server.listen({ port, host, exclusive: true })
      await listening
      await new Promise((resolve) => server.close(resolve))
      return
    }
    const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
    try {
      const listening = once(socket, 'listening')
      socket.bind({ port, address: host, exclusive: true })
      await listening
    } finally {
      socket.close()
    }
  } catch (cause) {
    throw conflict(`${protocol} port ${port} of ${host} cannot be forwarded: ${reasonOf(cause)}`, {
      code: 'port-taken',
      cause: cause as Error,
    })
  }
}

const program = (): string[] =>
  programArguments(new URL('./main.ts', import.meta.url), new URL('./nat.js', import.meta.url))

/** The command in a cell with the network and the resolvers of the host. The process may listen on the forwarded ports only. */
async function confined(
  { directory, record }: NatKindNode,
  confinement: Confinement,
  args: readonly string[],
): Promise<Pick<ProcessSpec, 'command' | 'args' | 'is_wrapped'>> {
  await give(confinement.user, directory)
  const main = program().at(-1) ?? ''
  const modules = dirname(dirname(createRequire(import.meta.url).resolve('koffi')))
  const root = main.endsWith('.ts') ? join(dirname(main), '../../../..') : dirname(dirname(main))
  const own = main.endsWith('.ts') ? [join(root, 'runtime'), join(root, 'src')] : [dirname(main)]
  const mounts = existsSync(resolvConf) ? [{ from: realpathSync(resolvConf), at: resolvConf, isWritable: false }] : []
  const cell = {
    cwd: directory,
    network: 'host',
    connects: true,
    listens: record.properties.port_forwards.flatMap((it) => (it.protocol === 'tcp' ? [it.host_port] : [])),
    writable: [directory],
    readable: [...own, modules, join(root, 'package.json')],
    mounts,
  } as const
  return { ...confinement.wrap(cell, process.execPath, args), is_wrapped: true }
}
