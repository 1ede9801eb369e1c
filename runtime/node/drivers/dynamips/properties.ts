import { type Static, Type } from '@sinclair/typebox'
import { DynamipsNode, dynamipsSettings } from '../../../../src/model/kinds/dynamips.ts'
import { completed, type Hardware } from '../../../../src/model/kinds/dynamips-hardware.ts'
import type { KindNode } from '../../engine/nodes/kind.ts'

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
  ...dynamipsSettings,
  /** Empty: generated. */
  mac_addr: Type.String({ default: '' }),
  /** Whether the NVRAM has not got the configurations of a client yet. */
  is_config_new: Type.Boolean({ default: false }),
  /** The port at which its dynamips serves the console to the keeper; 0: none. */
  console_port: Type.Integer({ minimum: 0, maximum: 65535, default: 0 }),
  /** The control port of its dynamips; 0: none yet. */
  control_port: Type.Integer({ minimum: 0, maximum: 65535, default: 0 }),
  /** Whether the last start was for a measurement, and not for the user. */
  is_measured: Type.Boolean({ default: false }),
})

export type DynamipsKindNode = KindNode<DynamipsProperties>

/** The hardware with its defaults. A damaged record has no cards. */
export function hardwareOf({ record }: Pick<DynamipsKindNode, 'record'>): Hardware {
  const found = completed(record.properties)
  if (typeof found !== 'string') return found
  const { platform } = record.properties
  const empty = { slot0: '', slot1: '', slot2: '', slot3: '', slot4: '', slot5: '', slot6: '' } as const
  return { platform, chassis: '', ...empty, wic0: '', wic1: '', wic2: '' }
}

/** First byte of generated addresses, as dynamips gives its routers. */
const firstByte = { c1700: 'd0', c2600: 'c8', c2691: 'c0', c3600: 'cc', c3725: 'c2', c3745: 'c4', c7200: 'ca' } as const

/** The first MAC address of a router. The others differ in the last two bytes. */
export function macOf({ record }: Pick<DynamipsKindNode, 'record'>): string {
  const { mac_addr, platform } = record.properties
  const id = record.node_id.slice(-6).toLowerCase()
  return mac_addr || `${firstByte[platform]}${id.slice(0, 2)}.${id.slice(2)}.0000`
}
