import { type Static, Type } from '@sinclair/typebox'
import { PcEngine } from '../../../../src/model/kinds/pc.ts'
import type { KindNode } from '../../engine/nodes/kind.ts'

/** The properties in the record of a pc. */
export type PcProperties = Static<typeof PcProperties>
export const PcProperties = Type.Object({
  /** Unique in the project; the last bytes of the MAC address. */
  pc_id: Type.Integer({ minimum: 0, default: 0 }),
  /** The engine of the last start. */
  engine: Type.Optional(PcEngine),
})

export type PcKindNode = KindNode<PcProperties>
