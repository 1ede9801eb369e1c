import { stat } from 'node:fs/promises'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { mapLimit } from '../../../../src/lib/async/map-limit.ts'
import { setNewest } from '../../../../src/lib/async/newest.ts'
import type { Checksums } from '../storage/checksums.ts'
import { readDurable, writeDurable } from '../storage/durable-file.ts'
import type { ServiceRecords } from '../storage/service-records.ts'

const file = 'images/sums.json'
/** More at a time only make the disk seek. */
const maxAtOnce = 2
const maxKept = 10_000
/** A file changed so recently may change again within the same tick of its clock, ms. */
const settleMs = 1000
const saveMs = 500

interface Kept {
  readonly size: number
  /** Nanoseconds, in decimal digits. */
  readonly mtime: string
  readonly md5sum: string
  readonly sha256: string
}

/** The sums of a file. */
export type Sums = Pick<Kept, 'md5sum' | 'sha256'>

/**
 * MD5 and SHA-256 sums of images, stored over restarts: hashing a hundred gigabytes takes minutes. A sum is valid until the path,
 * the size or the time of the file changes.
 */
export class ImageSums {
  readonly #records: ServiceRecords
  readonly #checksums: Checksums
  readonly #pending = new Map<string, Promise<Sums | undefined>>()
  #kept: Promise<Map<string, Kept>> | undefined
  #timer: NodeJS.Timeout | undefined
  #saved: Promise<void> = Promise.resolve()

  constructor(records: ServiceRecords, checksums: Checksums) {
    this.#records = records
    this.#checksums = checksums
  }

  /** The files that can be read, with their sums and sizes, in their order. */
  async ofAll<T extends { readonly file: string }>(
    files: readonly T[],
  ): Promise<(T & Sums & { readonly size: number })[]> {
    const sumOf = async (entry: T) => {
      const sum = await this.of(entry.file)
      return sum && { ...entry, ...sum }
    }
    return (await mapLimit(files, sumOf, maxAtOnce)).filter((it) => it !== undefined)
  }

  /** Stores the sums that were made while the file had another name. */
  async remember(file: string, sums: Sums): Promise<void> {
    const stats = await stat(file, { bigint: true }).catch(() => undefined)
    if (stats !== undefined) await this.#keep(file, { size: Number(stats.size), mtime: String(stats.mtimeNs), ...sums })
  }

  /** Takes over the sums of a file that has another path now. */
  async moved(from: string, to: string): Promise<void> {
    const kept = await this.#load()
    const sums = kept.get(from)
    if (sums === undefined) return
    kept.delete(from)
    await this.#keep(to, sums)
  }

  /** Saves pending changes. */
  async close(): Promise<void> {
    if (this.#timer !== undefined) this.#save()
    await this.#saved
  }

  /** Hashes a file in one pass for both sums, without storing them; undefined when it cannot be read. */
  async made(file: string): Promise<Sums | undefined> {
    const [md5sum, sha256] = (await this.#checksums.hashes(file, ['md5', 'sha256'])) ?? []
    return md5sum === undefined || sha256 === undefined ? undefined : { md5sum, sha256 }
  }

  /** The sums and size of one file; undefined when it cannot be read. */
  async of(file: string): Promise<(Sums & { size: number }) | undefined> {
    const stats = await stat(file, { bigint: true }).catch(() => undefined)
    if (stats === undefined) return undefined
    const size = Number(stats.size)
    const mtime = String(stats.mtimeNs)
    const known = (await this.#load()).get(file)
    if (known?.size === size && known.mtime === mtime) return { md5sum: known.md5sum, sha256: known.sha256, size }
    const key = `${size}:${mtime}:${file}`
    // Clients repeat the request while the service hashes a large image.
    const summing = this.#pending.get(key) ?? this.made(file)
    this.#pending.set(key, summing)
    const sums = await summing
    this.#pending.delete(key)
    if (sums === undefined) return undefined
    const after = await stat(file, { bigint: true }).catch(() => undefined)
    const isSettled = String(after?.mtimeNs) === mtime && Date.now() - Number(stats.mtimeMs) > settleMs
    if (isSettled) await this.#keep(file, { size, mtime, ...sums })
    return { ...sums, size }
  }

  async #keep(file: string, kept: Kept): Promise<void> {
    setNewest(await this.#load(), file, kept, maxKept)
    this.#timer ??= setTimeout(() => this.#save(), saveMs).unref()
  }

  #save(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const what = 'The sums of images were not saved'
    const write = async () =>
      writeDurable(this.#records.pathOf(file), JSON.stringify(Object.fromEntries(await this.#load())))
    this.#saved = this.#saved
      .then(() => this.#records.save({ file, what }, write))
      .catch(ignore('`save` reports the failure, and missing sums are computed again'))
  }

  #load(): Promise<Map<string, Kept>> {
    this.#kept ??= readDurable(this.#records.pathOf(file), parse).then((found) => new Map(found?.value ?? []))
    return this.#kept
  }
}

const parse = (text: string): [string, Kept][] =>
  Object.entries(JSON.parse(text) as Record<string, Partial<Kept>>).flatMap(
    ([file, { size, mtime, md5sum, sha256 }]): [string, Kept][] => {
      if (typeof size !== 'number' || typeof mtime !== 'string' || typeof md5sum !== 'string')
        throw new Error('no sums')
      // An earlier version made one sum only: both are made when the file is next listed.
      return typeof sha256 === 'string' ? [[file, { size, mtime, md5sum, sha256 }]] : []
    },
  )
