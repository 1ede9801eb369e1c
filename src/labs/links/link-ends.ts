import { type ApiError, badRequest, notFound } from '../../lib/errors/api-error.ts'
import type { LabLinkEnd } from '../../model/lab/link.ts'
import type { LabPort } from '../../model/lab/node.ts'
import { portNamed, portsOf } from '../../model/lab/ports.ts'
import type { NodeRecord } from '../lab/document.ts'
import type { Lab } from '../lab/lab.ts'

/** An endpoint of a link, with its node and port. */
export interface FoundEnd {
  readonly end: LabLinkEnd
  readonly node: NodeRecord
  readonly port: LabPort
}
export type Ends = readonly [FoundEnd, FoundEnd]
/** The node and port of an endpoint, also from a text such as `R1:eth0`. 404. */
export function findEnd(lab: Lab, end: LabLinkEnd | string): FoundEnd {
  if (typeof end !== 'string') {
    const node = lab.node(end.node_id)
    const port = portsOf(node).find(
      (it) => it.adapter_number === end.adapter_number && it.port_number === end.port_number,
    )
    if (port !== undefined) return { end: { ...end, node_id: node.node_id }, node, port }
    throw noSuchPort(node, `${end.adapter_number}/${end.port_number}`)
  }
  const colon = end.lastIndexOf(':', end.endsWith(':') ? -1 : end.length)
  if (colon < 1)
    throw badRequest(`nodes: ${JSON.stringify(end)} is not a link endpoint, expected node:port such as R1:eth0`)
  const node = lab.node(end.slice(0, colon))
  const port = portNamed(portsOf(node), end.slice(colon + 1))
  if (port === undefined) throw noSuchPort(node, end.slice(colon + 1))
  const { adapter_number, port_number } = port
  return { end: { node_id: node.node_id, adapter_number, port_number }, node, port }
}

function noSuchPort(node: NodeRecord, word: string): ApiError {
  const ports = portsOf(node).map(({ name }) => name)
  const has =
    ports.length === 0 ? 'it has none' : `it has ${ports.slice(0, 8).join(', ')}${ports.length > 8 ? ' …' : ''}`
  return notFound(`nodes: the node ${node.name} has no port ${word}; ${has}`, { code: 'no-such-port' })
}
