import type { DesiredLink } from '../../labfile/desired.ts'
import { impairmentFields } from '../../labfile/document.ts'
import { nameKey } from '../../model/lab/names.ts'
import { isKnownKind } from '../../model/lab/node.ts'
import { portsOf } from '../../model/lab/ports.ts'
import type { Filters } from '../../model/schema/filters.ts'
import type { LinkRecord, NodeRecord } from '../lab/document.ts'
import { isManagedLink, type LinkIndex, nameOfLink, portKey } from './actual-links.ts'
import type { NodeDecision } from './diff-node.ts'
import { differenceOf } from './difference-text.ts'
import { same } from './json-equal.ts'
import type { ResolvedLink } from './segment-ports.ts'
import {
  type Actual,
  type LinkPart,
  type PlannedStep,
  type PlanOptions,
  type PlanPart,
  stepOf,
  type WantedEnd,
  type WantedLink,
} from './types.ts'

/** What becomes of a link of the file. */
interface LinkDecision extends PlanPart {
  /** Links that others made at its ports: they are deleted. */
  readonly replaced: readonly LinkRecord[]
  /** The id of a link that needs no step, and now counts as made from the file. */
  readonly marked?: string
}

/** What a link is compared by, beside the file. */
interface LinkContext {
  readonly actual: Actual
  readonly options: PlanOptions
  readonly index: LinkIndex
  /** Keys of the names that the file gives links. */
  readonly linkNames: ReadonlySet<string>
  /** What becomes of a node of the file, by the key of its name. */
  readonly nodes: ReadonlyMap<string, NodeDecision>
}

const nothing = { steps: [], withheld: [], extra: [], replaced: [] } as const

/** Compares a link with the file. */
export const diffLink = (resolved: ResolvedLink, context: LinkContext): LinkDecision =>
  resolved.have === undefined ? createLink(resolved.link, context) : changeLink(resolved, resolved.have, context)

/** Makes a link, unless a port of it is missing or in use. */
function createLink(link: WantedLink, { options, index, nodes }: LinkContext): LinkDecision {
  const step = { do: 'create', what: 'link', name: linkName(link), how: 'live' } as const
  const ends = link.ends.map((end) => ({ end, decision: nodes.get(nameKey(end.node)) as NodeDecision }))
  // A port that a withheld change would make.
  const lacking = ends.find(
    ({ end, decision: { outcome, next, match } }) =>
      outcome === 'outdated' && !hasPort((next ?? match.have) as NodeRecord, end),
  )?.decision
  if (lacking?.flag !== undefined) {
    const because = `${lacking.match.want.name} lacks the port until it is changed`
    return { ...nothing, withheld: [{ ...step, because, flag: lacking.flag }] }
  }
  const replaced = ends.flatMap(({ end, decision: { match } }) => {
    const other = match.have && index.atPort.get(portKey({ ...end, node_id: match.have.node_id }))
    return other !== undefined && !isManagedLink(other) ? [other] : []
  })
  if (replaced.length > 0 && options.delete_extra !== true) {
    const because = 'a link that is not of the file is at its port'
    return { ...nothing, withheld: [{ ...step, because, flag: 'delete_extra' }] }
  }
  const isLate = ends.some(({ decision }) => decision.outcome === 'recreated')
  return { ...nothing, replaced, steps: [stepOf(step, { type: 'create-link', link, isLate })] }
}

function changeLink({ link, want }: ResolvedLink, have: LinkRecord, context: LinkContext): LinkDecision {
  const { actual, options } = context
  const isTurned = isTurnedLink(link, have, context)
  const parts = linkDifferences(link, have, want, isTurned, context)
  const because = linkDifferenceText(parts, link, have, isTurned)
  const step = { do: 'update', what: 'link', name: linkName(link), how: 'live', because } as const
  const { link_id } = have
  const file = want.capture?.file
  const ended =
    want.capture === undefined
      ? endCapture(have, actual, 'no capture')
      : file !== undefined && file !== captureName(have.capture)
        ? endCapture(have, actual, `capture in ${file}`, want.capture)
        : []
  if (parts.length > 0)
    return { ...nothing, steps: [stepOf(step, { type: 'change-link', link_id, link, isTurned, parts }), ...ended] }
  const isMarked = have.lastApplied === undefined && options.take_over === true
  return { ...nothing, steps: ended, ...(isMarked && { marked: link_id }) }
}

