import { type Static, Type } from '@sinclair/typebox'
import { containerSettings } from '../../../../src/model/kinds/container.ts'
import type { KindNode } from '../../engine/nodes/kind.ts'

/** The properties in the record of a container. */
export type ContainerProperties = Static<typeof ContainerProperties>
export const ContainerProperties = Type.Object({
  image: Type.String({ default: '' }),
  /** The MD5 of the image, and the image that it is of. */
  sum: Type.Object(
    { image: Type.String(), md5: Type.Union([Type.String(), Type.Null()]) },
    { default: { image: '', md5: null } },
  ),
  mac_address: Type.String({ default: '' }),
  ...containerSettings,
})

/** The settings that a client changes. */
export const settingNames = ['image', 'mac_address', ...Object.keys(containerSettings)] as (
  | 'image'
  | 'mac_address'
  | keyof typeof containerSettings
)[]

export type ContainerKindNode = KindNode<ContainerProperties>
