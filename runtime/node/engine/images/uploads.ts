import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Digest, UploadOptions, UploadProgress } from '../../../../src/host-agent.ts'
import { KeyedMutex } from '../../../../src/lib/async/keyed-mutex.ts'
import type { SerialQueue } from '../../../../src/lib/async/serial-queue.ts'
import { ApiError, badRequest, tooLarge } from '../../../../src/lib/errors/api-error.ts'
import type { Checksums } from '../storage/checksums.ts'
import { requireSpace, withDiskErrors } from '../storage/disk.ts'
import { syncDirectory } from '../storage/durable-file.ts'
import { BrokenOff, receive } from '../storage/receive.ts'
import { hasPartsBeside, partsBeside, removeAbandoned, uploadBeside } from './names.ts'
import type { Sums } from './sums.ts'

export interface UploadsOptions {
  readonly checksums: Checksums
  readonly minFreeMb: () => number
  /** Largest image, GB. */
  readonly maxGb: () => number
  /** Timeout of an upload without data, ms. */
  readonly bodyTimeoutMs: number
  /** The changes of which names there are: one waits for another. */
  readonly changes: SerialQueue
  /** Called with the sums of a stored file. */
  readonly summed: (file: string, sums: Sums) => Promise<void>
}

type Part = NonNullable<UploadOptions['part']>
type Content = ReadableStream<Uint8Array>

const groups = ['', 'administrators'] as const
export type UploadGroup = (typeof groups)[number]

/** The conditions for an upload beside its digests. */
export interface UploadAdmission {
  /** Only parts of the same group form one upload. */
  readonly group: UploadGroup
  /** Checks the complete file before its publication; throws to refuse it. */
  readonly admit: (file: string) => Promise<void>
}
const anything: UploadAdmission = { group: '', admit: async () => {} }
/** The sums that lists show. */
const listed = ['md5', 'sha256'] as const
const algorithms = { md5: 'md5', 'sha-256': 'sha256', 'sha-512': 'sha512' } as const

/** Writes uploads beside their final file: a reader sees the old or the new file, never a part. */
export class Uploads {
  readonly #options: UploadsOptions
  /** One part at a time is written to a file. */
  readonly #serial = new KeyedMutex()
  readonly #writing = new Map<string, AbortController>()
  /** Files that uploads in one piece go to. */
  readonly #wholes: string[] = []
  /** Digests that came with earlier parts. Not on disk: parts do not outlive the service. */
  readonly #digests = new Map<string, readonly Digest[]>()

  constructor(options: UploadsOptions) {
    this.#options = options
  }

  /** Stores a file in a directory that exists, from a body that is all of it or a part; see `ImageAgent.write`. */
  async write(
    file: string,
    content: Content,
    options: UploadOptions,
    admission: UploadAdmission = anything,
  ): Promise<UploadProgress> {
    const { part, size, digests } = options
    this.#checkSize(part?.total ?? size ?? 0)
    const directory = dirname(file)
    const expected = part === undefined ? size : part.total - part.first
    await requireSpace(directory, this.#options.minFreeMb(), expected)
    await removeAbandoned(directory)
    return withDiskErrors('path', () =>
      part === undefined
        ? this.#whole(file, content, options, admission)
        : this.#takeOver(file, content, part, digests, admission),
    )
  }

  /** The received size of an upload in parts. */
  async progress(file: string, total: number, group: UploadGroup = ''): Promise<UploadProgress> {
    return { received: await sizeOf(partsBeside(file, total, group)), done: false }
  }

  /** Whether an upload has begun that will replace the file, or may go on. */
  async isBegun(file: string): Promise<boolean> {
    await removeAbandoned(dirname(file))
    return this.#wholes.includes(file) || hasPartsBeside(file, groups)
  }

  async #whole(
    file: string,
    content: Content,
    { size, digests }: UploadOptions,
    admission: UploadAdmission,
  ): Promise<UploadProgress> {
    const temporary = uploadBeside(file)
    this.#wholes.push(file)
    try {
      const handle = await open(temporary, 'wx', 0o700)
      const checkSize = (bytes: number) => this.#checkSize(bytes)
      const fate =
        size === undefined
          ? 'nothing was stored'
          : `the received bytes are kept for a day: ask for their number with Content-Range: bytes */${size}, then send the next part`
      await this.#receive(handle, content, { directory: dirname(file), fate, checkSize })
      return await this.#finish(temporary, file, digests, admission)
    } catch (error) {
      if (size !== undefined && error instanceof BrokenOff)
        await this.#keepAsPart(temporary, partsBeside(file, size, admission.group), digests)
      await rm(temporary, { force: true })
      throw error
    } finally {
      this.#wholes.splice(this.#wholes.indexOf(file), 1)
    }
  }

