import { type Static, Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { nullable } from '../../../../src/model/common.ts'
import { iouSettings } from '../../../../src/model/iou.ts'
import type { KindNode } from '../kind.ts'
import { mostApplicationId } from './netmap.ts'

/** What the record of a router keeps. */
export type IouProperties = Static<typeof IouProperties>
export const IouProperties = Type.Object({
  ...iouSettings,
  /** Name or path of the image. */
  path: Type.String({ default: '' }),
  /** 0: none yet. */
  application_id: Type.Integer({ minimum: 0, maximum: mostApplicationId, default: 0 }),
  /** MD5 of the image of that name. */
  sum: Type.Object({ image: Type.String(), md5: nullable(Type.String()) }, { default: { image: '', md5: null } }),
})

/** The settings that are kept as they are given. */
export const plainFields = Object.keys(iouSettings) as readonly (keyof typeof iouSettings)[]

/** Properties of which each is that of the record where it fits, else the default. */
export function fitting(stored: Readonly<Record<string, unknown>>): IouProperties {
  const properties = Object.entries(IouProperties.properties).map(([name, schema]) => [
    name,
    Check(schema, stored[name]) ? stored[name] : structuredClone(schema.default),
  ])
  return Object.fromEntries(properties) as IouProperties
}

/** The properties of a node of this kind: they were made by `fitting` when it was created, or read. */
export const propertiesOf = ({ record }: Pick<KindNode, 'record'>): IouProperties =>
  record.properties as unknown as IouProperties
