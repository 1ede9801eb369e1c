import { ignore } from '../../lib/async/ignore.ts'
import { mapLimit } from '../../lib/async/map-limit.ts'
import { pause } from '../../lib/async/pause.ts'
import { withTimeout } from '../../lib/async/timeout.ts'
import { type DirectLinkState, isSameTraffic, type LinkTraffic, linkVerdictOf } from '../../model/direct-link.ts'
import type { LabLinkState } from '../../model/lab/link.ts'
import type { NioState } from '../../model/schema/nio.ts'
import type { ComputeAgents } from '../computes/agents.ts'
import type { LinkRecord } from '../lab/document.ts'
import type { Lab } from '../lab/lab.ts'
import { nodeRefOf, portRefOf } from '../lab/node-on-compute.ts'

/** Time between two reads of the link states of a lab whose feed has readers of them, ms. */
const everyMs = 1000
/** Age at which a request reads the states again, ms. */
const staleMs = 1000
/** States of removed links are dropped when there are more states than twice the links plus this number. */
const spareStates = 1000

const mostStates = ({ document }: Lab): number => 2 * document.links.size + spareStates

/** Polls the link states of a lab while its feed has readers of them. Ends with the signal. */
export async function watchLinks(
  lab: Lab,
  { agentFor, signal }: { agentFor: ComputeAgents; signal: AbortSignal },
): Promise<void> {
  while (!signal.aborted) {
    if (lab.linkReaders > 0 && lab.document.links.size > 0) await readLinks(lab, agentFor)
    await pause(everyMs, signal)
  }
}

/**
 * Reads the states of all links, unless they are younger than `staleMs` and nothing has changed them since. Waits for a read in progress, but
 * not for long: a compute may not answer.
 */
export async function freshLinks(lab: Lab, agentFor: ComputeAgents): Promise<void> {
  if (!lab.isOpen) return
  if (Date.now() - lab.linksReadAt < staleMs) return withTimeout(lab.linksRead, staleMs, () => undefined)
  await readLinks(lab, agentFor)
}

/** Reads the states of links. A link that cannot be read keeps its last state, if it has one. */
function readLinks(lab: Lab, agentFor: ComputeAgents): Promise<void> {
  lab.linksReadAt = Date.now()
  lab.linksRead = readAll(lab, agentFor)
  return lab.linksRead
}

/**
 * Reads the states of links that changed: from each compute in pieces, and by two requests for each link between computes. Emits
 * `link.state` for each change while the feed has readers of it.
 */
async function readAll(lab: Lab, agentFor: ComputeAgents): Promise<void> {
  const { links } = lab.document
  // States of links that are not in the document are kept for a while: an undo, or a request in progress, may bring the links (back).
  if (lab.linkStates.size >= mostStates(lab)) {
    for (const states of [lab.linkStates, lab.unplugged])
      for (const id of states.keys()) if (!links.has(id)) states.delete(id)
    lab.linkCursors.clear()
  }
  const computes = new Set<string>()
  const remote: LinkRecord[] = []
  for (const link of links.values()) {
    if (link.wiring.type === 'direct') computes.add(link.wiring.compute_id)
    if (link.wiring.type === 'udp') remote.push(link)
  }
  await mapLimit([...computes], (computeId) =>
    readDirect(lab, computeId, agentFor).catch(ignore('a compute that does not answer has no new states')),
  )
  await mapLimit(remote, async (link) => {
    const state = await remoteState(lab, link, agentFor)
    if (state !== undefined) keep(lab, state)
  })
}

/** A compute that reports more states than it can have links, or states of links of others, is read no further. */
async function readDirect(lab: Lab, computeId: string, agentFor: ComputeAgents): Promise<void> {
  const { links } = lab.document
  for (let read = 0; ; ) {
    const { states, next, more } = await agentFor(computeId).links.changes(lab.id, lab.linkCursors.get(computeId))
    lab.linkCursors.set(computeId, next)
    for (const state of states) {
      const wiring = links.get(state.link_id)?.wiring
      if (wiring === undefined ? lab.linkStates.size < mostStates(lab) : isOn(wiring, computeId)) keepState(lab, state)
    }
    read += states.length
    if (!more || states.length === 0 || read > links.size + spareStates) break
  }
}

