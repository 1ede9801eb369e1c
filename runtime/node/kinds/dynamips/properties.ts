import { type Static, Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
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

/** Properties of which each is that of the record where it fits, else the default. */
export function parseOrDefault(stored: Readonly<Record<string, unknown>>): DynamipsProperties {
  const properties = Object.entries(DynamipsProperties.properties).map(([name, schema]) => [
    name,
    Check(schema, stored[name]) ? stored[name] : schema.default,
  ])
  return Object.fromEntries(properties) as DynamipsProperties
}

/** The properties of a node of this kind: they were made by `fitting` when it was created, or read. */
export const propertiesOf = ({ record }: Pick<KindNode, 'record'>): DynamipsProperties =>
  record.properties as unknown as DynamipsProperties
