import { isAlwaysOn } from '../../model/kinds/node.ts'
import type { NodeDecision } from './diff-node.ts'
import { type Actual, type PlannedStep, type PlanOptions, stepOf } from './types.ts'

/** Starts a node that a step stops, and one that shall run or become ready. */
export function startNode(
  { match: { want, have }, isStopped }: NodeDecision,
  actual: Actual,
  options: PlanOptions,
): PlannedStep[] {
  const { name, kind, ready, segment } = want
  const isRunning = have !== undefined && actual.running.has(have.node_id)
  // A start waits until the node is ready, also before nodes that start after it, and `up` fails when it does not become ready.
  const isUnready = isRunning && ready !== undefined && actual.unready?.has(have.node_id) === true
  const isWanted = options.start === true && want.start && (!isRunning || isUnready)
  if (!isStopped && !isWanted) return []
  // Such a node runs as soon as it is created.
  if (have === undefined && isAlwaysOn(kind)) return []
  const reason = isStopped ? { because: 'it was stopped for its change' } : isUnready && { because: 'it was not ready' }
  const what = segment === undefined ? 'node' : 'segment'
  return [stepOf({ do: 'start', what, name, how: 'live', ...reason }, { type: 'start-node', name })]
}
