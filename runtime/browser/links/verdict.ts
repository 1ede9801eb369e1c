import type { LabLink } from '../../../src/client/patchbay.ts'

/** How bad a link is: `good` passes frames, `off` is down on request or with a node, `unknown` has no reading yet. */
export type LinkGrade = 'good' | 'bad' | 'off' | 'unknown'

type Verdict = NonNullable<LabLink['verdict']>

const sentences: Readonly<Record<Verdict, readonly [LinkGrade, string]>> = {
  ok: ['good', 'Frames pass in both directions.'],
  one_way: ['bad', 'Frames pass in one direction only.'],
  silent: ['bad', 'No frames have passed yet: a node may still be starting, or its port is down.'],
  peer_unreachable: ['bad', 'The other end refuses frames, or its device is down.'],
  suspended: ['off', 'The link is suspended: it drops all frames until you resume it.'],
  port_taken: ['bad', 'Another program uses the port of this link on the host.'],
  stopped: ['off', 'A node at one end is not running: start it.'],
  detached: ['bad', 'Another link took over a port, or a port no longer exists: give it back, or delete this link.'],
}

/** What the state of a link is, in a sentence with what to do. */
export function verdictOf({ verdict, verdict_reason }: Pick<LabLink, 'verdict' | 'verdict_reason'>): {
  grade: LinkGrade
  sentence: string
} {
  if (verdict === null) return { grade: 'unknown', sentence: 'The state of the link is not yet known.' }
  const [grade, usual] = sentences[verdict] ?? ['unknown', verdict]
  const isTold = verdict_reason !== null && verdict !== 'ok' && verdict !== 'suspended'
  return { grade, sentence: isTold ? sentenceOf(verdict_reason) : usual }
}

/** A reason of the service as a sentence. */
const sentenceOf = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`
