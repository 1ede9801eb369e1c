import type { NodeKindName } from '../model/kinds/node.ts'

/** Kinds whose nodes are segments: they are under `segments` of a lab file, and are no nodes for people. */
export const segmentKinds = ['switch', 'hub', 'nat', 'cloud'] as const satisfies readonly NodeKindName[]
export type SegmentKind = (typeof segmentKinds)[number]
/** The kind of the management network. */
export const managementKind: SegmentKind = 'nat'
export const isSegmentKind = (kind: string): kind is SegmentKind => (segmentKinds as readonly string[]).includes(kind)
