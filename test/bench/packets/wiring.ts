import type { Filter } from '../../../runtime/node/dataplane/filters/index.ts'
import type { BridgeSpec, JoinedLink, PortGuest, SwitchNio } from '../../../runtime/node/keeper/protocol/protocol.ts'
import type { Setup } from './relay.ts'

/** A switch that is asked directly, or by way of its keeper. */
export interface Ports {
  /** The UDP port that the guest has to send to. */
  open(key: string, guest: PortGuest): Promise<number>
  attach(key: string, nio: SwitchNio): Promise<void>
  capture(key: string, file: string): Promise<void>
  bridge(key: string, spec: BridgeSpec): Promise<void>
  join(links: readonly JoinedLink[]): Promise<void>
}

/** Where the generator has to send to: its two ports of each link, and its sinks. */
export interface Targets {
  readonly targets: readonly (readonly [number, number])[]
  readonly sinkTargets: readonly number[]
}

const rhost = '127.0.0.1'
const bridgeKey = 'switch:bench'
export const linkTypeEthernet = 1

/** Opens the ports of the setup, and links them. */
export async function wire(ports: Ports, setup: Setup): Promise<Targets> {
  if (setup.shape === 'switched' || setup.shape === 'flooded') return overSwitch(ports, setup)
  const targets: (readonly [number, number])[] = []
  for (const index of setup.ports.keys()) targets.push(await link(ports, setup, index))
  return { targets, sinkTargets: [] }
}

async function link(ports: Ports, setup: Setup, index: number): Promise<readonly [number, number]> {
  const { filters = [], captureFile, shape, netio = {} } = setup
  const [a, b] = setup.ports[index] as readonly [number, number]
  const [first, second] = setup.ends[index] as readonly [number, number]
  const guest = (id: number | undefined, guest_port: number): PortGuest =>
    id === undefined ? { guest_port } : { netio: { application_id: id, port: 0, ethernet: true } }
  const nio = (lport: number, rport: number, filters: readonly Filter[]): SwitchNio => ({
    ...{ type: 'udp', lport, rport, rhost, filters, suspend: false },
  })
  const [keyA, keyB] = [`pc:a${index}/0/0`, `pc:b${index}/0/0`]
  if (shape === 'leg' && netio.b !== undefined) {
    await ports.open(keyA, guest(netio.b, b))
    await ports.attach(keyA, nio(first, a, filters))
    return [first, 0]
  }
  const toA = await ports.open(keyA, guest(netio.a, a))
  let toB = first
  if (shape === 'leg') await ports.attach(keyA, nio(first, b, filters))
  else {
    toB = await ports.open(keyB, guest(netio.b, b))
    await ports.attach(keyA, nio(first, second, filters))
    await ports.attach(keyB, nio(second, first, []))
  }
  if (captureFile !== undefined) await ports.capture(keyA, captureFile)
  return [toA, toB]
}

/** Links the two guests and the sinks by a switch. */
async function overSwitch(ports: Ports, { ports: pairs, sinks }: Setup): Promise<Targets> {
  const guests = [...pairs.flat(), ...sinks]
  const spec = guests.map((_, port_number) => ({ port_number, mode: 'access' as const, vlan: 1, ethertype: 0x8100 }))
  await ports.bridge(bridgeKey, { type: 'bridge', forwards: 'learned', ageing_s: 300, ports: spec })
  const [toA = 0, toB = 0, ...sinkTargets] = await Promise.all(
    guests.map((guest_port, at) => ports.open(`pc:${at}/0/0`, { guest_port })),
  )
  for (const bridge_port of guests.keys()) await ports.open(`${bridgeKey}/0/${bridge_port}`, { bridge_port })
  await ports.join(
    guests.map((_, at) => ({
      link_id: String(at),
      ports: [`pc:${at}/0/0`, `${bridgeKey}/0/${at}`],
      ...{ suspend: false, filters_ab: [], filters_ba: [] },
    })),
  )
  return { targets: [[toA, toB]], sinkTargets }
}
