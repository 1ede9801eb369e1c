import { type Static, Type } from '@sinclair/typebox'
import { natSettings } from '../../../../src/model/kinds/nat.ts'
import type { KindNode } from '../../engine/nodes/kind.ts'

/** The properties in the record of a nat. */
export type NatProperties = Static<typeof NatProperties>
export const NatProperties = Type.Object({
  ...natSettings,
  ipv6_prefix: Type.String({ ...natSettings.ipv6_prefix, default: '' }),
})

/** A node of this kind. */
export type NatKindNode = KindNode<NatProperties>
