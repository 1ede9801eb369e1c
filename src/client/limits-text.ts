import type { AccessToken } from './patchbay.ts'

/** The limits of a token, for people: `5 nodes, 3 running, 2048 MB`. */
export const limitsText = ({
  max_nodes: nodes,
  max_running: running,
  max_ram_mb: ram_mb,
}: NonNullable<AccessToken['limits']>): string =>
  [
    ...(nodes === undefined ? [] : [`${nodes} nodes`]),
    ...(running === undefined ? [] : [`${running} running`]),
    ...(ram_mb === undefined ? [] : [`${ram_mb} MB`]),
  ].join(', ')
