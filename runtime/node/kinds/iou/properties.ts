import { type Static, Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { iouSettings } from '../../../../src/kinds/iou.ts'
import { nullable } from '../../../../src/schema/fields.ts'
import type { KindNode } from '../kind.ts'
import type { IouImageFacts } from './image.ts'
import { maxApplicationId } from './netmap.ts'

/** What the record of a router keeps. */
export type IouProperties = Static<typeof IouProperties>
export const IouProperties = Type.Object({
  ...iouSettings,
  /** Name or path of the image. */
  path: Type.String({ default: '' }),
  /** 0: none yet. */
  application_id: Type.Integer({ minimum: 0, maximum: maxApplicationId, default: 0 }),
  /** MD5 of the image of that name. */
  sum: Type.Object({ image: Type.String(), md5: nullable(Type.String()) }, { default: { image: '', md5: null } }),
  /** Whether the licence file is looked at before a start. */
  license_check: Type.Boolean({ default: true }),
  /** Name of the last link to the image that was made in the directory of the node. */
  link: Type.String({ pattern: '^[^/]*$', default: '' }),
})

/** The settings that are kept as they are given. */
export const plainFields = Object.keys(iouSettings) as readonly (keyof typeof iouSettings)[]

/** The same router with what the image has by default, as far as it says, where the router is to have that. */
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

/** A node of this kind. */
export type IouKindNode = KindNode<IouProperties>
