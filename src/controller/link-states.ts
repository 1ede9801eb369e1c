import { ignore } from '../async/ignore.ts'
import { mapLimit } from '../async/map-limit.ts'
import { pause } from '../async/pause.ts'
import type { DirectLink, LinkTraffic } from '../model/direct-link.ts'
import type { LabLinkState } from '../model/lab/link.ts'
import type { NioState } from '../schema/nio.ts'
import type { LinkRecord } from './document.ts'
import type { Lab } from './lab.ts'
import type { AskCompute } from './labs.ts'
import { nodePathOf } from './nodes.ts'

/** Time between two reads of the link states of a lab whose feed has readers, ms. */
const everyMs = 1000
/** Age at which a request reads the states again, ms. */
const staleMs = 1000

/** Polls the link states of a lab while its feed has readers, and emits `link.state` for each change. Ends with the signal. */
export async function watchLinks(
  lab: Lab,
  { ask, hasReaders, signal }: { ask: AskCompute; hasReaders: () => boolean; signal: AbortSignal },
): Promise<void> {
  while (!signal.aborted) {
    if (hasReaders() && lab.document.links.size > 0) {
      const before = new Map(lab.linkStates)
      await readLinks(lab, ask).catch(ignore('a compute that does not answer has no new states'))
      for (const [id, state] of lab.linkStates) {
        if (JSON.stringify(before.get(id)) !== JSON.stringify(state)) lab.tell({ action: 'link.state', event: state })
      }
    }
    await pause(everyMs, signal)
  }
}

/** Reads the states of all links, unless they are younger than `staleMs`. */
export async function freshLinks(lab: Lab, ask: AskCompute): Promise<void> {
  if (!lab.isOpen || Date.now() - lab.linksReadAt < staleMs) return
  await readLinks(lab, ask).catch(ignore('links keep the state that was read last, or have null'))
}

/** Reads the states of all links: one request for each compute, and two for each link between computes. */
async function readLinks(lab: Lab, ask: AskCompute): Promise<void> {
  lab.linksReadAt = Date.now()
  const links = [...lab.document.links.values()]
  const computes = new Set(links.flatMap(({ wiring }) => (wiring.type === 'direct' ? [wiring.compute_id] : [])))
  const direct = await mapLimit([...computes], (computeId) => ask(computeId).links(lab.id))
  const found = new Map(direct.flat().map((link) => [link.link_id, stateOf(link)]))
  const remote = links.filter(({ wiring }) => wiring.type === 'udp')
  for (const state of await mapLimit(remote, (link) => remoteState(lab, link, ask))) {
    if (state !== undefined) found.set(state.link_id, state)
  }
  for (const id of lab.linkStates.keys()) if (!lab.document.links.has(id)) lab.linkStates.delete(id)
  for (const { link_id } of links) {
    const state = found.get(link_id)
    if (state !== undefined) lab.linkStates.set(link_id, state)
  }
}

const stateOf = ({ link_id, verdict, reason, ab, ba }: DirectLink): LabLinkState => ({
  link_id,
  verdict,
  verdict_reason: reason,
  traffic_ab: ab,
  traffic_ba: ba,
})

/** The state of a link between two computes, from the NIOs at both ends. Undefined when one cannot be read. */
async function remoteState(lab: Lab, link: LinkRecord, ask: AskCompute): Promise<LabLinkState | undefined> {
  const nios = await mapLimit(link.nodes, async ({ node_id, adapter_number, port_number }) => {
    const node = lab.document.nodes.get(node_id)
    if (node === undefined) return undefined
    return ask(node.compute_id).nio({ ...nodePathOf(lab, node), adapter_number, port_number })
  }).catch(() => undefined)
  const [a, b] = nios ?? []
  if (a === undefined || b === undefined) return undefined
  const worse = a.link === 'ok' ? b : a
  const before = lab.linkStates.get(link.link_id)
  return {
    link_id: link.link_id,
    verdict: worse.link,
    verdict_reason: worse.link_reason ?? null,
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
    ...{ frames, bytes, dropped },
    frames_per_s: since(frames, before?.frames) / (everyMs / 1000),
    bits_per_s: (8 * since(bytes, before?.bytes)) / (everyMs / 1000),
  }
}
