import type { PlannedStep } from './types.ts'

/** Order of the steps. Steps that destroy a disk or end a capture come after all steps that do not depend on them. */
const phases = {
  project: 0,
  'delete-link': 1,
  'delete-segment': 2,
  'create-node': 3,
  'retry-node': 3,
  'change-node': 4,
  'create-link': 5,
  'change-link': 5,
  'delete-node': 6,
  'recreate-node': 7,
  'late-link': 8,
  'end-capture': 9,
  tasks: 9,
  'start-node': 10,
} as const

/** The phase of a step. Steps of one phase do not depend on each other. */
export const phaseOf = ({ task, what }: PlannedStep): number =>
  task.type === 'delete-node' && what === 'segment'
    ? phases['delete-segment']
    : task.type === 'create-link' && task.isLate
      ? phases['late-link']
      : phases[task.type]

/** The steps by their phases; those of one phase in the order in which they were planned. */
export const inOrder = (steps: readonly PlannedStep[]): PlannedStep[] =>
  [...steps].sort((a, b) => phaseOf(a) - phaseOf(b))
