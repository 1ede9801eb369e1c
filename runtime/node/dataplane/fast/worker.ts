import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { KeeperError } from '../../keeper/protocol/error.ts'
import { loadLibc } from '../../os/system/libc.ts'
import { Counters } from '../switch/core/counters.ts'
import type { BridgeLoop } from '../switch/core/path.ts'
import type { Report, Start, WorkerCall, WorkerCalls } from './messages.ts'
import { Pump } from './pump.ts'

/**
 * The thread of the fast path. It sleeps in epoll until a frame or a wake-up arrives, so its event loop never runs: it reads its
 * messages when it is woken.
 */
if (parentPort === null) throw new Error('this module runs as a worker thread')
const port = parentPort
const report = (what: Report): void => port.postMessage(what)

function start(): Pump | undefined {
  const { counters, isSegmenting } = workerData as Start
  try {
    const listener = {
      probe: (end: number, frame: Uint8Array) => report({ type: 'probe', end, frame }),
      looped: (loop: BridgeLoop) => report({ type: 'looped', loop }),
      captured: (row: number, slot: number, length: number) => report({ type: 'captured', row, slot, length }),
    }
    return new Pump(loadLibc(), new Counters(counters), listener, isSegmenting)
  } catch (error) {
    report({ type: 'failed', message: (error as Error).message })
    return undefined
  }
}

const pump = start()
if (pump !== undefined) {
  report({ type: 'ready', wakeDescriptor: pump.wakeDescriptor })
  pump.run(() => answerAll(pump))
  pump.shutdown()
}

function answerAll(pump: Pump): boolean {
  for (;;) {
    const received = receiveMessageOnPort(port) as { message: WorkerCall } | undefined
    if (received === undefined) return true
    const { id, name, input } = received.message
    try {
      report({ type: 'answer', id, result: answer(pump, name, input) })
    } catch (error) {
      const code = error instanceof KeeperError ? error.code : 'internal'
      report({ type: 'refusal', id, code, message: (error as Error).message })
    }
    if (name === 'stop') return false
  }
}

function answer(pump: Pump, name: keyof WorkerCalls, input: unknown): unknown {
  const handlers: { [Name in keyof WorkerCalls]: (input: WorkerCalls[Name]['in']) => unknown } = {
    open: (spec) => pump.open(spec),
    close: (end) => pump.close(end),
    lane: ({ input, lane }) => pump.setLane(input, lane),
    impair: ({ row, impairment }) => pump.rows.impair(row, impairment),
    capture: ({ row, memory }) => pump.rows.capture(row, memory),
    reset: (row) => pump.rows.reset(row),
    plain: (rows) => pump.rows.isPlain(rows, performance.now()),
    forget: (row) => pump.rows.forget(row),
    configure: ({ bridge, spec }) => pump.bridging.configure(bridge, spec),
    entries: (bridge) => pump.bridging.entries(bridge),
    clear: (bridge) => pump.bridging.clear(bridge),
    send: ({ end, frame }) => pump.send(end, frame),
    tidy: (applicationId) => pump.tidy(applicationId),
    stop: () => undefined,
  }
  return handlers[name](input as never)
}
