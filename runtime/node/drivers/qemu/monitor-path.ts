import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { join, relative } from 'node:path'
import { longestSocketPath } from '../../os/system/socket-path.ts'

/** The names of the sockets of a node; short, because the path of a socket has a limit (unix(7)). */
const socketName = (what: string) => (nodeId: string) =>
  `${what}-${createHash('sha256').update(nodeId).digest('hex').slice(0, 16)}`
export const monitorName = socketName('qmp')
export const memoryName = socketName('mem')

/** The path of a socket, relative to the working directory of the emulator if the absolute path is too long. */
export function pathForEmulator(runDirectory: string, name: string, nodeDirectory: string): string {
  const path = join(runDirectory, name)
  if (Buffer.byteLength(path) <= longestSocketPath) return path
  // The kernel resolves `..` from the real directory.
  return join(relative(realpathSync(nodeDirectory), realpathSync(runDirectory)), name)
}
