import type { LabProject } from '../../../src/client/patchbay.ts'
import { byName } from '../parts/by-name.ts'

/** The orders of the list of labs. The first one is the default. */
export const orders = ['name', 'changed', 'running'] as const
export type LabOrder = (typeof orders)[number]

/** How much of a lab runs: closed, open, and by the number of running nodes. */
const running = ({ status, counts }: LabProject): number => (status === 'opened' ? 1 + (counts?.running ?? 0) : 0)

/** An older compute does not say when a lab was changed. */
const changed = ({ changed_at = '' }: LabProject): number => Date.parse(changed_at) || 0

const comparisons: Readonly<Record<LabOrder, (a: LabProject, b: LabProject) => number>> = {
  name: () => 0,
  changed: (a, b) => changed(b) - changed(a),
  running: (a, b) => running(b) - running(a),
}

/** Labs in an order; those that are equal in it are by their names. */
export const inOrder = (labs: readonly LabProject[], order: LabOrder): LabProject[] =>
  labs.toSorted((a, b) => comparisons[order](a, b) || byName(a, b))
