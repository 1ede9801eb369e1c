import type { Image } from '../../../src/client/patchbay.ts'

/** A name for a new disk that no image has, from the name of its node. */
export function freeImageName(wanted: string, images: readonly Pick<Image, 'path'>[]): string {
  const base = wanted.replaceAll(/[^\p{L}\p{N}._-]+/gu, '-').replace(/^[.-]+/, '') || 'disk'
  const taken = new Set(images.map(({ path }) => path))
  for (let count = 1; ; count++) {
    const name = `${base}${count === 1 ? '' : `-${count}`}.qcow2`
    if (!taken.has(name)) return name
  }
}
