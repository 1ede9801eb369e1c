import type { Compute, ComputeRecord } from '../../src/model/compute.ts'
import { isNews } from './health-check-loop.ts'
import { openRecord, type SealedRecord, sealRecord } from './registry-table.ts'
import type { Sealer } from './sealed.ts'

/** The state of a compute that the directory was told last. */
export interface ToldState {
  /** ms since 1970. */
  readonly at: number
  readonly shown: Compute
}

/** What the object of a compute keeps for its next program. Nothing is stored before it has a record. */
export class KeptCompute {
  readonly #storage: DurableObjectStorage
  readonly #sealer: Sealer
  readonly #warn: (message: string) => void
  #told: ToldState | undefined
  /** Whether there is a state in the storage that does not count any more. */
  #isForgotten = false

  constructor(storage: DurableObjectStorage, sealer: Sealer, warn: (message: string) => void) {
    this.#storage = storage
    this.#sealer = sealer
    this.#warn = warn
    this.#told = storage.kv.get<ToldState>('told')
  }

  async record(): Promise<ComputeRecord | undefined> {
    const sealed = this.#storage.kv.get<SealedRecord>('record')
    return sealed && openRecord(sealed, this.#sealer, this.#warn)
  }

  async keepRecord(record: ComputeRecord): Promise<void> {
    this.#storage.kv.put('record', await sealRecord(record, this.#sealer))
  }

  get told(): ToldState | undefined {
    return this.#told
  }

  set told(told: ToldState | undefined) {
    const stored = this.#isForgotten ? this.#storage.kv.get<ToldState>('told') : undefined
    this.#told = told
    this.#isForgotten = false
    if (told === undefined || stored === undefined || isNews(told.shown, stored.shown, 0)) this.#put('told', told)
  }

  /**
   * From now on nothing was told, as for a compute that joins anew. Most join again as they were: what is stored is written only when the
   * next that is told differs, or by `settle`.
   */
  forgetTold(): void {
    this.#isForgotten ||= this.#told !== undefined
    this.#told = undefined
  }

  /** Stores that nothing was told, if that is so. */
  settle(): void {
    if (this.#isForgotten) this.told = undefined
  }

  /** When the compute was last asked for something, ms since 1970; to about a minute. */
  get usedAt(): number {
    return this.#storage.kv.get<number>('used') ?? 0
  }

  set usedAt(at: number) {
    this.#put('used', at)
  }

  /** The turn of the directory that listens to a compute with an address; see `EventPump`. */
  get listening(): string | undefined {
    return this.#storage.kv.get<string>('listening')
  }

  set listening(turn: string | undefined) {
    if (this.listening !== turn) this.#put('listening', turn)
  }

  /** Digest of the list of projects that the directory was told. */
  get projects(): string | undefined {
    return this.#storage.kv.get<string>('projects')
  }

  set projects(digest: string) {
    this.#put('projects', digest)
  }

  /** Removes everything. */
  async clear(): Promise<void> {
    this.#told = undefined
    this.#isForgotten = false
    await this.#storage.deleteAlarm()
    await this.#storage.deleteAll()
  }

  #put(key: string, value: unknown): void {
    if (value === undefined) this.#storage.kv.delete(key)
    else this.#storage.kv.put(key, value)
  }
}
