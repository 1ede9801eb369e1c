import type { DesiredNode } from '../../labfile/desired.ts'
import type { LabNodeNotCreated } from '../../model/lab/node.ts'
import type { MissingImage } from './lab-images.ts'
import { type Plan, type PlannedStep, stepOf } from './types.ts'

/** Whether the plan leaves a node a placeholder when its images are missing: it is new, or is a placeholder already. */
export function canBePlaceholder({ found }: Plan, want: DesiredNode): boolean {
  const have = found.get(want)
  return have === undefined || (have.creationError !== undefined && have.node_type === want.kind)
}

/** The plan with placeholders for the nodes whose images are missing: they are neither created on a compute nor started. */
export function withPlaceholders(plan: Plan, missing: readonly MissingImage[]): Plan {
  const cannotRun = [...new Set(missing.map(({ want }) => want))].map((want) =>
    notCreated(
      want,
      missing.filter((it) => it.want === want),
    ),
  )
  const reasons = new Map(cannotRun.map((node) => [node.name, node.reason]))
  const steps = plan.steps.flatMap((step): PlannedStep[] => {
    const { task } = step
    const creationError = reasons.get('want' in task ? task.want.name : step.name)
    if (creationError === undefined) return [step]
    if (task.type === 'start-node') return []
    if (task.type === 'create-node') return [stepOf({ ...step, because: creationError }, { ...task, creationError })]
    return task.type === 'retry-node' || task.type === 'recreate-node' ? changeOfPlaceholder(step, task) : [step]
  })
  return { ...plan, steps, cannotRun }
}

function notCreated({ name, kind }: DesiredNode, missing: readonly MissingImage[]): LabNodeNotCreated {
  const images = missing.map(({ image }) => image)
  return { name, kind, images, reason: missing.map(({ message }) => message).join('; ') }
}

/** What the file changes of a placeholder that stays one. */
function changeOfPlaceholder(
  step: PlannedStep,
  task: Extract<PlannedStep['task'], { type: 'retry-node' | 'recreate-node' }>,
) {
  const { settings, properties, configs, name } = task.change
  const isEmpty = name === undefined && [settings, properties, configs].every((it) => Object.keys(it).length === 0)
  if (isEmpty) return []
  const changed = { do: 'update', what: step.what, name: step.name, how: 'live' } as const
  return [stepOf(changed, { ...task, type: 'change-node', held: [], stops: false })]
}
