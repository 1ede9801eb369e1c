import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { KeeperError } from '../../keeper-protocol/error.ts'
import { loadLibc } from '../../system/libc.ts'
import { Counters } from '../core/counters.ts'
import type { Report, Start, WorkerCall, WorkerCalls } from './messages.ts'
import { Pump } from './pump.ts'

/**
 * The thread of the fast path. It sleeps in epoll until a frame or a wake-up arrives, so its event loop never runs: it reads its
 * messages when it is woken.
 */
if (parentPort === null) throw new Error('to be run as a worker')
const port = parentPort
const report = (what: Report): void => port.postMessage(what)

function start(): Pump | undefined {
  const { counters, isSegmenting } = workerData as Start
  try {
    const listener = {
      probe: (end: number, frame: Uint8Array) => report({ type: 'probe', end, frame }),
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
  switch (name) {
    case 'open':
      return pump.open(input as WorkerCalls['open']['in'])
    case 'close':
      return pump.close(input as WorkerCalls['close']['in'])
    case 'lane': {
      const { input: end, lane } = input as WorkerCalls['lane']['in']
      return pump.setLane(end, lane)
    }
    case 'impair': {
      const { row, impairment } = input as WorkerCalls['impair']['in']
      return pump.rows.impair(row, impairment)
    }
    case 'capture': {
      const { row, memory } = input as WorkerCalls['capture']['in']
      return pump.rows.capture(row, memory)
    }
    case 'reset':
      return pump.rows.reset(input as WorkerCalls['reset']['in'])
    case 'forget':
      return pump.rows.forget(input as WorkerCalls['forget']['in'])
    case 'send': {
      const { end, frame } = input as WorkerCalls['send']['in']
      return pump.send(end, frame)
    }
    case 'tidy':
      return pump.tidy(input as WorkerCalls['tidy']['in'])
    case 'stop':
      return undefined
  }
}
