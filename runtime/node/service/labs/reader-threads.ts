import { Worker } from 'node:worker_threads'
import type { ReaderName, ReadFile } from '../../../../src/importers/readers.ts'
import { ApiError, type ApiErrorOptions, retryLater, tooLarge } from '../../../../src/lib/errors/api-error.ts'
import { programArguments } from '../../os/programs/own-program.ts'

export interface ReaderLimits {
  /** Longest time for one file. */
  readonly ms: number
  /** Most memory of a thread, MB. */
  readonly memoryMb: number
  /** Most files that are read at a time, and that wait. */
  readonly threads: number
  readonly waiting: number
  /** Time after which a thread without work ends. */
  readonly idleMs: number
}

const defaultLimits: ReaderLimits = { ms: 30_000, memoryMb: 256, threads: 4, waiting: 100, idleMs: 10_000 }
/** Time that a file waits for a thread that is busy before another thread is started, ms: most files take less. */
const patienceMs = 50
const retryS = 5

/** What a thread is sent. */
export interface FileToRead {
  readonly name: ReaderName
  readonly input: unknown
}

/** What it answers. */
export type ReadAnswer =
  | { readonly result: unknown }
  | { readonly refusal: { readonly status: number; readonly message: string; readonly options: ApiErrorOptions } }
  /** The stack of an error that is a defect. */
  | { readonly defect: string }

interface Task extends FileToRead {
  resolve(result: never): void
  reject(error: Error): void
}

interface Thread {
  readonly worker: Worker
  /** The file that it reads. */
  task: Task | undefined
  /** Ends the thread: it takes too long, or has no work. */
  timer: NodeJS.Timeout | undefined
}

/**
 * Reads files that clients send in threads of their own: a file that takes long delays no other request. The first file starts a thread,
 * which ends when it has had nothing to do for a while.
 */
export class ReaderThreads {
  readonly #limits: ReaderLimits
  readonly #waiting: Task[] = []
  readonly #threads = new Set<Thread>()
  #patience: NodeJS.Timeout | undefined

  constructor(limits: Partial<ReaderLimits> = {}) {
    this.#limits = { ...defaultLimits, ...limits }
  }

  /** Number of threads, for tests. */
  get size(): number {
    return this.#threads.size
  }

  readonly read: ReadFile = (name, input) =>
    new Promise((resolve, reject) => {
      if (this.#waiting.length >= this.#limits.waiting) {
        reject(retryLater(503, `${this.#waiting.length} files are waiting to be read: try again later`, retryS))
        return
      }
      this.#waiting.push({ name, input, resolve, reject })
      this.#assign()
    })

  async close(): Promise<void> {
    clearTimeout(this.#patience)
    await Promise.all([...this.#threads].map((thread) => this.#end(thread, new Error('the service ends'))))
    for (const { reject } of this.#waiting.splice(0)) reject(new Error('the service ends'))
  }

  /** Gives waiting files to threads without work. */
  #assign(): void {
    for (const thread of this.#threads) if (thread.task === undefined) this.#give(thread)
    if (this.#waiting.length === 0 || this.#threads.size >= this.#limits.threads) return
    if (this.#threads.size === 0) this.#give(this.#start())
    else
      this.#patience ??= setTimeout(() => {
        this.#patience = undefined
        if (this.#waiting.length > 0 && this.#threads.size < this.#limits.threads) this.#give(this.#start())
        this.#assign()
      }, patienceMs)
  }

  #give(thread: Thread): void {
    const task = this.#waiting.shift()
    if (task === undefined) return
    const { ms } = this.#limits
    thread.task = task
    clearTimeout(thread.timer)
    thread.timer = setTimeout(() => {
      void this.#end(
        thread,
        tooLarge(`Reading the file takes longer than ${ms / 1000} s: split it, or make it smaller`),
      )
      this.#assign()
    }, ms)
    const { name, input } = task
    const file: FileToRead = { name, input }
    thread.worker.postMessage(file)
  }

  #start(): Thread {
    const [program = ''] = programArguments(
      new URL('./reader-thread.ts', import.meta.url),
      new URL('./reader-thread.js', import.meta.url),
    ).slice(-1)
    const { memoryMb } = this.#limits
    const worker = new Worker(program, { resourceLimits: { maxOldGenerationSizeMb: memoryMb } })
    const thread: Thread = { worker, task: undefined, timer: undefined }
    worker.on('message', (answer: ReadAnswer) => {
      this.#settle(thread, answer)
      this.#assign()
      if (thread.task !== undefined) return
      thread.timer = setTimeout(() => void this.#end(thread), this.#limits.idleMs)
      thread.timer.unref()
    })
    worker.on('error', (error: NodeJS.ErrnoException) => {
      const isFull = error.code === 'ERR_WORKER_OUT_OF_MEMORY'
      const why = `Reading the file needs more than ${memoryMb} MB of memory: split it, or make it smaller`
      void this.#end(thread, isFull ? tooLarge(why) : error)
      this.#assign()
    })
    worker.unref()
    this.#threads.add(thread)
    return thread
  }

  #settle(thread: Thread, answer: ReadAnswer): void {
    const { task } = thread
    thread.task = undefined
    clearTimeout(thread.timer)
    if (task === undefined) return
    if ('result' in answer) task.resolve(answer.result as never)
    else if ('refusal' in answer) task.reject(errorOf(answer.refusal))
    else task.reject(new Error(`a reader failed: ${answer.defect}`))
  }

  /** Ends a thread; `error` is for the file that it reads. */
  async #end(thread: Thread, error?: Error): Promise<void> {
    const { task } = thread
    thread.task = undefined
    clearTimeout(thread.timer)
    this.#threads.delete(thread)
    if (error !== undefined) task?.reject(error)
    await thread.worker.terminate()
  }
}

const errorOf = ({ status, message, options }: Extract<ReadAnswer, { refusal: unknown }>['refusal']): ApiError =>
  new ApiError(status, message, options)
