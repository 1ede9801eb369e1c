import { ApiError, conflict } from '../../lib/errors/api-error.ts'
import { compareText } from '../../lib/text/compare-text.ts'
import type { Compute, ComputeCapabilities } from '../../model/compute.ts'
import { retryAfter } from './member-errors.ts'

/** Most labels in a message, and most computes of each label there. */
const maxShown = 20
const maxNames = 3

/** The keys of the labels that a compute may give itself: the others are for the administrator. */
const foundKeys: ReadonlySet<string> = new Set(['kvm', 'arch', 'platform'])

const keyOf = (label: string): string => label.split('=', 1)[0]?.toLowerCase() ?? ''

/** All labels of a compute: those that it was given, and those that it found itself, unless it was given others of the same key. */
export function labelsOf({
  labels = [],
  capabilities,
}: {
  labels?: Compute['labels'] | undefined
  capabilities: ComputeCapabilities
}): string[] {
  const given = new Set(labels.map(keyOf))
  const found = (capabilities.labels ?? []).filter((label) => foundKeys.has(keyOf(label)))
  const all = [...found, ...capabilities.node_types.map((kind) => `kind=${kind}`)]
  return [...labels, ...all.filter((label) => !given.has(keyOf(label)))]
}

/** Whether a compute with these labels has all wanted ones. A wanted word without a value stands for any value. */
export function hasLabels(labels: readonly string[], wanted: readonly string[]): boolean {
  const has = new Set(labels.flatMap((label) => [label.toLowerCase(), keyOf(label)]))
  return wanted.every((label) => has.has(label.toLowerCase()))
}

/** A compute as a message names it. */
export interface Labelled {
  readonly name: string
  readonly labels: readonly string[]
  readonly isConnected: boolean
}

/** Why no compute with the wanted labels takes a node: 409, or 503 when one that has them is not connected. */
export function withoutLabels(wanted: readonly string[], computes: readonly Labelled[]): ApiError {
  const fitting = computes.filter(({ labels }) => hasLabels(labels, wanted))
  const away = fitting.filter(({ isConnected }) => !isConnected)
  const words = wanted.join(' and ')
  if (away.length > 0)
    return new ApiError(503, `placement.labels: the computes with ${words} are not connected: ${namesOf(away)}`, {
      code: 'compute-unreachable',
      headers: retryAfter,
    })
  if (fitting.length > 0)
    return conflict(`placement.labels: the computes with ${words} accept no new projects: ${namesOf(fitting)}`)
  return conflict(`placement.labels: no compute has ${words}; ${labelsText(wanted, computes)}`, {
    code: 'label-missing',
  })
}

function labelsText(wanted: readonly string[], computes: readonly Labelled[]): string {
  const asksKind = wanted.some((label) => keyOf(label) === 'kind')
  const found = new Map<string, Labelled[]>()
  for (const compute of computes)
    for (const label of compute.labels)
      if (asksKind || keyOf(label) !== 'kind') found.set(label, [...(found.get(label) ?? []), compute])
  const shown = [...found].sort(([a], [b]) => compareText(a, b)).map(([label, at]) => `${label} (${namesOf(at)})`)
  if (shown.length === 0) return 'no compute has any label'
  const more = shown.length > maxShown ? ` and ${shown.length - maxShown} more` : ''
  return `there are ${shown.slice(0, maxShown).join(', ')}${more}`
}

function namesOf(computes: readonly Labelled[]): string {
  const more = computes.length > maxNames ? ` and ${computes.length - maxNames} more` : ''
  return (
    computes
      .slice(0, maxNames)
      .map(({ name }) => name)
      .join(', ') + more
  )
}
