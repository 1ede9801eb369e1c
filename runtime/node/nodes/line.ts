import type { PortRef } from '../../../src/host-agent.ts'
import type { LineType } from '../../../src/model/capture.ts'
import type { LabNode } from './lab-node.ts'

/** What a port of a node has a line for. */
export const lineOfPort = (node: LabNode, port: PortRef): LineType =>
  node.kind.wiring?.lineOf?.(node, port) ?? 'ethernet'
