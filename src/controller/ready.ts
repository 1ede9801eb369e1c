import { pause } from '../async/pause.ts'
import { ApiError, conflict } from '../errors/api-error.ts'
import type { NodeReady } from '../model/console.ts'
import type { LabReady } from '../model/lab/node.ts'
import type { ComputeClient, NodePath } from './compute-client.ts'

/** Longest wait of one request to a compute, s. A longer wait takes several requests. */
const pieceS = 60
const defaultS = 300

/** Resolves when a started node is ready. 409 `not-in-time` after `within_s`, 409 when the node stops. */
export async function untilReady(
  client: ComputeClient,
  node: NodePath,
  { console, tcp, seconds = 0, within_s = defaultS }: LabReady,
  signal: AbortSignal,
): Promise<void> {
  const until = Date.now() + within_s * 1000
  const condition: NodeReady = { ...(console !== undefined && { console }), ...(tcp !== undefined && { tcp }) }
  const conditionMet = async () => {
    for (;;) {
      const left = Math.max(0, (until - Date.now()) / 1000)
      try {
        return await client.ready(node, { ...condition, within_s: Math.min(pieceS, left) }, signal)
      } catch (error) {
        if (!(error instanceof ApiError) || error.word !== 'not-in-time') throw error
        if (left <= pieceS)
          throw conflict(`The node was not ready within ${within_s} s: ${error.message}`, { word: 'not-in-time' })
      }
    }
  }
  await Promise.all([conditionMet(), pause(seconds * 1000, signal)])
  signal.throwIfAborted()
}