/** Deletes a link. */
export const deleteLink = (link: LinkRecord, { nodes }: Actual, because: string): PlannedStep =>
  stepOf(
    { do: 'delete', what: 'link', name: nameOfLink(link, nodes), how: 'live', because },
    { type: 'delete-link', link_id: link.link_id },
  )

/** Ends the capture of a link that stays. One that a lab file did not start is left alone. */
export function endCapture(
  link: LinkRecord,
  { nodes }: Actual,
  because: string,
  next?: WantedLink['capture'],
): PlannedStep[] {
  const { link_id, capture } = link
  if (capture?.managed !== true) return []
  const step = { do: 'update', what: 'link', name: nameOfLink(link, nodes), how: 'live', because } as const
  return [stepOf(step, { type: 'end-capture', link_id, next })]
}

/** Whether the ends of a link are in the other order. */
function isTurnedLink({ ends: [first] }: WantedLink, { nodes: [a] }: LinkRecord, { nodes }: LinkContext): boolean {
  const node_id = nodes.get(nameKey(first.node))?.match.have?.node_id as string
  return a !== undefined && portKey({ ...first, node_id }) !== portKey(a)
}

/** All filters of both directions, from the first wanted end to the second and back. */
function filtersOf(have: LinkRecord, isTurned: boolean): readonly [Filters, Filters] {
  const [ab, ba] = [allFilters(have.filters, have.filters_ab), allFilters(have.filters, have.filters_ba)]
  return isTurned ? [ba, ab] : [ab, ba]
}

function linkDifferences(
  link: WantedLink,
  have: LinkRecord,
  want: DesiredLink,
  isTurned: boolean,
  { options, linkNames }: LinkContext,
): LinkPart[] {
  const isManaged = isManagedLink(have) || options.take_over === true
  const [ab, ba] = filtersOf(have, isTurned)
  const isGiven = isManaged || Object.keys(want.filters_ab).length + Object.keys(want.filters_ba).length > 0
  const parts: LinkPart[] = []
  if (isGiven && !(same(ab, want.filters_ab) && same(ba, want.filters_ba))) parts.push('impairment')
  if (link.suspend !== have.suspend && (isManaged || link.suspend)) parts.push(link.suspend ? 'down' : 'up')
  const hasOther = have.name != null && linkNames.has(nameKey(have.name))
  if (link.name !== (have.name ?? null) && (isManaged || link.name !== null || hasOther)) parts.push('name')
  if (want.capture !== undefined && have.capture === null) parts.push('capture')
  return parts
}

/** The differences of a link, in the words of the file. */
function linkDifferenceText(parts: readonly LinkPart[], link: WantedLink, have: LinkRecord, isTurned: boolean): string {
  const from = impairmentFields(...filtersOf(have, isTurned))
  const to = impairmentFields(allFilters(link.filters, link.filters_ab), allFilters(link.filters, link.filters_ba))
  const changed = [...new Set([...Object.keys(from), ...Object.keys(to)])].filter((key) => !same(from[key], to[key]))
  const texts = parts.map((part) => {
    if (part === 'impairment' && changed.length > 0)
      return `impairment: ${changed.map((key) => differenceOf(key, from[key], to[key])).join(', ')}`
    return part === 'name' ? differenceOf('name', have.name, link.name) : part
  })
  return texts.join(', ')
}

/** The name of the file of a capture, as it was asked for. */
export const captureName = (capture: LinkRecord['capture']): string | undefined =>
  capture?.requestedName ?? capture?.fileName

const hasPort = (node: NodeRecord, { adapter_number, port_number }: WantedEnd): boolean =>
  !isKnownKind(node.node_type) ||
  portsOf(node).some((port) => port.adapter_number === adapter_number && port.port_number === port_number)

/** The name of a link for people. */
const linkName = ({ name, ends }: Pick<WantedLink, 'name' | 'ends'>): string =>
  name ?? ends.map(({ node, adapter_number, port_number }) => `${node}:${adapter_number}/${port_number}`).join(' -- ')

/** All filters of one direction that do something. */
function allFilters(both: Filters, one: Filters): Filters {
  const all = Object.entries({ ...both, ...one }).filter(([, value]) => {
    const [first] = value as readonly unknown[]
    return first !== 0 && first !== ''
  })
  return Object.fromEntries(all)
}
