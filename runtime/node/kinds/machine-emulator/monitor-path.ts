import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { join, relative } from 'node:path'
import { longestSocketPath } from '../../system/socket-path.ts'

/** The name of the monitor socket of a node; short, because the path of a socket has a limit (unix(7)). */
export const monitorName = (nodeId: string): string =>
  `qmp-${createHash('sha256').update(nodeId).digest('hex').slice(0, 16)}`

/** The path of the monitor socket, relative to the working directory of the emulator if the absolute path is too long. */
export function monitorPath(runDirectory: string, nodeId: string, nodeDirectory: string): string {
  const path = join(runDirectory, monitorName(nodeId))
  if (Buffer.byteLength(path) <= longestSocketPath) return path
  // The kernel resolves `..` from the real directory.
  return join(relative(realpathSync(nodeDirectory), realpathSync(runDirectory)), monitorName(nodeId))
}
