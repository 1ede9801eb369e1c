import type { BigIntStats } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { setNewest } from '../../../../src/lib/async/newest.ts'

const maxCached = 20_000
const idleMs = 10_000
/** Granularity of file times, ms: a file changed within it may change again without a new time. */
const tickMs = 20

export type Algorithm = 'md5' | 'sha256' | 'sha512'

/** Checksums of files, computed in a worker thread. MD5 sums are cached while size, times and inode of the file stay. */
export class Checksums {
  readonly #cache = new Map<string, string>()
  readonly #pending = new Map<number, (sums: readonly string[] | undefined) => void>()
  #worker: Worker | undefined
  #idle: NodeJS.Timeout | undefined
  #last = 0

  /** The cached MD5 sum, 32 hexadecimal digits; undefined when the file cannot be read. */
  async of(path: string, { dev, ino, size, mtimeNs, ctimeNs, ctimeMs }: BigIntStats): Promise<string | undefined> {
    const key = `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}:${path}`
    const known = this.#cache.get(key)
    if (known !== undefined) return known
    const isSettled = Date.now() - Number(ctimeMs) > tickMs
    const sum = await this.hash(path, 'md5')
    if (sum === undefined || !isSettled) return sum
    setNewest(this.#cache, key, sum, maxCached)
    return sum
  }

  /** The checksum of a file, not cached, in hexadecimal digits; undefined when it cannot be read. */
  async hash(path: string, algorithm: Algorithm): Promise<string | undefined> {
    return (await this.hashes(path, [algorithm]))?.[0]
  }

  /** Several checksums of a file, in one pass. */
  hashes(path: string, algorithms: readonly Algorithm[]): Promise<readonly string[] | undefined> {
    return new Promise((resolve) => {
      const id = ++this.#last
      this.#pending.set(id, resolve)
      this.#running().postMessage({ id, path, algorithms })
    })
  }

  async close(): Promise<void> {
    clearTimeout(this.#idle)
    await this.#worker?.terminate()
  }

  #running(): Worker {
    clearTimeout(this.#idle)
    if (this.#worker !== undefined) return this.#worker
    const file = import.meta.url.endsWith('.ts') ? './hash-worker.ts' : './hash-worker.js'
    const worker = new Worker(new URL(file, import.meta.url), { execArgv: [] })
    worker.on('message', ({ id, sums }: { id: number; sums: readonly string[] | undefined }) => {
      this.#pending.get(id)?.(sums)
      this.#pending.delete(id)
      if (this.#pending.size === 0) this.#endWhenIdle(worker)
    })
    worker.on('error', () => {})
    worker.on('exit', () => {
      // Pending requests belong to a new worker; this one ended because it was idle.
      if (this.#worker !== undefined && this.#worker !== worker) return
      this.#worker = undefined
      for (const resolve of this.#pending.values()) resolve(undefined)
      this.#pending.clear()
    })
    worker.unref()
    this.#worker = worker
    return worker
  }

  #endWhenIdle(worker: Worker): void {
    this.#idle = setTimeout(() => {
      if (this.#pending.size > 0) return
      this.#worker = undefined
      void worker.terminate()
    }, idleMs)
    this.#idle.unref()
  }
}
