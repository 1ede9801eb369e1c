import type { LabProject } from '../../../src/client/patchbay.ts'
import { type LinkGrade, verdictOf } from '../links/verdict.ts'

/** What the card of a lab says of its links; undefined: nothing, as none is known, or all are down with their nodes. */
export function linksLine({
  links,
  worst_verdict: verdict,
  links_passing: passing,
}: NonNullable<LabProject['counts']>): { readonly grade: LinkGrade; readonly text: string } | undefined {
  if (verdict === undefined || (verdict === 'stopped' && !passing)) return undefined
  const { grade, sentence } = verdictOf({ verdict, verdict_reason: null })
  if (grade !== 'good' && verdict !== 'stopped') return { grade, text: `Worst link: ${sentence}` }
  // An older service does not say how many.
  if (verdict === 'ok' && (passing ?? links) === links) return { grade, text: 'All links pass frames.' }
  return { grade: 'off', text: `${passing} of ${links} links ${passing === 1 ? 'passes' : 'pass'} frames.` }
}
