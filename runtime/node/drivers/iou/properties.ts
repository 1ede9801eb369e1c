import { type Static, Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { iouSettings } from '../../../../src/model/kinds/iou.ts'
import { nullable } from '../../../../src/model/schema/fields.ts'
import type { KindNode } from '../../engine/nodes/kind.ts'
import type { IouImageFacts } from './image.ts'
import { maxApplicationId } from './netmap.ts'

/** The properties in the record of a router. */
export type IouProperties = Static<typeof IouProperties>
export const IouProperties = Type.Object({
  ...iouSettings,
  path: Type.String({ default: '' }),
  /** 0: none yet. */
  application_id: Type.Integer({ minimum: 0, maximum: maxApplicationId, default: 0 }),
  /** MD5 of the image of that name. */
  sum: Type.Object({ image: Type.String(), md5: nullable(Type.String()) }, { default: { image: '', md5: null } }),
  /** Whether a start checks the licence file. */
  license_check: Type.Boolean({ default: true }),
  /** Name of the last link to the image in the directory of the node. */
  link: Type.String({ pattern: '^[^/]*$', default: '' }),
})

/** Settings that are stored without a change. */
export const plainFields = Object.keys(iouSettings) as readonly (keyof typeof iouSettings)[]

/** The properties with the defaults of the image, when `use_default_iou_values` is set. */
export function withDefaultsOf(properties: IouProperties, facts: IouImageFacts | undefined): IouProperties {
  if (!properties.use_default_iou_values || facts === undefined) return properties
  const { ram, nvram } = iouSettings
  const { defaultRam, defaultNvram } = facts
  return {
    ...properties,
    ...(Check(ram, defaultRam) && { ram: defaultRam }),
    ...(Check(nvram, defaultNvram) && { nvram: defaultNvram }),
  }
}

export type IouKindNode = KindNode<IouProperties>
