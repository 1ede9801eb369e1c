import type { PortRef } from '../../../../src/host-agent.ts'
import { notFound } from '../../../../src/lib/errors/api-error.ts'
import type { NioView } from '../../../../src/model/schema/nio.ts'
import type { EngineNode } from './engine-node.ts'

/** A port in the record of its node, under the name `{adapter}/{port}`. */
export type Slot = EngineNode['record']['ports'][string]

export const portName = ({ adapter, port }: PortRef): string => `${adapter}/${port}`
export const parsePortName = (name: string): PortRef => {
  const [adapter = 0, port = 0] = name.split('/').map(Number)
  return { adapter, port }
}
/** The key of a port in the keeper. */
export const portKey = (node: EngineNode, name: string): string => `${node.key}/${name}`
/** The key of the unit to which a port of the keeper belongs. */
export const unitOf = (port: string): string => port.split('/')[0] ?? ''
/** The owner of the UDP ports of a port, for the port allocator. */
export const ownerOf = (node: EngineNode, name: string): string => `${node.owner}/${name}`
export const lportOf = (nio: NioView | null): number | undefined => (nio?.type === 'nio_udp' ? nio.lport : undefined)

export function slotOf(node: EngineNode, name: string): Slot {
  node.record.ports[name] ??= { guest_port: null, nio: null }
  return node.record.ports[name]
}

/** The name of a port that the node has; 404. */
export function requirePort(node: EngineNode, wanted: PortRef): string {
  const ports = node.kind.ports(node)
  if (ports.some(({ adapter, port }) => adapter === wanted.adapter && port === wanted.port)) return portName(wanted)
  const adapters = new Set(ports.map(({ adapter }) => adapter))
  if (adapters.has(wanted.adapter)) {
    const numbers = ports.filter(({ adapter }) => adapter === wanted.adapter).map(({ port }) => port)
    const range = `its ports are numbered from ${Math.min(...numbers)} to ${Math.max(...numbers)}`
    throw notFound(`port_number: adapter ${wanted.adapter} has no port ${wanted.port}, ${range}`, {
      code: 'no-such-port',
    })
  }
  const there = adapters.size === 0 ? 'it has none' : `its adapters are numbered from 0 to ${Math.max(...adapters)}`
  throw notFound(`adapter_number: the node has no adapter ${wanted.adapter}, ${there}`, { code: 'no-such-port' })
}

/** The NIO of a port; 404 without one. */
export function requireNio(node: EngineNode, name: string): NioView {
  const nio = node.record.ports[name]?.nio
  if (nio == null)
    throw notFound(`Nothing is attached to adapter ${name.replace('/', ', port ')}; attach a NIO with POST`, {
      code: 'nothing-attached',
    })
  return nio
}
