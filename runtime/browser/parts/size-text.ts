import type { Image } from '../../../src/client/patchbay.ts'

const units = ['bytes', 'KB', 'MB', 'GB', 'TB']

/** A size in a unit that people read. */
export function sizeText(bytes: number): string {
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3))
  const value = bytes / 1000 ** power
  return `${power === 0 ? value : value.toPrecision(3)} ${value === 1 && power === 0 ? 'byte' : units[power]}`
}

/** The size of an image: of a disk also what a guest sees of it, in units of 1024 as programs for disks count. */
export function imageSizeText({ virtual_size: size, filesize }: Pick<Image, 'virtual_size' | 'filesize'>): string {
  if (size === undefined) return sizeText(filesize)
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, size)) / 10))
  return `${Number((size / 1024 ** power).toFixed(1))} ${units[power]} (file: ${sizeText(filesize)})`
}
