import type { LabLink } from '../../../src/client/patchbay.ts'
import type { Strand } from './geometry.ts'

/** The position of each link among those between the same nodes. The side of a bow is the same from both ends. */
export function strandsOf(links: readonly LabLink[]): Map<string, Strand> {
  const groups = new Map<string, LabLink[]>()
  for (const link of links) {
    const key = pairOf(link)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [link])
    else group.push(link)
  }
  const strands = new Map<string, Strand>()
  for (const group of groups.values()) {
    const first = group[0]?.nodes[0]?.node_id
    group.forEach((link, index) => {
      const isForward = link.nodes[0]?.node_id === first
      strands.set(link.link_id, { index: isForward ? index : group.length - 1 - index, count: group.length })
    })
  }
  return strands
}

const pairOf = ({ nodes }: LabLink): string =>
  nodes
    .map((end) => end.node_id)
    .sort()
    .join(' ')
