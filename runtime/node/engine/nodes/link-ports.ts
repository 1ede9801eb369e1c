import type { LinkPort, LinkPorts } from '../../../../src/model/direct-link.ts'
import type { StoredLink } from '../projects/project-record.ts'
import { portName } from './slots.ts'

/** The key of the node of a port. */
export const nodeKeyOf = ({ node_type, node_id }: LinkPort): string => `${node_type}:${node_id}`
export const nameOf = ({ adapter_number: adapter, port_number: port }: LinkPort): string => portName({ adapter, port })
/** The key of a port in the keeper. */
export const keyOf = (port: LinkPort): string => `${nodeKeyOf(port)}/${nameOf(port)}`

interface LinkKeys {
  readonly nodes: [string, string]
  readonly ports: [string, string]
}
const known = new WeakMap<StoredLink, LinkKeys>()

/** The keys of the nodes and of the ports of a link, made once: the states of all links are read each second. */
export function keysOf(link: StoredLink): LinkKeys {
  const keys = known.get(link)
  if (keys !== undefined) return keys
  const [a, b] = link.nodes
  const made: LinkKeys = { nodes: [nodeKeyOf(a), nodeKeyOf(b)], ports: [keyOf(a), keyOf(b)] }
  known.set(link, made)
  return made
}

export const isSamePorts = (one: LinkPorts, other: LinkPorts): boolean =>
  one.every((port, index) => keyOf(port) === keyOf(other[index] as LinkPort))
