import type { LabLink, LabNode } from '../../../src/client/patchbay.ts'
import type { LabMap } from '../canvas/map-picture.tsx'

/** A lab file of `examples`, as scripts/example-lab.js makes a module of it. */
export interface ExampleLab {
  /** The name of the lab. */
  readonly lab: string
  readonly text: string
  readonly nodes: readonly {
    readonly name: string
    readonly kind: string
    readonly symbol?: string
    readonly x: number
    readonly y: number
  }[]
  /** The names of nodes that are linked. */
  readonly links: readonly (readonly [from: string, to: string])[]
}

/** The map of a lab that is not made yet. */
export function exampleMap({ nodes, links }: ExampleLab): LabMap {
  const state = { symbol: null, status: 'stopped', status_reason: null, ports: [], properties: {} }
  const plain = { verdict: null, verdict_reason: null, suspend: false, filters: {}, filters_ab: {}, filters_ba: {} }
  return {
    nodes: nodes.map(
      ({ name, kind, ...node }) => ({ ...state, ...node, node_id: name, name, node_type: kind }) as unknown as LabNode,
    ),
    links: links.map((ends, index) => {
      const at = ends.map((node_id) => ({ node_id, adapter_number: 0, port_number: index }))
      return { ...plain, link_id: String(index), nodes: at } as unknown as LabLink
    }),
    drawings: [],
  }
}
