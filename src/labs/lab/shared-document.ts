import { SerialQueue } from '../../lib/async/serial-queue.ts'
import { inMebibytes, jsonBytes, type LabLimits, limitReached, mebibyte } from './lab-limits.ts'
import { type LabStorage, UnreadableLab } from './store.ts'

interface SharedOptions {
  readonly store: LabStorage
  /** Its name in the store, and in messages. */
  readonly scope: 'templates' | 'symbols'
  readonly limits: () => LabLimits
  readonly warn: (message: string) => void
  /** Whether another process writes the document, so that it is read again before it is used. */
  readonly isElsewhere: boolean
}

/** A document that all labs share, in memory: values by key, with a limit for their sum. */
export class SharedDocument<T> {
  readonly #options: SharedOptions
  readonly #writes = new SerialQueue()
  #values = new Map<string, T>()
  /** Bytes of JSON of all values; absent until one is saved. */
  #bytes: number | undefined
  /** Why the document cannot be read: then it is not written either. */
  #fault: UnreadableLab | undefined

  private constructor(options: SharedOptions) {
    this.#options = options
  }

  static async open<T>(options: SharedOptions): Promise<SharedDocument<T>> {
    const document = new SharedDocument<T>(options)
    await document.#read()
    return document
  }

  get values(): ReadonlyMap<string, T> {
    return this.#values
  }

  async reload(): Promise<void> {
    if (this.#options.isElsewhere) await this.#writes.run(() => this.#read())
  }

  async #read(): Promise<void> {
    const { store, scope, warn } = this.#options
    try {
      this.#values = new Map((await store.load(scope)) as ReadonlyMap<string, T> | undefined)
      this.#bytes = undefined
    } catch (error) {
      if (!(error instanceof UnreadableLab)) throw error
      this.#fault = error
      warn(`The ${scope} of users are ignored: ${error.message}`)
    }
  }

  /**
   * Saves a value; undefined removes it. `requireRoom` throws when there may be no new value. 413 when the sum would grow above its limit,
   * 409 when the document cannot be read.
   */
  save(id: string, value: T | undefined, requireRoom: (count: number) => void): Promise<void> {
    return this.#writes.run(async () => {
      if (this.#fault !== undefined) throw this.#fault
      const { store, scope } = this.#options
      if (value !== undefined && !this.#values.has(id)) requireRoom(this.#values.size)
      this.#bytes ??= [...this.#values.values()].reduce((sum, stored) => sum + jsonBytes(stored), 0)
      const growth = jsonBytes(value) - jsonBytes(this.#values.get(id))
      if (growth > 0) this.#requireBytes(this.#bytes + growth)
      await store.save(scope, new Map([[id, value]]))
      this.#bytes += growth
      if (value === undefined) this.#values.delete(id)
      else this.#values.set(id, value)
    })
  }

  #requireBytes(after: number): void {
    const { scope, limits } = this.#options
    const max = limits().templates_mb
    if (after <= max * mebibyte) return
    throw limitReached(
      `The ${scope} of users are limited to ${max} MiB in total and would have ${inMebibytes(after)}: delete or shorten some first`,
      'templates_mb',
    )
  }
}
