import type { NodeAgent } from '../../host-agent.ts'
import { ignore } from '../../lib/async/ignore.ts'
import { pause } from '../../lib/async/pause.ts'
import { ApiError, conflict } from '../../lib/errors/api-error.ts'
import type { NodeReady } from '../../model/console.ts'
import type { NodeRef } from '../../model/kinds/node.ts'
import type { LabReady } from '../../model/lab/node.ts'

/** Longest wait of one request to a compute, s. A longer wait takes several requests. */
const pieceS = 60
const defaultS = 300
const pressEveryMs = 1000

/** Resolves when a started node is ready. 409 `not-in-time` after `within_s`, 409 when the node stops. */
export async function untilReady(
  nodes: NodeAgent,
  ref: NodeRef,
  { console, press, tcp, exec, seconds = 0, within_s = defaultS }: LabReady,
  signal: AbortSignal,
): Promise<void> {
  const until = Date.now() + within_s * 1000
  const condition: NodeReady = {
    ...(console !== undefined && { console }),
    ...(tcp !== undefined && { tcp }),
    ...(exec !== undefined && { exec }),
  }
  const conditionMet = async () => {
    for (;;) {
      const left = Math.max(0, (until - Date.now()) / 1000)
      try {
        return await nodes.ready(ref, { ...condition, within_s: Math.min(pieceS, left) }, signal)
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== 'not-in-time') throw error
        if (left <= pieceS)
          throw conflict(`The node was not ready within ${within_s} s: ${error.message}`, { code: 'not-in-time' })
      }
    }
  }
  const over = new AbortController()
  const met = conditionMet().finally(() => over.abort())
  const pressed = pressing(nodes, ref, { press, console }, AbortSignal.any([signal, over.signal]))
  await Promise.all([met, pressed, pause(seconds * 1000, signal)])
  signal.throwIfAborted()
}

/** Types `press` once a second, until the signal aborts. */
async function pressing(
  nodes: NodeAgent,
  ref: NodeRef,
  { press, console }: { press: string | undefined; console: string | undefined },
  signal: AbortSignal,
): Promise<void> {
  if (press === undefined || press === '' || console === undefined) return
  for (;;) {
    await pause(pressEveryMs, signal)
    if (signal.aborted) return
    // Only the keys are sent here: the wait for the node searches the output.
    const input = { send: press, expect: console, within_s: pressEveryMs / 1000 }
    await nodes.expect(ref, input, signal).catch(ignore('the wait for the node reports what is wrong'))
  }
}
