import { createHash } from 'node:crypto'
import { join } from 'node:path'

/** Where the monitor of a node is: in the directory for what runs, short, for the path of a socket has a limit. */
export const monitorPath = (runDirectory: string, nodeId: string): string =>
  join(runDirectory, `qmp-${createHash('sha256').update(nodeId).digest('hex').slice(0, 16)}`)
