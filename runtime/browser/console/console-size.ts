import type { LabNode } from '../../../src/client/patchbay.ts'
import type { ResizeConsole } from '../../../src/client/terminal-sizes.ts'
import { client } from '../state/client.ts'

/** Kinds of node whose consoles have a size; asked for when the first console opens. */
let sized: Promise<ReadonlySet<string>> | undefined

function sizedKinds(): Promise<ReadonlySet<string>> {
  sized ??= client
    .call('GET /v2/kinds')
    .then((kinds) => new Set(kinds.filter((it) => it.has_terminal_size).map(({ name }) => name)))
  sized.catch(() => {
    sized = undefined
  })
  return sized
}

/** The console of a node; of a further one `terminal`. */
export interface ShownConsole {
  readonly node: LabNode
  readonly terminal: string | undefined
}

/** Resizes a console. */
export const resizeOf =
  ({ node: { project_id, node_id, node_type }, terminal }: ShownConsole): ResizeConsole =>
  async (size) => {
    if (!(await sizedKinds()).has(node_type)) return false
    const body = JSON.stringify({ ...size, terminal })
    const params = { project_id, node_id }
    await client.call('POST /v2/projects/{project_id}/nodes/{node_id}/console/size', { params, body })
    return true
  }
