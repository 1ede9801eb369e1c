import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { join, relative } from 'node:path'
import { longestSocketPath } from '../../system/socket-path.ts'

/** The name of the monitor of a node in the directory for what runs; short, for the path of a socket has a limit. */
export const monitorName = (nodeId: string): string =>
  `qmp-${createHash('sha256').update(nodeId).digest('hex').slice(0, 16)}`

/** Where that is for an emulator that is started in the directory of its node: the way there is short when the path is not. */
export function monitorPath(runDirectory: string, nodeId: string, nodeDirectory: string): string {
  const path = join(runDirectory, monitorName(nodeId))
  if (Buffer.byteLength(path) <= longestSocketPath) return path
  // The system goes up from where the directory really is.
  return join(relative(realpathSync(nodeDirectory), realpathSync(runDirectory)), monitorName(nodeId))
}
