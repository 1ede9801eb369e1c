import type { AccessToken } from './patchbay.ts'

type Limits = NonNullable<AccessToken['limits']>

const units: Readonly<Record<keyof Limits, string>> = { max_nodes: 'nodes', max_running: 'running', max_ram_mb: 'MB' }

/** The limits of a token, for people: `5 nodes, 3 running, 2048 MB`; empty: there are none. */
export const limitsText = (limits: Limits): string =>
  (Object.keys(units) as (keyof Limits)[])
    .flatMap((name) => (limits[name] === undefined ? [] : [`${limits[name]} ${units[name]}`]))
    .join(', ')
