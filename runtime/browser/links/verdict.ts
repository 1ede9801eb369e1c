import type { LabLink } from '../../../src/client/patchbay.ts'

/** How bad a link is: `good` passes frames, `off` is down on request or with a node, `unknown` has no reading yet. */
export type LinkGrade = 'good' | 'bad' | 'off' | 'unknown'

type Verdict = NonNullable<LabLink['verdict']>

const sentences: Readonly<Record<Verdict, readonly [LinkGrade, string]>> = {
  ok: ['good', 'Frames pass both ways.'],
  one_way: ['bad', 'Frames pass one way only.'],
  silent: ['bad', 'Nothing has passed yet: a node may still be starting, or its port is down.'],
  peer_unreachable: ['bad', 'The other end refuses frames, or its device is down.'],
  suspended: ['off', 'The link is suspended: it drops all frames until it is resumed.'],
  port_taken: ['bad', 'Another program has the port of this link on the host.'],
  stopped: ['off', 'A node at an end does not run: start it.'],
  detached: ['bad', 'A port was taken over by another link, or is gone: delete this link and draw it again.'],
}

/** What the state of a link is, in a sentence with what to do. */
export function verdictOf({ verdict, verdict_reason }: Pick<LabLink, 'verdict' | 'verdict_reason'>): {
  grade: LinkGrade
  sentence: string
} {
  if (verdict === null) return { grade: 'unknown', sentence: 'The state of the link is not known yet.' }
  const [grade, usual] = sentences[verdict] ?? ['unknown', verdict]
  const isTold = verdict_reason !== null && verdict !== 'ok' && verdict !== 'suspended'
  return { grade, sentence: isTold ? sentenceOf(verdict_reason) : usual }
}

/** A reason of the service as a sentence. */
const sentenceOf = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`
