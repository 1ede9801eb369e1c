import { expect, test } from 'vitest'
import type { EngineNode } from '../../../../runtime/node/engine/nodes/engine-node.ts'
import { requireRoomForNode } from '../../../../runtime/node/engine/nodes/node-limits.ts'
import type { OpenProject } from '../../../../runtime/node/engine/projects/open-project.ts'
import { defaultLabLimits } from '../../../../src/labs/lab/lab-limits.ts'

const limits = { ...defaultLabLimits, lab_mb: 1, lab_objects: 20 }
const usage = (kib: number) => ({ usage: 'x'.repeat(kib * 1024) })

test('the records of all nodes of a project have a limit together, and one that is too large already may stay so', () => {
  const node = { bytes: 60 * 1024 } as EngineNode
  const nodes = new Map(Array.from({ length: 16 }, (_, index) => [String(index), node]))
  const project = { nodes } as unknown as OpenProject
  requireRoomForNode(project, usage(60), limits)
  const refused = { status: 413, code: 'limit-reached', message: expect.stringContaining('limits.lab_mb') }
  expect(() => requireRoomForNode(project, usage(70), limits)).toThrow(expect.objectContaining(refused))
  const small = { ...limits, lab_mb: 0.5 }
  requireRoomForNode(project, usage(50), small, node)
  expect(() => requireRoomForNode(project, usage(70), small, node)).toThrow(expect.objectContaining(refused))
})
