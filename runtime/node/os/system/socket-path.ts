import { closeSync, constants, openSync } from 'node:fs'
import { join } from 'node:path'

/** Maximum length of a path in sockaddr_un without its final NUL, bytes (unix(7)). */
export const longestSocketPath = 107

/**
 * A path of a socket that fits into sockaddr_un. For a long directory it leads through a descriptor of the directory, which
 * `release` closes.
 */
export function socketPath(directory: string, name = 'keeper.sock'): { path: string; release: () => void } {
  const path = join(directory, name)
  if (Buffer.byteLength(path) <= longestSocketPath) return { path, release: () => {} }
  const descriptor = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY)
  return { path: `/proc/self/fd/${descriptor}/${name}`, release: () => closeSync(descriptor) }
}
