import { badRequest } from '../../lib/errors/api-error.ts'
import type { LabJobNode } from '../../model/lab/job.ts'
import { nameKey } from '../../model/lab/names.ts'
import type { NodeRecord } from '../lab/document.ts'

/** One node of a job. */
export interface JobStep {
  readonly record: NodeRecord
  /** Steps that must be done before this one. */
  before: readonly JobStep[]
  state: LabJobNode['state']
  reason: string | null
  /** The image that its compute lacks. */
  image?: string | undefined
  /** Resolve when the request to the node has ended or was skipped, and when the step has ended. */
  readonly requested: Promise<void>
  readonly over: Promise<void>
  readonly settle: { requested(): void; over(): void }
}
export function stepOf(record: NodeRecord): JobStep {
  const settle = { requested() {}, over() {} }
  const settled = (of: keyof typeof settle) =>
    new Promise<void>((resolve) => {
      settle[of] = resolve
    })
  return {
    record,
    before: [],
    state: 'waiting',
    reason: null,
    requested: settled('requested'),
    over: settled('over'),
    settle,
  }
}

/** Sets `before` of each step, by the names in `after`; names of other nodes are ignored. 400 with the names of a cycle. */
export function putInOrder(steps: readonly JobStep[]): void {
  const byName = new Map(steps.map((step) => [nameKey(step.record.name), step]))
  for (const step of steps)
    step.before = step.record.after.map((name) => byName.get(nameKey(name))).filter((it) => it !== undefined)
  const settled = new Set<JobStep>()
  for (const first of steps) {
    // Without recursion: a chain may be as long as the lab has nodes.
    const path: { step: JobStep; next: number }[] = [{ step: first, next: 0 }]
    const onPath = new Set([first])
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const next = settled.has(top.step) ? undefined : top.step.before[top.next++]
      if (next === undefined) {
        settled.add(top.step)
        onPath.delete(top.step)
        path.pop()
      } else if (onPath.has(next)) {
        const names = path.slice(path.findIndex(({ step }) => step === next)).map(({ step }) => step.record.name)
        throw badRequest(`after: these nodes wait for each other in a cycle: ${[...names, names[0]].join(', ')}`)
      } else if (!settled.has(next)) {
        path.push({ step: next, next: 0 })
        onPath.add(next)
      }
    }
  }
}