const isOn = (wiring: LinkRecord['wiring'], computeId: string): boolean =>
  wiring.type === 'direct' && wiring.compute_id === computeId

/** Keeps the state that a compute reported of a link of its own. */
export function keepState(lab: Lab, state: DirectLinkState): void {
  const { link_id, verdict, reason } = state
  if (verdict !== 'detached') lab.unplugged.delete(link_id)
  keep(lab, stateOf({ ...state, reason: lab.unplugged.get(link_id) ?? reason }))
}

/** Says why a link is detached whose port is gone. */
export function keepUnplugged(lab: Lab, linkId: string, reason: string): void {
  lab.unplugged.set(linkId, reason)
  const known = lab.linkStates.get(linkId)
  if (known?.verdict === 'detached') keep(lab, { ...known, verdict_reason: reason })
}

/** Keeps the state of a link, and emits a change to the feeds that have it. */
function keep(lab: Lab, state: LabLinkState): void {
  const { linkStates } = lab
  const before = linkStates.get(state.link_id)
  if (before !== undefined && isSame(before, state)) return
  linkStates.set(state.link_id, state)
  if (lab.linkReaders > 0 && lab.document.links.has(state.link_id)) lab.emit({ action: 'link.state', event: state })
}

const isSame = (one: LabLinkState, other: LabLinkState): boolean =>
  one.verdict === other.verdict &&
  one.verdict_reason === other.verdict_reason &&
  one.path === other.path &&
  isSameTraffic(one.traffic_ab, other.traffic_ab) &&
  isSameTraffic(one.traffic_ba, other.traffic_ba)

const stateOf = ({ link_id, verdict, reason, path, ab, ba }: DirectLinkState): LabLinkState => ({
  link_id,
  verdict,
  verdict_reason: reason,
  ...(path !== undefined && { path }),
  traffic_ab: ab,
  traffic_ba: ba,
})

/** The state of a link between two computes, from the NIOs at both ends. Undefined when one cannot be read. */
async function remoteState(lab: Lab, link: LinkRecord, agentFor: ComputeAgents): Promise<LabLinkState | undefined> {
  const ends = await mapLimit(link.nodes, async (end) => {
    const { node_id } = end
    const node = lab.document.nodes.get(node_id)
    if (node === undefined) return undefined
    const nio = await agentFor(node.compute_id).nodes.nioState(nodeRefOf(lab, node), portRefOf(end))
    const status = lab.reported.get(node_id)?.status ?? ''
    return { nio, name: node.name, status, link: nio.link, reason: nio.link_reason }
  }).catch(ignore('the link keeps the state that was read last'))
  const [one, other] = ends ?? []
  if (one === undefined || other === undefined) return undefined
  const [verdict, verdict_reason] = linkVerdictOf(link.suspend, [one, other])
  const [a, b] = [one.nio, other.nio]
  const before = lab.linkStates.get(link.link_id)
  return {
    link_id: link.link_id,
    verdict,
    verdict_reason,
    traffic_ab: trafficOf(a, b, before?.traffic_ab),
    traffic_ba: trafficOf(b, a, before?.traffic_ba),
  }
}

/** Frames that arrived at `to`, with rates since the read before: about `everyMs` ago. */
function trafficOf(from: NioState, to: NioState, before: LinkTraffic | undefined): LinkTraffic {
  const { in_frames: frames, in_bytes: bytes } = to.counters
  const dropped = Object.values(from.counters.dropped).reduce((sum, count) => sum + count, 0)
  const since = (now: number, then: number | undefined) => Math.max(0, now - (then ?? now))
  return {
    frames,
    bytes,
    dropped,
    frames_per_s: since(frames, before?.frames) / (everyMs / 1000),
    bits_per_s: (8 * since(bytes, before?.bytes)) / (everyMs / 1000),
  }
}
