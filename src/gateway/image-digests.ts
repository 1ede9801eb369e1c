import { ignore } from '../async/ignore.ts'
import { setNewest } from '../async/newest.ts'
import { relay } from '../async/relay.ts'
import { ApiError } from '../errors/api-error.ts'
import type { UploadOptions } from '../host-agent.ts'
import type { ImageKindName } from '../model/image.ts'

/** Uploads in parts whose digest is being made; of the oldest none is known when there are more. */
const maxUploads = 64

/** What an image was when it was uploaded through the gateway. */
export interface ImageDigest {
  /** Lower-case hexadecimal digits. */
  readonly sha256: string
  /** Whether an administrator uploaded it: then it may be a program, wherever it is copied. */
  readonly byAdmin: boolean
}

/** The digests of images by kind and name: what must not be forgotten. A change is kept when its promise resolves. */
export interface ImageDigests {
  get(kind: ImageKindName, name: string): Promise<ImageDigest | undefined>
  /** Rejects when no more can be saved now. */
  requireSpace(): Promise<void>
  put(kind: ImageKindName, name: string, digest: ImageDigest): Promise<void>
  /** Nothing is done for one that is not known. */
  remove(kind: ImageKindName, name: string): Promise<void>
}

/** Makes a SHA-256 of what comes piece by piece, which the web's own cannot. */
export interface Hasher {
  update(bytes: Uint8Array): void | Promise<void>
  /** In lower-case hexadecimal digits; nothing comes after it. */
  hex(): Promise<string>
}

/** An image that was uploaded through the gateway. */
export interface UploadedImage {
  readonly kind: ImageKindName
  readonly name: string
  readonly digest: ImageDigest
}

interface Begun {
  readonly hasher: Hasher
  /** Bytes that it has seen. */
  at: number
}

/** An upload whose bytes are looked at on their way to the computes. */
export interface WatchedUpload {
  readonly content: ReadableStream<Uint8Array>
  /** The computes have taken it; `isWhole`: the image is complete now. */
  taken(isWhole: boolean): Promise<void>
}

/** Keeps what an image is that was uploaded; undefined: it is another one now, and nobody knows which. */
export type RecordDigest = (kind: ImageKindName, name: string, digest: ImageDigest | undefined) => Promise<void>

/**
 * Makes the digests of uploads. Of an upload in parts the digest is known when they came one after the other to this process, or when the
 * client named it.
 */
export class UploadWatch {
  readonly #record: RecordDigest
  readonly #newHasher: () => Hasher
  readonly #begun = new Map<string, Begun>()

  constructor(record: RecordDigest, newHasher: () => Hasher) {
    this.#record = record
    this.#newHasher = newHasher
  }

  watch(
    { kind, name, byAdmin }: { kind: ImageKindName; name: string; byAdmin: boolean },
    content: ReadableStream<Uint8Array>,
    { part, digests }: Pick<UploadOptions, 'part' | 'digests'>,
  ): WatchedUpload {
    // As computes gather them: nobody replaces what an administrator has begun.
    const key = `${kind} ${byAdmin} ${part?.total ?? ''} ${name}`
    const begun = this.#goOn(key, part?.first ?? 0)
    const named = digests.find(({ algorithm }) => algorithm === 'sha-256')?.hex
    return {
      content: begun === undefined ? content : hashed(content, begun),
      taken: async (isWhole) => {
        if (!isWhole) return
        this.#begun.delete(key)
        const made = begun?.at === (part?.total ?? begun?.at) ? await begun?.hasher.hex() : undefined
        const sha256 = made ?? named
        // Another image has this name now: what was known of the one before means nothing.
        const isKnown = sha256 !== undefined && (named === undefined || named === sha256)
        await this.#record(kind, name, isKnown ? { sha256, byAdmin } : undefined).catch((error: unknown) => {
          throw unsaved(error)
        })
      },
    }
  }

  /** What was begun and is at this byte; undefined when its beginning did not come here. */
  #goOn(key: string, first: number): Begun | undefined {
    const before = this.#begun.get(key)
    this.#begun.delete(key)
    const begun = first === 0 ? { hasher: this.#newHasher(), at: 0 } : before
    if (begun?.at !== first) return undefined
    setNewest(this.#begun, key, begun, maxUploads)
    return begun
  }
}

/** Records the digest of what is uploaded, so that a copy of an image between computes is known to be what a client has uploaded. */
export class UploadDigests {
  readonly #store: ImageDigests
  readonly #watch: UploadWatch
  readonly #stored: (image: UploadedImage) => void
  /** Images that are being removed, with the number of requests that do so. */
  readonly #removals = new Map<string, number>()

  /** `stored` is told of each image whose digest was recorded. */
  constructor(store: ImageDigests, newHasher: () => Hasher, stored: (image: UploadedImage) => void = () => {}) {
    this.#store = store
    this.#watch = new UploadWatch((kind, name, digest) => this.record(kind, name, digest), newHasher)
    this.#stored = stored
  }

  /** See `UploadWatch`. */
  watch(...upload: Parameters<UploadWatch['watch']>): WatchedUpload {
    return this.#watch.watch(...upload)
  }

  /** See `RecordDigest`. */
  async record(kind: ImageKindName, name: string, digest: ImageDigest | undefined): Promise<void> {
    if (digest === undefined) return this.#store.remove(kind, name)
    await this.#store.put(kind, name, digest)
    this.#stored({ kind, name, digest })
  }

  /** Rejects when the digest of an upload could not be saved now. */
  requireSpace(): Promise<void> {
    return this.#store.requireSpace()
  }

  /** What an image was when it was uploaded; undefined also while it is being removed, as it must not be copied then. */
  async get(kind: ImageKindName, name: string): Promise<ImageDigest | undefined> {
    return this.#removals.has(`${kind}/${name}`) ? undefined : this.#store.get(kind, name)
  }

  /** Runs what removes an image from computes; the digest is forgotten when one of them has (`removed`), and not before. */
  async whileRemoved(
    kind: ImageKindName,
    name: string,
    remove: (removed: () => void) => Promise<unknown>,
  ): Promise<void> {
    const key = `${kind}/${name}`
    let isRemoved = false
    this.#removals.set(key, (this.#removals.get(key) ?? 0) + 1)
    try {
      await remove(() => {
        isRemoved = true
      })
    } finally {
      if (isRemoved) await this.#store.remove(kind, name).catch(ignore('the store tells that it cannot save'))
      const left = (this.#removals.get(key) ?? 1) - 1
      if (left > 0) this.#removals.set(key, left)
      else this.#removals.delete(key)
    }
  }
}

const unsaved = (error: unknown): unknown =>
  error instanceof ApiError
    ? new ApiError(
        error.status,
        `The image is stored, but it is not brought to computes that lack it: ${error.message}; then upload it again`,
        { cause: error },
      )
    : error

/** The same bytes; each piece is seen by the hasher before it goes on. */
const hashed = (content: ReadableStream<Uint8Array>, begun: Begun): ReadableStream<Uint8Array> =>
  relay(content, {
    onPiece: async (piece) => {
      begun.at += piece.byteLength
      await begun.hasher.update(piece)
    },
  })