  /** Keeps the data of an interrupted upload as its first part, unless more data are there already. */
  async #keepAsPart(temporary: string, gathered: string, digests: readonly Digest[]): Promise<void> {
    if (this.#writing.has(gathered)) return
    const received = await sizeOf(temporary)
    if (received <= (await sizeOf(gathered))) return
    await this.#serial.run(gathered, async () => {
      await rename(temporary, gathered)
      this.#digests.set(gathered, digests)
    })
  }

  /** A client may resume before the service notices the broken connection: the new request ends the old one. */
  #takeOver(
    file: string,
    content: Content,
    part: Part,
    digests: readonly Digest[],
    admission: UploadAdmission,
  ): Promise<UploadProgress> {
    const gathered = partsBeside(file, part.total, admission.group)
    const own = new AbortController()
    this.#writing.get(gathered)?.abort(new ApiError(409, 'Another upload of this image replaced this one'))
    this.#writing.set(gathered, own)
    return this.#serial.run(gathered, async () => {
      try {
        own.signal.throwIfAborted()
        return await this.#part(gathered, file, content, part, digests, own.signal, admission)
      } finally {
        if (this.#writing.get(gathered) === own) this.#writing.delete(gathered)
      }
    })
  }

  async #part(
    gathered: string,
    file: string,
    content: Content,
    { first, last, total }: Part,
    digests: readonly Digest[],
    signal: AbortSignal,
    admission: UploadAdmission,
  ): Promise<UploadProgress> {
    const there = await sizeOf(gathered)
    if (first > there) {
      const headers: Record<string, string> = there === 0 ? {} : { Range: `bytes=0-${there - 1}` }
      const message = `Content-Range: ${there} bytes are stored, so the next part begins at ${there}`
      throw new ApiError(409, message, { headers })
    }
    const length = last - first + 1
    const checkSize = (bytes: number) => {
      if (bytes > length) throw badRequest(`Content-Range: expected a body of ${length} bytes, got more`)
    }
    this.#digests.set(gathered, together(first === 0 ? [] : (this.#digests.get(gathered) ?? []), digests))
    const handle = await open(gathered, 'a', 0o700)
    await handle.truncate(first)
    await this.#receive(handle, content, {
      directory: dirname(file),
      fate: 'the received bytes are kept',
      checkSize,
      signal,
    })
    const received = await sizeOf(gathered)
    if (received < total) return { received, done: false }
    try {
      return await this.#finish(gathered, file, this.#digests.get(gathered) ?? [], admission)
    } catch (error) {
      await rm(gathered, { force: true })
      throw error
    } finally {
      this.#digests.delete(gathered)
    }
  }

  async #receive(
    handle: FileHandle,
    content: Content,
    options: { directory: string; fate: string; checkSize: (bytes: number) => void; signal?: AbortSignal },
  ): Promise<void> {
    await using file = handle
    const { minFreeMb, bodyTimeoutMs } = this.#options
    await receive(content, file, { minFreeMb, bodyTimeoutMs, ...options })
  }

  async #finish(
    temporary: string,
    file: string,
    digests: readonly Digest[],
    { admit }: UploadAdmission,
  ): Promise<UploadProgress> {
    // The sums for lists are computed in the same pass.
    const wanted = [
      ...new Set([...(digests.length === 0 ? [] : listed), ...digests.map((it) => algorithms[it.algorithm])]),
    ]
    const made = wanted.length === 0 ? [] : await this.#options.checksums.hashes(temporary, wanted)
    const sums = new Map(wanted.map((algorithm, index) => [algorithm, made?.[index]]))
    for (const { algorithm, hex } of digests) {
      const sum = sums.get(algorithms[algorithm])
      if (sum === undefined) throw new ApiError(503, 'The digest could not be computed, try again')
      if (sum === hex) continue
      throw badRequest(`${algorithm}: expected ${hex}, but the received content has ${sum}; nothing was stored`)
    }
    await admit(temporary)
    const { size } = await stat(temporary)
    await this.#options.changes.run(() => rename(temporary, file))
    await syncDirectory(dirname(file))
    const [md5sum, sha256] = listed.map((algorithm) => sums.get(algorithm))
    if (md5sum !== undefined && sha256 !== undefined) await this.#options.summed(file, { md5sum, sha256 })
    return { received: size, done: true }
  }

  #checkSize(bytes: number): void {
    const maxGb = this.#options.maxGb()
    if (bytes > maxGb * 2 ** 30) throw tooLarge(`Images are limited to ${maxGb} GB (limits.image_gb)`)
  }
}

/** The digests of one upload, one of each algorithm, from all its parts. 400 for two that differ. */
function together(known: readonly Digest[], digests: readonly Digest[]): readonly Digest[] {
  const all = new Map(known.map((it) => [it.algorithm, it]))
  for (const digest of digests) {
    const { algorithm, hex } = digest
    const before = all.get(algorithm)?.hex ?? hex
    if (before !== hex) throw badRequest(`${algorithm}: an earlier part named ${before}, this one names ${hex}`)
    all.set(algorithm, digest)
  }
  return [...all.values()]
}

const sizeOf = async (file: string): Promise<number> => (await stat(file).catch(() => undefined))?.size ?? 0
