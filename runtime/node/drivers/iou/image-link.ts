import { readlink, rm, symlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { withDiskErrors } from '../../engine/storage/disk.ts'

/** Images parse the path that they are started by, so they are started by a link with a short name in the directory of the node. */

/** The number of names that are tried. */
const maxNames = 100

interface ImageLink {
  /** The path that starts the image. */
  readonly path: string
  /** The name of the link; empty when the image itself is in the directory. */
  readonly name: string
}

/**
 * Creates the link; `before` is the name of the last one, which a killed service may have left. Other files of that name stay, and
 * the link gets another name. 409 when no name is free.
 */
export const linkImage = async (directory: string, image: string, before: string): Promise<ImageLink> =>
  withDiskErrors('The link to the image', async () => {
    await unlinkImage(directory, before)
    const name = basename(image)
    if (image === join(directory, name)) return { path: image, name: '' }
    for (let number = 0; number < maxNames; number++) {
      const tried = number === 0 ? name : `image-${number}-${name}`
      if (await createLink(directory, tried, image)) return { path: join(directory, tried), name: tried }
    }
    throw conflict(
      `The link to the image: ${name} and ${maxNames - 1} other names are taken in the directory of the node`,
    )
  })

/** Removes a link that `linkImage` created. */
export async function unlinkImage(directory: string, name: string): Promise<void> {
  const path = join(directory, name)
  const image = name === '' ? undefined : await readlink(path).catch(() => undefined)
  if (image !== undefined && name.endsWith(basename(image))) await rm(path, { force: true })
}

/** Creates a link; true also when that link exists. */
async function createLink(directory: string, name: string, image: string): Promise<boolean> {
  const path = join(directory, name)
  try {
    await symlink(image, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return (await readlink(path).catch(() => undefined)) === image
  }
}
