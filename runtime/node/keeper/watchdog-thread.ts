import type { Session } from 'node:inspector'
import { parentPort, workerData } from 'node:worker_threads'
import { ProcessorTime } from '../system/processor-time.ts'
import { cell, type EndedTurn, holdFunction, type WatchdogStart } from './watched-turn.ts'

/** The thread of the watchdog (watchdog.ts). */

const { memory, limitMs } = workerData as WatchdogStart
/** Interval of the checks, ms. */
const checkMs = 200
/** Timeout for holding the main thread, ms. JavaScript that runs is interrupted well within it. */
const holdMs = 500

// The main thread has the id of the process.
const time = new ProcessorTime(process.pid, process.pid)
let session: Session | undefined
let turn = 0
/** Processor time of the main thread when the turn was first seen, ms. */
let since: number | undefined

setInterval(() => {
  const current = Atomics.load(memory, cell.turn)
  if (current !== turn) {
    turn = current
    since = undefined
    return
  }
  const used = time.read() ?? 0
  since ??= used
  if (used - since < limitMs) return
  since = used
  void end(turn)
}, checkMs)

/** Ends the turn, unless it ended by itself or the main thread is idle. */
async function end(suspect: number): Promise<void> {
  // Loaded late: seldom needed, and it takes memory.
  const { Session } = await import('node:inspector')
  session?.disconnect()
  const connected = new Session()
  session = connected
  connected.connectToMainThread()
  Atomics.store(memory, cell.held, 0)
  Atomics.store(memory, cell.released, 0)
  let stack = ''
  connected.post('Runtime.evaluate', { expression: `${holdFunction}()` }, (_, answer) => {
    stack = String(answer?.result.value)
  })
  Atomics.wait(memory, cell.held, 0, holdMs)
  const owner = Atomics.load(memory, cell.held)
  if (owner > 0 && Atomics.load(memory, cell.turn) === suspect) {
    connected.post('Runtime.terminateExecution', () => {
      const ended: EndedTurn = { owner, stack }
      parentPort?.postMessage(ended)
      connected.disconnect()
      if (session === connected) session = undefined
    })
  }
  Atomics.store(memory, cell.released, 1)
  Atomics.notify(memory, cell.released)
}
