import type { UploadOptions } from '../../host-agent.ts'
import { ignore } from '../../lib/async/ignore.ts'
import { setNewest } from '../../lib/async/newest.ts'
import { relay } from '../../lib/async/relay.ts'
import { SerialQueue } from '../../lib/async/serial-queue.ts'
import { ApiError } from '../../lib/errors/api-error.ts'
import type { ImageKindName } from '../../model/image.ts'

/** Most uploads in parts whose digests are computed at a time; beyond it the digest of the oldest is given up. */
const maxUploads = 64

/** The digest of an image when it was uploaded through the gateway. */
export interface ImageDigest {
  /** Lower-case hexadecimal digits. */
  readonly sha256: string
  /** Whether an administrator uploaded it: then it may be a program, wherever it is copied. */
  readonly byAdmin: boolean
}

/** The durable digests of images, by kind and name. A change is saved when its promise resolves. */
export interface ImageDigests {
  get(kind: ImageKindName, name: string): Promise<ImageDigest | undefined>
  /** Rejects when no more can be saved now. */
  requireSpace(): Promise<void>
  put(kind: ImageKindName, name: string, digest: ImageDigest): Promise<void>
  /** Does nothing for an unknown image. */
  remove(kind: ImageKindName, name: string): Promise<void>
  /** Keeps the digest of an image by another name, in place of what that name had. Removes the latter also for an unknown image. */
  rename(kind: ImageKindName, name: string, to: string): Promise<void>
}

/** Computes a SHA-256 piece by piece, which Web Crypto cannot. */
export interface Hasher {
  update(bytes: Uint8Array): void | Promise<void>
  /** In lower-case hexadecimal digits. The last call. */
  hex(): Promise<string>
}

/** An image that was uploaded through the gateway. */
export interface UploadedImage {
  readonly kind: ImageKindName
  readonly name: string
  readonly digest: ImageDigest
}

/** What is recorded of the two names of an image that is being renamed. */
export interface RecordedNames {
  readonly digest: ImageDigest | undefined
  /** Whether there is a digest of the new name. */
  readonly isTaken: boolean
}

interface Begun {
  readonly hasher: Hasher
  /** How many bytes were hashed. */
  at: number
}

/** An upload whose bytes are hashed on their way to the computes. */
export interface WatchedUpload {
  readonly content: ReadableStream<Uint8Array>
  /** Call it when the computes have stored the content; `isWhole`: the image is complete now. */
  taken(isWhole: boolean): Promise<void>
}

/** Records the digest of an uploaded image; undefined: its content has changed, and the new digest is unknown. */
export type RecordDigest = (kind: ImageKindName, name: string, digest: ImageDigest | undefined) => Promise<void>

/**
 * Computes the digests of uploads. The digest of an upload in parts is known when this process got all parts in order, or when the client
 * sent it.
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
    // By the same key as on computes, so that a user cannot continue an upload that an administrator began.
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
        // The name has new content now: without its digest the old one must go.
        const isKnown = sha256 !== undefined && (named === undefined || named === sha256)
        await this.#record(kind, name, isKnown ? { sha256, byAdmin } : undefined).catch((error: unknown) => {
          throw unsaved('stored', error)
        })
      },
    }
  }

  /** The hash of an upload up to this byte; undefined when this process did not get all parts before it. */
  #goOn(key: string, first: number): Begun | undefined {
    const before = this.#begun.get(key)
    this.#begun.delete(key)
    const begun = first === 0 ? { hasher: this.#newHasher(), at: 0 } : before
    if (begun?.at !== first) return undefined
    setNewest(this.#begun, key, begun, maxUploads)
    return begun
  }
}

/** Records the digests of uploads: a copy of an image between computes is checked to be what a client has uploaded. */
export class UploadDigests {
  readonly #store: ImageDigests
  readonly #watch: UploadWatch
  readonly #stored: (image: UploadedImage) => void
  /** Images that are being removed or renamed, with the number of requests that do so. */
  readonly #hidden = new Map<string, number>()
  readonly #renamings = new SerialQueue()

  /** `stored` is called for each image whose digest was recorded. */
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

  /** The digest of an image at its upload; undefined also while the image is being removed or renamed, as it must not be copied then. */
  async get(kind: ImageKindName, name: string): Promise<ImageDigest | undefined> {
    return this.#hidden.has(`${kind}/${name}`) ? undefined : this.#store.get(kind, name)
  }

  /** Runs the removal of an image from computes. Its digest is removed when a compute has removed the image (it calls `removed`). */
  async whileRemoved(
    kind: ImageKindName,
    name: string,
    remove: (removed: () => void) => Promise<unknown>,
  ): Promise<void> {
    let isRemoved = false
    using _hidden = this.#hide(kind, name)
    try {
      await remove(() => {
        isRemoved = true
      })
    } finally {
      if (isRemoved) await this.#store.remove(kind, name).catch(ignore('the store reports that it cannot save'))
    }
  }

  /**
   * Runs the renaming of an image on computes, after which its digest belongs to the new name. One after the other: two images do not get one
   * name on different computes.
   */
  whileRenamed(
    kind: ImageKindName,
    name: string,
    to: string,
    rename: (recorded: RecordedNames) => Promise<unknown>,
  ): Promise<void> {
    return this.#renamings.run(async () => {
      await this.#store.requireSpace()
      using _hidden = this.#hide(kind, name)
      using _target = this.#hide(kind, to)
      const [digest, before] = [await this.#store.get(kind, name), await this.#store.get(kind, to)]
      await rename({ digest, isTaken: before !== undefined })
      await this.#store.rename(kind, name, to).catch((error: unknown) => {
        throw unsaved('renamed', error)
      })
      // The copy that is kept apart may have been looked for by the old name.
      if (digest !== undefined) this.#stored({ kind, name: to, digest })
    })
  }

  /** Hides the digest of an image that is being changed, until the end of the scope. */
  #hide(kind: ImageKindName, name: string): Disposable {
    const key = `${kind}/${name}`
    this.#hidden.set(key, (this.#hidden.get(key) ?? 0) + 1)
    return {
      [Symbol.dispose]: () => {
        const left = (this.#hidden.get(key) ?? 1) - 1
        if (left > 0) this.#hidden.set(key, left)
        else this.#hidden.delete(key)
      },
    }
  }
}

const unsaved = (what: 'stored' | 'renamed', error: unknown): unknown =>
  error instanceof ApiError
    ? new ApiError(
        error.status,
        `The image is ${what}, but cannot be copied to computes that lack it: ${error.message}; then upload it again`,
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
