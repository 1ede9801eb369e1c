import {
  type DirectLink,
  type DirectLinkState,
  type DirectLinkVerdict,
  type LinkEndState,
  type LinkTraffic,
  linkVerdictOf,
} from '../../../../src/model/direct-link.ts'
import type { PortReport } from '../../keeper/protocol/protocol.ts'
import type { OpenProject } from '../projects/open-project.ts'
import type { StoredLink } from '../projects/project-record.ts'
import { keysOf } from './link-ports.ts'
import { captureOf } from './nio-state.ts'

/** Minimum time between two samples for a rate, ms. */
const rateMs = 500

interface Sample {
  readonly at: number
  readonly traffic: readonly [LinkTraffic, LinkTraffic]
  /** What was read last, also shortly after the sample. */
  readonly read: readonly [LinkTraffic, LinkTraffic]
}

/** The reports on ports, by their keys. */
export type Reports = ReadonlyMap<string, PortReport>
export const byKey = (ports: readonly PortReport[]): Reports => new Map(ports.map((report) => [report.key, report]))

const noTraffic: LinkTraffic = { frames: 0, bytes: 0, dropped: 0, frames_per_s: 0, bits_per_s: 0 }
type Passed = Pick<LinkTraffic, 'frames' | 'bytes' | 'dropped'>

/** Direct links in the form for clients, with the rates since their last reading. */
export class LinkViews {
  readonly #samples = new Map<string, Sample>()

  /** Without `reports` the traffic is that of the last reading. */
  view(project: OpenProject, link: StoredLink, reports?: Reports): DirectLink {
    const { nodes, filters_ab, filters_ba, suspend } = link
    const [a, b] = keysOf(link).ports.map((key) => reports?.get(key))
    const captures: DirectLink['captures'] = [captureOf(a?.capture ?? null), captureOf(b?.capture ?? null)]
    const shown = { project_id: project.id, nodes, filters_ab, filters_ba, suspend }
    return { ...shown, ...this.state(project, link, reports), captures }
  }

  state(project: OpenProject, link: StoredLink, reports?: Reports): DirectLinkState {
    const { link_id } = link
    const [a, b] = keysOf(link).ports.map((key) => reports?.get(key))
    const [verdict, reason] = judge(project, link, [a, b])
    const [ab, ba] =
      reports === undefined
        ? (this.#samples.get(link_id)?.read ?? [noTraffic, noTraffic])
        : this.#traffic(link_id, [passed(a, b), passed(b, a)])
    return { link_id, verdict, reason, ...(a?.path !== undefined && { path: a.path }), ab, ba }
  }

  /** Forgets the traffic of a link. */
  forget(linkId: string): void {
    this.#samples.delete(linkId)
  }

  #traffic(linkId: string, counts: readonly [Passed, Passed]): readonly [LinkTraffic, LinkTraffic] {
    const at = performance.now()
    const last = this.#samples.get(linkId)
    const seconds = last === undefined ? 0 : (at - last.at) / 1000
    const isRecent = seconds * 1000 < rateMs
    const traffic = counts.map((count, index): LinkTraffic => {
      const then = last?.traffic[index]
      if (then === undefined) return { ...count, frames_per_s: 0, bits_per_s: 0 }
      if (isRecent) return { ...count, frames_per_s: then.frames_per_s, bits_per_s: then.bits_per_s }
      return {
        ...count,
        frames_per_s: Math.max(0, count.frames - then.frames) / seconds,
        bits_per_s: (8 * Math.max(0, count.bytes - then.bytes)) / seconds,
      }
    }) as [LinkTraffic, LinkTraffic]
    this.#samples.set(
      linkId,
      last !== undefined && isRecent ? { ...last, read: traffic } : { at, traffic, read: traffic },
    )
    return traffic
  }
}

/** The traffic from one port to the other. */
function passed(from: PortReport | undefined, to: PortReport | undefined): Passed {
  const { no_guest = 0, send_failed = 0 } = to?.counters.dropped ?? {}
  let dropped = no_guest + send_failed
  for (const [why, count] of Object.entries(from?.counters.dropped ?? {}))
    if (why !== 'no_guest' && why !== 'send_failed') dropped += count
  const { in_frames: frames = 0, in_bytes: bytes = 0 } = to?.counters ?? {}
  return { frames, bytes, dropped }
}

function judge(
  project: OpenProject,
  link: StoredLink,
  reports: readonly (PortReport | undefined)[],
): readonly [DirectLinkVerdict, string | null] {
  const { nodes, suspend, detached } = link
  if (detached !== undefined) return ['detached', detached]
  const ends: LinkEndState[] = []
  for (const [index, unit] of keysOf(link).nodes.entries()) {
    const node = project.nodes.get(unit)
    if (node === undefined) return ['stopped', `The node ${nodes[index]?.node_id} does not exist: remove the link`]
    const { link, reason } = reports[index] ?? {}
    ends.push({ name: node.record.name, status: node.status, link, reason })
  }
  return linkVerdictOf(suspend, ends)
}
