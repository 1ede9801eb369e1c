import type { LabLink } from '../../../src/client/patchbay.ts'
import { counted } from '../parts/counted.ts'
import { sizeText } from '../parts/size-text.ts'

/** What has passed a port of a node by its link, such as `in 3 frames, 210 bytes · out 1 frame, 70 bytes`; empty: there is no reading. */
export function portTraffic({ nodes, traffic_ab, traffic_ba }: LabLink, nodeId: string): string {
  if (traffic_ab === null || traffic_ba === null) return ''
  const isFirst = nodes[0]?.node_id === nodeId
  const [into, out] = isFirst ? [traffic_ba, traffic_ab] : [traffic_ab, traffic_ba]
  const dropped = into.dropped + out.dropped
  const words = [
    `in ${counted(into.frames, 'frame')}, ${sizeText(into.bytes)}`,
    `out ${counted(out.frames, 'frame')}, ${sizeText(out.bytes)}`,
    ...(dropped > 0 ? [`${dropped.toLocaleString('en')} dropped`] : []),
  ]
  return words.join(' · ')
}
