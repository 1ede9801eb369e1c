import { join } from 'node:path'
import type { Log } from '../log/log.ts'
import { requireSpace, withDiskErrors } from './disk.ts'
import { readDurable, removeTemporaries, writeDurable } from './durable-file.ts'
import { closeToOthers, putAside } from './secret-file.ts'
import { UnsavedRecords } from './unsaved-records.ts'

/** A record of the service. */
export interface RecordFormat<T> {
  /** Its file, below the data directory. */
  readonly file: string
  /** As messages call it, in the plural: `the tokens`. */
  readonly name: string
  /** Throws for a text that is no such record. */
  readonly parse: (text: string) => T
  /** What follows from a record that cannot be read. */
  readonly lost: string
}

/** `copy`: the record was damaged, and the version before is used; `lost`: neither can be read. */
export type FoundRecord<T> =
  | { readonly state: 'whole' | 'copy'; readonly value: T }
  | { readonly state: 'none' | 'lost'; readonly value?: undefined }

export type ServiceRecordsOptions = { readonly data: string; readonly minFreeMb: () => number; readonly log: Log }

/**
 * The records of the service itself in its data directory: tokens, computes, placements, digests, settings. Others cannot read them.
 * A record that cannot be saved is logged and told in the feed, once until it has been saved; who asked for the change gets the
 * error.
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

  /** Also removes what writers that were killed left in the data directory. */
  static async open(options: ServiceRecordsOptions): Promise<ServiceRecords> {
    await removeTemporaries(options.data)
    return new ServiceRecords(options)
  }

  /** From now on a feed is told of records that could not be saved. */
  tellFeed(tell: (message: string) => void): void {
    this.#tellFeed = tell
  }

  pathOf(file: string): string {
    return join(this.data, file)
  }

  /**
   * Reads a record; a damaged one is replaced by the version before. One that cannot be read at all is put aside as
   * `{file}.damaged`, so that it is not written over. Rejects for a record of a newer program.
   */
  async read<T>({ file, name, parse, lost }: RecordFormat<T>): Promise<FoundRecord<T>> {
    const { log } = this
    const path = this.pathOf(file)
    const found = await readDurable(path, parse)
    if (found === undefined) {
      const isLost = await withDiskErrors(`A damaged record, ${path}`, () => putAside(path))
      if (isLost) log.error({ path }, `${name} cannot be read and were put aside: ${lost}`)
      return { state: isLost ? 'lost' : 'none' }
    }
    for (const it of [path, `${path}.bak`])
      await closeToOthers(it).catch((err: unknown) => log.warn({ err, path: it }, 'others can read this file'))
    if (found.damaged) log.warn({ path }, `${name} are read from the copy before`)
    return { state: found.damaged ? 'copy' : 'whole', value: found.value }
  }

  /** Writes a record. 507 on a full or read-only disk, and nothing has changed then. `isMore`: only while `min_free_space_mb` are free. */
  write(
    { file, name }: Pick<RecordFormat<unknown>, 'file' | 'name'>,
    content: object,
    { isMore = false } = {},
  ): Promise<void> {
    return this.save({ file, what: `${capital(name)} were not saved` }, async () => {
      if (isMore) await requireSpace(this.data, this.#minFreeMb())
      await writeDurable(this.pathOf(file), `${JSON.stringify(content, null, 2)}\n`)
    })
  }

  /** Saves a record in a way of its own; `what` is said of a failure. */
  async save(
    { file, what }: { readonly file: string; readonly what: string },
    run: () => Promise<void>,
  ): Promise<void> {
    await withDiskErrors(what, run).catch((error: unknown) => this.#failed(file, error))
    this.#unsaved.saved(file)
  }

  /** 507 when no more can be saved in a record: the disk is read-only, or less than `min_free_space_mb` are free. */
  async requireSpace({ file }: { readonly file: string }): Promise<void> {
    await requireSpace(this.data, this.#minFreeMb()).catch((error: unknown) => this.#failed(file, error))
  }

  #failed(file: string, error: unknown): never {
    this.#unsaved.add(file, `${file} could not be saved: ${(error as Error).message}`, error)
    throw error
  }
}

const capital = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1)
