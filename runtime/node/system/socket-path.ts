import { closeSync, constants, openSync } from 'node:fs'
import { join } from 'node:path'

/** Bytes that fit into sockaddr_un with its final NUL: unix(7). */
export const longestSocketPath = 107

/**
 * A path for a socket in a directory that fits, however long the directory's is: through a descriptor of the directory when
 * it must. `release` is called when the path is not needed any more.
 */
export function socketPath(directory: string, name = 'keeper.sock'): { path: string; release: () => void } {
  const path = join(directory, name)
  if (Buffer.byteLength(path) <= longestSocketPath) return { path, release: () => {} }
  const descriptor = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY)
  return { path: `/proc/self/fd/${descriptor}/${name}`, release: () => closeSync(descriptor) }
}
