import { type Static, Type } from '@sinclair/typebox'
import { DynamipsNode } from '../../../../src/kinds/dynamips.ts'
import type { KindNode } from '../kind.ts'

const { platform, ram, idlepc, usage } = DynamipsNode.properties

/** What the record of a router keeps. */
export type DynamipsProperties = Static<typeof DynamipsProperties>
export const DynamipsProperties = Type.Object({
  platform: Type.Union(platform.anyOf, { default: 'c7200' }),
  /** Name or path of the image. */
  image: Type.String({ default: '' }),
  ram: Type.Integer({ ...ram, default: 512 }),
  idlepc: Type.Union(idlepc.anyOf, { default: null }),
  usage: Type.String({ ...usage, default: '' }),
  /** Where its dynamips takes commands while it runs; 0: nowhere yet. */
  control_port: Type.Integer({ minimum: 0, maximum: 65535, default: 0 }),
  /** Whether it was last started to be measured, so that it does not run for its user. */
  is_measured: Type.Boolean({ default: false }),
})

/** A node of this kind. */
export type DynamipsKindNode = KindNode<DynamipsProperties>
