import type { JoinedLink, PortReport, SwitchNio } from '../../keeper/protocol/protocol.ts'
import type { Recorder } from '../capture/recorder.ts'
import { at, type Counters } from './core/counters.ts'
import { deviceIndex } from './device.ts'
import { isTap, type SwitchGuest } from './guests.ts'
import { isLoopbackEndpoint } from './nio-transport.ts'
import type { Prober } from './prober.ts'
import { judgeJoined, judgeLink, refusingGuest, verdictReasonOf } from './verdict.ts'

/** The number of no end: the path ignores it. */
export const noEnd = { end: 0, port: 0 } as const

/** A port of the switch: one of a node that runs, or of a bridge. */
export interface OpenPort {
  readonly key: string
  readonly at: SwitchGuest
  readonly row: number
  /** The switch's end of the private socket pair, and its UDP port; 0 for none. A TAP device has an end while its guest runs. */
  guest: number
  /** Of that TAP device. */
  descriptor: number | undefined
  readonly guestEndPort: number
  /** Whether something is to be done with its frames: the link has an impairment, or they are captured. */
  isImpaired: boolean
  isCaptured: boolean
  readonly recorder: Recorder
  link: SwitchLink | null
  /** The port at the other end of the link, if it is in this switch: frames then take one hop. */
  joined: OpenPort | null
}

/** Ports by the local UDP port of their link. */
type PortsByLport = ReadonlyMap<number, OpenPort>

/** A link with an open end. */
export interface OpenLink {
  readonly nio: SwitchNio
  readonly end: number
  readonly prober: Prober | null
  /** Index of the device when the link was opened. */
  readonly deviceIndex: number | null
}

/** A link in use. */
interface SwitchLink extends OpenLink {
  /** Counters of the row when the link was attached. */
  readonly base: { readonly sent: number; readonly received: number }
  /** Refusals that no longer count for the verdict. */
  refusedBefore: number
}

/** Whether a guest is there that can take frames: the program of another kind refuses them. */
const hasGuest = ({ at, guest }: OpenPort): boolean => !isTap(at) || guest > 0

const stoppedGuest = 'the node at the other end is not running'

/** Whether the device of a port's link was lost, and a reopen may succeed. */
export function isDead({ row, link }: OpenPort, counters: Counters): boolean {
  if (link === null || link.nio.type === 'udp') return false
  if (link.nio.type === 'tap') return counters.get(row, at.linkFailed) > 0
  const index = deviceIndex(link.nio.device)
  return index !== null && index !== link.deviceIndex
}

/** The link of this switch that points back to this one, also with an address of the other family. */
function backOf(port: OpenPort, byLport: PortsByLport): SwitchNio | null {
  const nio = port.link?.nio
  if (nio?.type !== 'udp' || !isLoopbackEndpoint(nio.rhost)) return null
  const back = byLport.get(nio.rport)?.link?.nio
  return back?.type === 'udp' && back.rport === nio.lport ? back : null
}

/** The port in this switch at the other end of a link. */
export function otherEndOf(port: OpenPort, byLport: PortsByLport): OpenPort | null {
  const nio = port.link?.nio
  if (nio?.type !== 'udp' || !isLoopbackEndpoint(nio.rhost)) return null
  const other = byLport.get(nio.rport)
  const back = other?.link?.nio
  if (other === undefined || other === port || back?.type !== 'udp') return null
  return back.rport === nio.lport && back.rhost === nio.rhost ? other : null
}

/** The report of a port; `direct`: its direct link. */
export function reportOf(
  port: OpenPort,
  direct: JoinedLink | undefined,
  counters: Counters,
  byLport: PortsByLport,
): PortReport {
  const { key, row, link, joined, recorder } = port
  if (direct !== undefined) {
    const verdict = direct.suspend
      ? 'suspended'
      : joined === null || !hasGuest(joined)
        ? 'peer_unreachable'
        : judgeJoined(joined.row, counters)
    const why = joined === null || !hasGuest(joined) ? stoppedGuest : refusingGuest
    const reason = verdict === 'peer_unreachable' ? why : null
    return { key, counters: counters.read(row), link: verdict, reason, capture: recorder.state }
  }
  const report = { key, counters: counters.read(row), capture: recorder.state }
  if (link === null) return { ...report, link: null, reason: null }
  if (joined !== null && !hasGuest(joined) && !link.nio.suspend)
    return { ...report, link: 'peer_unreachable', reason: stoppedGuest }
  const facts = { ...link, row, joinedRow: joined?.row ?? null, finding: link.prober?.finding ?? 'unknown' }
  const verdict = judgeLink(facts, counters)
  return { ...report, link: verdict, reason: verdictReasonOf(verdict, link.nio, backOf(port, byLport)) }
}
