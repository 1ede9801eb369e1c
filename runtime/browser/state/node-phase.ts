import type { LabJob, LabNode } from '../../../src/client/patchbay.ts'

/** What a running job does with a node; `booting`: it is started, and what makes it ready does not hold yet. */
export type NodePhase = 'starting' | 'stopping' | 'booting'

const phasesOfActions: Partial<Readonly<Record<LabJob['action'], NodePhase>>> = {
  start: 'starting',
  resume: 'starting',
  reload: 'starting',
  stop: 'stopping',
  suspend: 'stopping',
}

/** The nodes with which running jobs are busy, by id. */
export function phasesIn(jobs: readonly LabJob[]): Map<string, NodePhase> {
  const phases = new Map<string, NodePhase>()
  for (const { status, action, nodes } of jobs) {
    const phase = phasesOfActions[action]
    if (status !== 'running' || phase === undefined) continue
    for (const { node_id, state } of nodes) {
      if (state === 'asked') phases.set(node_id, phase)
      else if (state === 'unready') phases.set(node_id, 'booting')
    }
  }
  return phases
}

/** What a node does or is, as styles name it: such as `booting` or `started`. */
export const stateName = ({ node_id, status }: LabNode, phases: ReadonlyMap<string, NodePhase>): string =>
  phases.get(node_id) ?? status

/** The word of people for that: a node that is started is running. */
export const stateWord = (name: string): string => (name === 'started' ? 'running' : name)
