import { type Static, Type } from '@sinclair/typebox'
import { MachineEmulatorNode, machineSettings, platforms } from '../../../../src/model/kinds/machine-emulator.ts'
import { nullable } from '../../../../src/model/schema/fields.ts'
import type { KindNode } from '../../engine/nodes/kind.ts'

const { console_type: _, ...settings } = machineSettings

/** The properties in the record of a machine. */
export type MachineProperties = Static<typeof MachineProperties>
export const MachineProperties = Type.Object({
  ...settings,
  qemu_path: Type.String({ default: '' }),
  platform: Type.Union(
    platforms.map((platform) => Type.Literal(platform)),
    { default: '' },
  ),
  /** null: generated from the ids. */
  mac_address: Type.Union([MachineEmulatorNode.properties.mac_address, Type.Null()], { default: null }),
  /** MD5 sums of images, by the field that names them. */
  sums: Type.Record(Type.String(), Type.Object({ image: Type.String(), md5: nullable(Type.String()) }), {
    default: {},
  }),
  /** Detected formats of images that the machine writes to, by path. */
  formats: Type.Record(Type.String(), Type.String(), { default: {} }),
})

/** The fields that name images. */
export const imageFields = [
  ...(['hda_disk_image', 'hdb_disk_image', 'hdc_disk_image', 'hdd_disk_image'] as const),
  ...(['cdrom_image', 'bios_image', 'initrd', 'kernel_image'] as const),
]
export type ImageField = (typeof imageFields)[number]

/** Settings that are stored without a change. */
export const plainFields = Object.keys(settings) as readonly (keyof typeof settings)[]

export type MachineKindNode = KindNode<MachineProperties>
