import { type Static, Type } from '@sinclair/typebox'
import { DynamipsNode } from '../../../../src/kinds/dynamips.ts'
import type { KindNode } from '../kind.ts'

const { platform, ram, idlepc, usage } = DynamipsNode.properties

/** The properties in the record of a router. */
export type DynamipsProperties = Static<typeof DynamipsProperties>
export const DynamipsProperties = Type.Object({
  platform: Type.Union(platform.anyOf, { default: 'c7200' }),
  /** Name or path of the image. */
  image: Type.String({ default: '' }),
  ram: Type.Integer({ ...ram, default: 512 }),
  idlepc: Type.Union(idlepc.anyOf, { default: null }),
  usage: Type.String({ ...usage, default: '' }),
  /** The control port of its dynamips; 0: none yet. */
  control_port: Type.Integer({ minimum: 0, maximum: 65535, default: 0 }),
  /** Whether the last start was for a measurement, and not for the user. */
  is_measured: Type.Boolean({ default: false }),
})

export type DynamipsKindNode = KindNode<DynamipsProperties>
