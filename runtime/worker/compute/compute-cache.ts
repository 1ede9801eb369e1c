import type { Compute, ComputeRecord } from '../../../src/model/compute.ts'
import { openRecord, type SealedRecord, sealRecord } from '../directory/registry-table.ts'
import type { Sealer } from '../shared/sealed.ts'
import { isNews } from './health-check-loop.ts'

/** The state of a compute that was last reported to the directory. */
export interface ReportedState {
  /** ms since 1970. */
  readonly at: number
  readonly shown: Compute
}

/** The state that the object of a compute stores for its next program. Nothing is stored before the compute has a record. */
export class ComputeCache {
  readonly #storage: DurableObjectStorage
  readonly #sealer: Sealer
  readonly #warn: (message: string) => void
  #reported: ReportedState | undefined
  /** Whether the storage has a state that is no longer valid. */
  #isForgotten = false

  constructor(storage: DurableObjectStorage, sealer: Sealer, warn: (message: string) => void) {
    this.#storage = storage
    this.#sealer = sealer
    this.#warn = warn
    this.#reported = storage.kv.get<ReportedState>('told')
  }

  async record(): Promise<ComputeRecord | undefined> {
    const sealed = this.#storage.kv.get<SealedRecord>('record')
    return sealed && openRecord(sealed, this.#sealer, this.#warn)
  }

  async keepRecord(record: ComputeRecord): Promise<void> {
    this.#storage.kv.put('record', await sealRecord(record, this.#sealer))
  }

  get reported(): ReportedState | undefined {
    return this.#reported
  }

  set reported(reported: ReportedState | undefined) {
    const stored = this.#isForgotten ? this.#storage.kv.get<ReportedState>('told') : undefined
    this.#reported = reported
    this.#isForgotten = false
    if (reported === undefined || stored === undefined || isNews(reported.shown, stored.shown, 0))
      this.#put('told', reported)
  }

  /**
   * Forgets the reported state, as for a compute that joins again. As most computes join again in the same state, the storage is written only
   * when the next reported state differs, or by `settle`.
   */
  forgetReported(): void {
    this.#isForgotten ||= this.#reported !== undefined
    this.#reported = undefined
  }

  /** Stores that no state is reported, if `forgetReported` was the last call. */
  settle(): void {
    if (this.#isForgotten) this.reported = undefined
  }

  /** The time of the last request to the compute, ms since 1970; precise to about a minute. */
  get usedAt(): number {
    return this.#storage.kv.get<number>('used') ?? 0
  }

  set usedAt(at: number) {
    this.#put('used', at)
  }

  /** The subscription of the directory that listens to a compute with an address; see `EventPump`. */
  get listening(): string | undefined {
    return this.#storage.kv.get<string>('listening')
  }

  set listening(subscriptionId: string | undefined) {
    if (this.listening !== subscriptionId) this.#put('listening', subscriptionId)
  }

  /** Digest of the last list of projects that was reported to the directory. */
  get projects(): string | undefined {
    return this.#storage.kv.get<string>('projects')
  }

  set projects(digest: string) {
    this.#put('projects', digest)
  }

  /** Removes everything. */
  async clear(): Promise<void> {
    this.#reported = undefined
    this.#isForgotten = false
    await this.#storage.deleteAlarm()
    await this.#storage.deleteAll()
  }

  #put(key: string, value: unknown): void {
    if (value === undefined) this.#storage.kv.delete(key)
    else this.#storage.kv.put(key, value)
  }
}
