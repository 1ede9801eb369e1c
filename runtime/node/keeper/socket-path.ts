import { closeSync, constants, openSync } from 'node:fs'
import { join } from 'node:path'

const name = 'keeper.sock'
/** Bytes that fit into sockaddr_un with its final NUL (unix(7)). */
const longest = 107

/**
 * A path for the keeper's socket that fits, however long the run directory's is: through a descriptor of the directory when
 * it must. `release` is called when the path is not needed any more.
 */
export function socketPath(runDirectory: string): { path: string; release: () => void } {
  const path = join(runDirectory, name)
  if (Buffer.byteLength(path) <= longest) return { path, release: () => {} }
  const directory = openSync(runDirectory, constants.O_RDONLY | constants.O_DIRECTORY)
  return { path: `/proc/self/fd/${directory}/${name}`, release: () => closeSync(directory) }
}
