import type { ImageKindName } from '../../../src/model/image.ts'

/** What is particular to the images of one kind of node. */
export interface ImageKind {
  /** Whether a file of this name is shown as an image; directories of images often hold those of other kinds too. */
  readonly isListed: (filename: string) => boolean
}

/** A new kind is one more line. */
export const imageKindsOfHost: Readonly<Record<ImageKindName, ImageKind>> = {
  'machine-emulator': { isListed: (filename) => !/\.(bin|image|md5sum)$/i.test(filename) },
}
