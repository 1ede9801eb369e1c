import { fatImage } from '../../iso/fat16.ts'
import { isoImage } from '../../iso/iso9660.ts'
import type { DesiredDay0 } from '../../labfile/desired.ts'

/** The property of a machine and the file in its directory that hold what it reads at its first boot, by the medium. */
export const day0Media = {
  cd: { property: 'cdrom_image', file: './day0.iso' },
  disk: { property: 'hdb_disk_image', file: './day0.img' },
} as const satisfies Readonly<Record<DesiredDay0['medium'], { property: string; file: string }>>

const media = Object.values(day0Media)
export const isDay0Property = (key: string): boolean => media.some(({ property }) => property === key)

/** The medium that was made for a machine with these properties, if there is one. */
export const day0MediumIn = (properties: Readonly<Record<string, unknown>>) =>
  media.find(({ property, file }) => properties[property] === file)

/** The image of the medium. 400 for a name or a label that it cannot have. */
export function day0Image({ medium, label, files }: DesiredDay0): Uint8Array<ArrayBuffer> {
  const encoder = new TextEncoder()
  const contents = new Map(Object.entries(files).map(([path, { text }]) => [path, encoder.encode(text)] as const))
  return medium === 'disk' ? fatImage(label, contents) : isoImage(label, contents)
}
