import { readlink, rm, symlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { conflict } from '../../../../src/errors/api-error.ts'
import { withDiskErrors } from '../../storage/disk.ts'

/** Images look at the path they are started by: a link to one in the directory of the node has a short and plain name. */

/** Names that are tried when something else has that of the image. */
const maxNames = 100

export interface ImageLink {
  /** By which the image is started. */
  readonly path: string
  /** Of the link in the directory; empty when the image is there itself. */
  readonly name: string
}

/**
 * Makes the link; `before` is the name of the last one, which a service that was killed may have left. What else has the name
 * of the image, a file of a client or one of the router's own, stays: then the link has another one. 409 when none is free.
 */
export async function linkImage(directory: string, image: string, before: string): Promise<ImageLink> {
  return withDiskErrors('The link to the image', async () => {
    await unlinkImage(directory, before)
    const name = basename(image)
    if (image === join(directory, name)) return { path: image, name: '' }
    for (let number = 0; number < maxNames; number++) {
      const tried = number === 0 ? name : `image-${number}-${name}`
      if (await takes(directory, tried, image)) return { path: join(directory, tried), name: tried }
    }
    throw conflict(
      `The link to the image: ${name} and ${maxNames - 1} other names are taken in the directory of the node`,
    )
  })
}

/** Removes the link of that name, if it is as we make them. */
export async function unlinkImage(directory: string, name: string): Promise<void> {
  const path = join(directory, name)
  const image = name === '' ? undefined : await readlink(path).catch(() => undefined)
  if (image !== undefined && name.endsWith(basename(image))) await rm(path, { force: true })
}

/** Whether there is a link of that name to the image now. */
async function takes(directory: string, name: string, image: string): Promise<boolean> {
  const path = join(directory, name)
  try {
    await symlink(image, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return (await readlink(path).catch(() => undefined)) === image
  }
}
