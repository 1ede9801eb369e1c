import type { PortRef } from '../../../../src/host-agent.ts'
import type { LineType } from '../../../../src/model/capture.ts'
import type { EngineNode } from './engine-node.ts'

/** The line type of a port. */
export const lineOfPort = (node: EngineNode, port: PortRef): LineType =>
  node.kind.wiring?.lineOf?.(node, port) ?? 'ethernet'
