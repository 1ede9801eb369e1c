import { mapLimit } from '../../lib/async/map-limit.ts'
import { ApiError } from '../../lib/errors/api-error.ts'
import type { LabPort } from '../../model/lab/node.ts'
import { portsOf } from '../../model/lab/ports.ts'
import type { ComputeAgents } from '../computes/agents.ts'
import type { LinkRecord, NodeRecord } from '../lab/document.ts'
import type { Lab } from '../lab/lab.ts'
import type { Labs } from '../service.ts'
import { keepUnplugged } from './link-states.ts'
import { sameEnd, withLinkLock } from './links.ts'
import { unwire, wireAgain } from './wiring.ts'

/**
 * After a node has changed: its compute has detached the links of ports that are gone, which people are told. Links of ports that are
 * back are attached again. A link that cannot be is left as it is, with a warning in the feed.
 */
export async function replug(
  labs: Pick<Labs, 'computes'>,
  lab: Lab,
  before: NodeRecord,
  agentFor: ComputeAgents,
): Promise<void> {
  const now = lab.document.nodes.get(before.node_id)
  if (now === undefined) return
  const links = lab.document.linksOf(now.node_id).filter(({ wiring }) => wiring.type !== 'none')
  if (links.length === 0) return
  const [then, present] = [portsOf(before), portsOf(now)]
  const atNode = (ports: readonly LabPort[]) =>
    ports.filter((port) => links.some(({ nodes }) => sameEnd(nodes, endOf(now, port)) !== undefined))
  const unplugged = atNode(then.filter((port) => !has(present, port)))
  for (const { link_id, nodes } of links) {
    const gone = unplugged.find((port) => sameEnd(nodes, endOf(now, port)) !== undefined)
    if (gone !== undefined) keepUnplugged(lab, link_id, reasonOf(now.name, gone))
  }
  if (unplugged.length > 0) lab.emit({ action: 'log.warning', event: { message: textOf(now.name, unplugged) } })
  const back = present.filter((port) => !has(then, port)).map((port) => endOf(now, port))
  const again = links.filter(({ nodes }) => back.some((end) => sameEnd(nodes, end) !== undefined))
  await mapLimit(again, ({ link_id }) =>
    withLinkLock(lab, [link_id], async () => {
      const link = lab.document.links.get(link_id)
      if (link === undefined || !hasBothPorts(lab, link)) return
      try {
        // The other end of a link between computes still has its NIO.
        if (link.wiring.type === 'udp') await unwire(lab, link, agentFor)
        await wireAgain(labs, lab, link, agentFor)
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        const message = `${now.name}: a port is back, but its cable could not be plugged in: ${error.message}`
        lab.emit({ action: 'log.warning', event: { message } })
      }
    }),
  )
}

type PortPlace = Pick<LabPort, 'adapter_number' | 'port_number' | 'link_type'>

const has = (ports: readonly LabPort[], { adapter_number, port_number, link_type }: PortPlace): boolean =>
  ports.some(
    (it) => it.adapter_number === adapter_number && it.port_number === port_number && it.link_type === link_type,
  )

const endOf = ({ node_id }: NodeRecord, { adapter_number, port_number }: LabPort) => ({
  node_id,
  adapter_number,
  port_number,
})

/** Whether the nodes of a link have its two ports, of one type. */
const hasBothPorts = (lab: Lab, { nodes, link_type }: LinkRecord): boolean =>
  nodes.every(({ node_id, ...place }) => has(portsOf(lab.node(node_id)), { ...place, link_type }))

const reasonOf = (node: string, { name }: LabPort): string =>
  `The cable of ${name} was unplugged, as ${node} no longer has this port: give it back, or remove the link`

function textOf(node: string, ports: readonly LabPort[]): string {
  const names = ports.map(({ name }) => name).join(', ')
  return ports.length === 1
    ? `${node}: the cable of ${names} was unplugged, as the port is gone; it is plugged in again when the port is back`
    : `${node}: the cables of ${names} were unplugged, as the ports are gone; they are plugged in again when the ports are back`
}
