import type { LabLink, LabNode } from '../../../src/client/patchbay.ts'
import { type MapPort, shortPortName } from './ports.ts'

/** What a port of a switch does with VLANs. */
interface VlanPort {
  readonly type: 'access' | 'dot1q' | 'qinq'
  readonly vlan: number
}

const types: readonly unknown[] = ['access', 'dot1q', 'qinq'] satisfies VlanPort['type'][]

/** The ports of a node that have VLANs, by number; none unless one of them has another one than the usual. */
function vlanPortsOf({ properties }: LabNode): Map<number, VlanPort> {
  const mapped = Array.isArray(properties.ports_mapping)
    ? (properties.ports_mapping as ({ readonly port_number: number } & Partial<VlanPort>)[])
    : []
  const ports = mapped.flatMap(({ port_number, type, vlan }) =>
    type !== undefined && vlan !== undefined && types.includes(type) ? [[port_number, { type, vlan }] as const] : [],
  )
  const isUsual = ({ type, vlan }: VlanPort) => type === 'access' && vlan === 1
  return new Map(ports.every(([, port]) => isUsual(port)) ? [] : ports)
}

const vlanPortAt = (node: LabNode | undefined, end: MapPort): VlanPort | undefined =>
  node && vlanPortsOf(node).get(end.port_number)

/** What the map writes at an end of a link: the port, and what it does with VLANs, such as `e0 · v10`. */
export function portLabel(node: LabNode | undefined, end: MapPort): string {
  const name = shortPortName(node, end)
  const port = vlanPortAt(node, end)
  if (port === undefined) return name
  const { type, vlan } = port
  const said = { access: `v${vlan}`, dot1q: vlan === 1 ? 'trunk' : `trunk v${vlan}`, qinq: `qinq ${vlan}` }[type]
  return `${name} · ${said}`
}

/** The VLAN of a link: that of an access port at one of its ends; `trunk`: it has several. Undefined: no switch says. */
export function vlanOfLink(
  { nodes }: LabLink,
  nodeOf: (id: string) => LabNode | undefined,
): number | 'trunk' | undefined {
  const ports = nodes.flatMap((end) => vlanPortAt(nodeOf(end.node_id), end) ?? [])
  const access = ports.find(({ type }) => type === 'access')
  return access?.vlan ?? (ports.length > 0 ? 'trunk' : undefined)
}
