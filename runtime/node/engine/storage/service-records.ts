import { join } from 'node:path'
import type { Log } from '../../os/log/log.ts'
import { requireSpace, withDiskErrors } from './disk.ts'
import { readDurable, removeTemporaries, writeDurable } from './durable-file.ts'
import { closeToOthers, putAside } from './secret-file.ts'
import { UnsavedRecords } from './unsaved-records.ts'

/** A record of the service. */
export interface RecordFormat<T> {
  /** Its file, below the data directory. */
  readonly file: string
  /** Its name in messages, in the plural: `the tokens`. */
  readonly name: string
  /** Throws on invalid text. */
  readonly parse: (text: string) => T
  /** The effect of an unreadable record, for the log. */
  readonly lost: string
}

/** `copy`: the record was damaged, and the backup is used; `lost`: neither can be read. */
export type FoundRecord<T> =
  | { readonly state: 'whole' | 'copy'; readonly value: T }
  | { readonly state: 'none' | 'lost'; readonly value?: undefined }

export type ServiceRecordsOptions = { readonly data: string; readonly minFreeMb: () => number; readonly log: Log }

/**
 * The records of the service itself in its data directory: tokens, computes, placements, digests, settings. Other users cannot read
 * them. A record that cannot be saved is reported in the log and the feed, once until it is saved. The request that changed it fails.
 */
export class ServiceRecords {
  readonly data: string
  readonly log: Log
  readonly #minFreeMb: () => number
  readonly #unsaved: UnsavedRecords
  #tellFeed: (message: string) => void = () => {}

  private constructor({ data, minFreeMb, log }: ServiceRecordsOptions) {
    this.data = data
    this.log = log
    this.#minFreeMb = minFreeMb
    this.#unsaved = new UnsavedRecords((message, err) => {
      log.error({ err }, message)
      this.#tellFeed(message)
    })
  }

  /** Also removes temporary files of killed writers from the data directory. */
  static async open(options: ServiceRecordsOptions): Promise<ServiceRecords> {
    await removeTemporaries(options.data)
    return new ServiceRecords(options)
  }

  /** Sets the function that reports records that could not be saved to a feed. */
  tellFeed(tell: (message: string) => void): void {
    this.#tellFeed = tell
  }

  pathOf(file: string): string {
    return join(this.data, file)
  }

  /**
   * Reads a record; a damaged record is replaced by its backup. If both are unreadable, the record is renamed to `{file}.damaged`, so
   * that it is not overwritten. Rejects with NewerRecord for a record of a newer program.
   */
  async read<T>({ file, name, parse, lost }: RecordFormat<T>): Promise<FoundRecord<T>> {
    const { log } = this
    const path = this.pathOf(file)
    const found = await readDurable(path, parse)
    if (found === undefined) {
      const isLost = await withDiskErrors(`A damaged record, ${path}`, () => putAside(path))
      if (isLost) log.error({ path }, `${name} cannot be read and were renamed to ${file}.damaged: ${lost}`)
      return { state: isLost ? 'lost' : 'none' }
    }
    for (const it of [path, `${path}.bak`])
      await closeToOthers(it).catch((err: unknown) => log.warn({ err, path: it }, 'others can read this file'))
    if (found.damaged) log.warn({ path }, `${name} are damaged and were read from the backup`)
    return { state: found.damaged ? 'copy' : 'whole', value: found.value }
  }

  /** Writes a record. 507 on a full or read-only disk; the old record then stays. `isMore`: also requires `min_free_space_mb`. */
  write({ file, name }: RecordFormat<unknown>, content: object, { isMore = false } = {}): Promise<void> {
    return this.save({ file, what: `${capital(name)} were not saved` }, async () => {
      if (isMore) await requireSpace(this.data, this.#minFreeMb())
      await writeDurable(this.pathOf(file), `${JSON.stringify(content, null, 2)}\n`)
    })
  }

  /** Saves a record by `run`; `what` begins the message of a failure. */
  async save({ file, what }: { file: string; what: string }, run: () => Promise<void>): Promise<void> {
    await withDiskErrors(what, run).catch((error: unknown) => this.#failed(file, error))
    this.#unsaved.saved(file)
  }

  /** 507 when a record cannot grow: the disk is read-only, or less than `min_free_space_mb` are free. */
  async requireSpace({ file }: { readonly file: string }): Promise<void> {
    await requireSpace(this.data, this.#minFreeMb()).catch((error: unknown) => this.#failed(file, error))
  }

  #failed(file: string, error: unknown): never {
    this.#unsaved.add(file, `${file} could not be saved: ${(error as Error).message}`, error)
    throw error
  }
}

const capital = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1)
