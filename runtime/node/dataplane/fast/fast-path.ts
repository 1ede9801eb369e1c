import { writeSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { KeeperError } from '../../keeper/protocol/error.ts'
import type { BridgeSpec, MacEntry } from '../../keeper/protocol/protocol.ts'
import { programArguments } from '../../os/programs/own-program.ts'
import type { Counters } from '../switch/core/counters.ts'
import type { EndSpec, LaneSpec, OpenedEnd, PacketPath, PathListener, PortImpairment } from '../switch/core/path.ts'
import type { Report, Start, WorkerCall, WorkerCalls } from './messages.ts'

/** Little-endian, 64-bit, with the constants of asm-generic. */
const architectures = ['x64', 'arm64']

const one = new Uint8Array(new BigUint64Array([1n]).buffer)

type Waiting = { resolve(result: never): void; reject(error: Error): void }

/** This thread's side of the fast path. */
export class FastPath implements PacketPath {
  readonly name = 'fast'
  readonly #worker: Worker
  readonly #wakeDescriptor: number
  readonly #waiting = new Map<number, Waiting>()
  #calls = 0
  #isOver = false

  private constructor(worker: Worker, wakeDescriptor: number, listener: PathListener) {
    this.#worker = worker
    this.#wakeDescriptor = wakeDescriptor
    worker.on('message', (report: Report) => this.#hear(report, listener))
    // Without its switch the keeper must end; the service starts a new one.
    worker.on('error', (error) => {
      throw error
    })
    worker.on('exit', () => {
      if (!this.#isOver) throw new Error('the thread of the packet path ended')
    })
    // The thread sleeps in a system call, which would block the exit of the process.
    process.on('exit', this.#stopAtExit)
  }

  /** Rejects without FFI or Linux. */
  static async start(counters: Counters, listener: PathListener, isSegmenting = true): Promise<FastPath> {
    const { platform, arch } = process
    if (platform !== 'linux' || !architectures.includes(arch))
      throw new Error(`it is made for Linux on ${architectures.join(' and ')}, not for ${platform} on ${arch}`)
    const [program = ''] = programArguments(
      new URL('./worker.ts', import.meta.url),
      new URL('./packet-worker.js', import.meta.url),
    ).slice(-1)
    const workerData: Start = { counters: counters.memory, isSegmenting }
    // The thread allocates almost nothing, so a small young generation is enough.
    const resourceLimits = { maxYoungGenerationSizeMb: 2, codeRangeSizeMb: 8 }
    const worker = new Worker(program, { workerData, resourceLimits })
    const first = await new Promise<Report>((resolve, reject) => {
      worker.once('message', resolve)
      worker.once('error', reject)
    })
    worker.removeAllListeners('error')
    if (first.type === 'ready') return new FastPath(worker, first.wakeDescriptor, listener)
    throw new Error(first.type === 'failed' ? first.message : 'the thread did not start')
  }

  open(spec: EndSpec): Promise<OpenedEnd> {
    return this.#call('open', spec)
  }

  async close(end: number): Promise<void> {
    await this.#call('close', end)
  }

  async setLane(input: number, lane: LaneSpec | null): Promise<void> {
    await this.#call('lane', { input, lane })
  }

  async impair(row: number, impairment: PortImpairment): Promise<void> {
    await this.#call('impair', { row, impairment })
  }

  async reset(row: number): Promise<void> {
    await this.#call('reset', row)
  }

  isPlain(rows: readonly number[]): Promise<boolean> {
    return this.#call('plain', rows)
  }

  async capture(row: number, memory: SharedArrayBuffer | null): Promise<void> {
    await this.#call('capture', { row, memory })
  }

  async forget(row: number): Promise<void> {
    await this.#call('forget', row)
  }

  async tidy(applicationId: number): Promise<void> {
    await this.#call('tidy', applicationId)
  }

  async configure(bridge: number, spec: BridgeSpec | null): Promise<void> {
    await this.#call('configure', { bridge, spec })
  }

  entries(bridge: number): Promise<MacEntry[]> {
    return this.#call('entries', bridge)
  }

  async clear(bridge: number): Promise<void> {
    await this.#call('clear', bridge)
  }

  send(end: number, frame: Uint8Array): void {
    this.#call('send', { end, frame }).catch(ignore('a probe that is not sent is a probe that is lost'))
  }

  async shutdown(): Promise<void> {
    if (this.#isOver) return
    this.#isOver = true
    process.off('exit', this.#stopAtExit)
    const ended = new Promise((resolve) => this.#worker.once('exit', resolve))
    await this.#call('stop', undefined)
    await ended
  }

  readonly #stopAtExit = (): void => {
    this.#isOver = true
    this.#post('stop', undefined)
  }

  #call<Name extends keyof WorkerCalls>(name: Name, input: WorkerCalls[Name]['in']): Promise<WorkerCalls[Name]['out']> {
    return new Promise((resolve, reject) => {
      this.#waiting.set(this.#post(name, input), { resolve, reject })
    })
  }

  #post<Name extends keyof WorkerCalls>(name: Name, input: WorkerCalls[Name]['in']): number {
    const id = ++this.#calls
    const call: WorkerCall<Name> = { id, name, input }
    this.#worker.postMessage(call)
    writeSync(this.#wakeDescriptor, one)
    return id
  }

  #hear(report: Report, listener: PathListener): void {
    if (report.type === 'probe') listener.probe(report.end, report.frame)
    else if (report.type === 'looped') listener.looped(report.loop)
    else if (report.type === 'captured') listener.captured(report.row, report.slot, report.length)
    else if (report.type === 'answer' || report.type === 'refusal') {
      const waiting = this.#waiting.get(report.id)
      this.#waiting.delete(report.id)
      if (report.type === 'answer') waiting?.resolve(report.result as never)
      else waiting?.reject(new KeeperError(report.code, report.message))
    }
  }
}
