import { type Static, Type } from '@sinclair/typebox'
import { PcEngine } from '../../../../src/kinds/pc.ts'
import type { KindNode } from '../kind.ts'

/** What the record of a pc keeps. */
export type PcProperties = Static<typeof PcProperties>
export const PcProperties = Type.Object({
  /** Unique in its project; the end of the MAC address. */
  pc_id: Type.Integer({ minimum: 0, default: 0 }),
  /** That of the last start. */
  engine: Type.Optional(PcEngine),
})

/** A node of this kind. */
export type PcKindNode = KindNode<PcProperties>
