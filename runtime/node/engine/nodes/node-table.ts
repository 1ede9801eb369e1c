import { KeyedMutex } from '../../../../src/lib/async/keyed-mutex.ts'
import type { Log } from '../../os/log/log.ts'
import type { EngineNode } from './engine-node.ts'

/** The nodes of all open projects by their keys (`{kind}:{node_id}`), and a lock for each. */
export class NodeTable extends Map<string, EngineNode> {
  readonly #locks = new KeyedMutex()
  readonly #log: Log

  constructor(log: Log) {
    super()
    this.#log = log
  }

  /** Runs a function with the lock of a node. Operations on one key run in the order of their calls. */
  lock<T>(key: string, run: () => Promise<T>): Promise<T> {
    return this.#locks.run(key, run)
  }

  /** Runs a function with the locks of several nodes, which are taken in one order everywhere. */
  lockAll<T>(keys: readonly string[], run: () => Promise<T>): Promise<T> {
    const sorted = [...new Set(keys)].sort()
    const next = (index: number): Promise<T> => {
      const key = sorted[index]
      return key === undefined ? run() : this.lock(key, () => next(index + 1))
    }
    return next(0)
  }

  /** Runs a function with the lock of a node, unless the node was deleted by then. Logs a failure. */
  queue(key: string, run: (node: EngineNode) => Promise<void>): void {
    const node = this.get(key)
    if (node === undefined) return
    this.lock(key, async () => (this.get(key) === node ? run(node) : undefined)).catch((error: unknown) =>
      this.#log.error({ err: error, node: key }, 'a node'),
    )
  }
}
