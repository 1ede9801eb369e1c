import { inMebibytes, jsonBytes, type LabLimits, limitReached, mebibyte } from '../../../../src/labs/lab/lab-limits.ts'
import type { OpenProject } from '../projects/open-project.ts'
import type { EngineNode } from './engine-node.ts'

/** 413 when a project would have too many nodes, or too much in their records, after the input of a new node or of the change of one. */
export function requireRoomForNode(
  { nodes }: OpenProject,
  input: object,
  limits: LabLimits,
  changed?: EngineNode,
): void {
  if (changed === undefined && nodes.size >= limits.lab_objects)
    throw limitReached(
      `The project is limited to ${limits.lab_objects} nodes on this compute: delete some first`,
      'lab_objects',
    )
  const growth = jsonBytes(input) - (changed?.bytes ?? 0)
  if (growth <= 0) return
  const after = [...nodes.values()].reduce((sum, { bytes }) => sum + bytes, growth)
  if (after > limits.lab_mb * mebibyte)
    throw limitReached(
      `The nodes of the project are limited to ${limits.lab_mb} MiB of records on this compute and would have ${inMebibytes(after)}`,
      'lab_mb',
    )
}
