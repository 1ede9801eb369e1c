import { isIPv6 } from 'node:net'
import type { SwitchNio, Verdict } from '../../keeper/protocol/protocol.ts'
import { at, type Counters } from './core/counters.ts'
import { isDeviceLost } from './device.ts'
import type { ProbeFinding } from './prober.ts'

/** Frames of the guest without a received one, after which a link counts as one-way. */
const unanswered = 16

export interface LinkFacts {
  readonly row: number
  readonly nio: SwitchNio
  /** Index of the device when the link was opened; null for a UDP link. */
  readonly deviceIndex: number | null
  /** Row of the port at the other end, if it is in this switch. */
  readonly joinedRow: number | null
  readonly finding: ProbeFinding
  /** Counters of the port when the link was attached. */
  readonly base: { readonly sent: number; readonly received: number }
  /** Refusals before the attach, or before a later frame of the other end. */
  readonly refusedBefore: number
}

/** The verdict on a link from its counters and probes. */
export function judgeLink(facts: LinkFacts, counters: Counters): Verdict {
  const { row, nio, deviceIndex, joinedRow, finding, base } = facts
  const get = (column: number) => counters.get(row, column)
  if (nio.suspend) return 'suspended'
  if (joinedRow !== null) return judgeJoined(joinedRow, counters)
  if (get(at.linkFailed) > 0 || (nio.type !== 'udp' && isDeviceLost(nio, deviceIndex))) return 'peer_unreachable'
  const isRefused =
    get(at.refused) > facts.refusedBefore &&
    get(at.outFrames) === get(at.outAtRefusal) &&
    get(at.inFrames) === get(at.inAtRefusal)
  if (isRefused) return 'peer_unreachable'
  if (finding === 'answers') return 'ok'
  if (finding === 'hears_nothing') return 'one_way'
  if (finding === 'lost') return 'silent'
  const [sent, received] = [get(at.outFrames) - base.sent, get(at.inFrames) - base.received]
  if (sent === 0 && received === 0) return 'silent'
  if (sent === 0 || received === 0) return 'one_way'
  return get(at.outFrames) - get(at.outAtLastIn) >= unanswered ? 'one_way' : 'ok'
}

/**
 * The verdict on a link to a port of this switch: whether its guest takes frames. A program that is starting refuses the first ones: it has not
 * bound its socket yet.
 */
export function judgeJoined(row: number, counters: Counters): 'ok' | 'peer_unreachable' {
  const get = (column: number) => counters.get(row, column)
  const hasSpokenSince = get(at.outFrames) > get(at.outAtGuestRefusal)
  // A frame is counted before it is sent, and refused at once.
  const hasTakenSince = get(at.inFrames) > get(at.inAtGuestRefusal)
  return get(at.guestRefused) > 0 && !hasSpokenSince && !hasTakenSince ? 'peer_unreachable' : 'ok'
}

export const refusingGuest = 'the program of the node at the other end does not accept frames'

/** Why a link with the verdict `peer_unreachable` passes no frames; `back`: the link of this switch at its other end, if any. */
export function verdictReasonOf(verdict: Verdict, nio: SwitchNio, back: SwitchNio | null): string | null {
  if (verdict !== 'peer_unreachable') return null
  if (nio.type !== 'udp') return `the network device ${nio.device} is down or gone`
  if (back?.type === 'udp' && isIPv6(back.rhost) !== isIPv6(nio.rhost)) {
    const [here, there] = [nio, back].map(({ rhost }) => `${isIPv6(rhost) ? 'IPv6' : 'IPv4'} (rhost ${rhost})`)
    return `this end uses ${here}, the other end ${there}: use addresses of one family at both`
  }
  if (back !== null) return refusingGuest
  return `nothing listens on UDP port ${nio.rport} of ${nio.rhost}`
}
