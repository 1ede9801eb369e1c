import type { LabLink, LabLinkEnd, LabNode } from '../../../src/client/patchbay.ts'

/** Numbers of frames by the reason why they were dropped, as the state of a port has them. */
export type DropCounts = Readonly<Record<string, number>>

/** A reason in words, and how many frames. */
export type Drop = readonly [reason: string, frames: number]

const words: Readonly<Record<string, string>> = {
  suspended: 'the link is suspended',
  frequency_drop: 'every n-th frame',
  packet_loss: 'loss',
  bpf: 'the filter',
  rate: 'the rate was exceeded',
  queue_full: 'the queue was full',
  not_linked: 'nothing was attached',
  no_guest: 'the other node was not running',
  send_failed: 'the host could not send them',
  filtered: 'the switch did not forward them',
}

/** The drops from one port to the other, most first. What is lost at the receiver itself is counted there. */
export function dropsBetween(from: DropCounts, to: DropCounts): Drop[] {
  const isAtReceiver = (reason: string) => reason === 'no_guest' || reason === 'send_failed'
  return [
    ...Object.entries(from).filter(([reason]) => !isAtReceiver(reason)),
    ...Object.entries(to).filter(([reason]) => isAtReceiver(reason)),
  ]
    .filter(([, frames]) => frames > 0)
    .sort(([, a], [, b]) => b - a)
    .map(([reason, frames]) => [words[reason] ?? reason, frames])
}

/** The address of the state of a port that a link is attached to. */
export function portAddress({ project_id }: Pick<LabLink, 'project_id'>, node: LabNode, end: LabLinkEnd): string {
  const { node_type, node_id } = node
  const { adapter_number, port_number } = end
  const path = `/v2/compute/projects/${project_id}/${node_type}/nodes/${node_id}`
  return `${path}/adapters/${adapter_number}/ports/${port_number}/nio`
}

/** The line that shows the frames of a link in Wireshark. A secret is never in it: a shell would keep it in its history. */
export function wiresharkLine(
  server: string,
  { project_id, link_id }: Pick<LabLink, 'project_id' | 'link_id'>,
  needsToken: boolean,
): string {
  const address = `${server}/v2/projects/${project_id}/links/${link_id}/capture/stream?format=pcapng`
  const token = needsToken ? ' -H "Authorization: Bearer $PATCHBAY_TOKEN"' : ''
  return `curl -sN -X POST${token} "${address}" | wireshark -k -i -`
}
