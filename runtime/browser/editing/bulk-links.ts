import type { LabLink, LabLinkEnd, LabNode } from '../../../src/client/patchbay.ts'
import { endsFor } from '../map/ports.ts'

type Ends = readonly [LabLinkEnd, LabLinkEnd]

/** Whether a name matches a pattern, in which `*` stands for any text and `?` for a character; without regard to case. */
export function matches(name: string, pattern: string): boolean {
  const parts = [...pattern.trim()].map((it) =>
    it === '*' ? '.*' : it === '?' ? '.' : it.replace(/[\\^$.*+?()[\]{}|/-]/, '\\$&'),
  )
  return new RegExp(`^${parts.join('')}$`, 'iu').test(name)
}

/**
 * Links from each node of a pattern to each of another, by the first free ports. Pairs that are linked already are left out;
 * `reasons` says for which pairs there are no ports.
 */
export function linksBetween(
  nodes: readonly LabNode[],
  links: readonly LabLink[],
  [from, to]: readonly [string, string],
): { readonly ends: readonly Ends[]; readonly reasons: readonly string[] } {
  const all = [...links]
  const [ends, reasons]: [Ends[], string[]] = [[], []]
  for (const a of nodes.filter(({ name }) => matches(name, from)))
    for (const b of nodes.filter(({ name }) => matches(name, to))) {
      const isLinked = all.some((link) =>
        [a, b].every(({ node_id }) => link.nodes.some((end) => end.node_id === node_id)),
      )
      if (a === b || isLinked) continue
      const found = endsFor(a, b, all)
      if ('reason' in found) {
        reasons.push(found.reason)
        continue
      }
      ends.push(found.ends)
      all.push({ nodes: [...found.ends] } as unknown as LabLink)
    }
  return { ends, reasons }
}
