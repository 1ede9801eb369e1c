import type { ArchiveStore } from '../../../src/labs/archives/archive-store.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { withTimeout } from '../../../src/lib/async/timeout.ts'
import { ApiError } from '../../../src/lib/errors/api-error.ts'
import { maxArchiveBytes } from './zip-archives.ts'

/** Bytes of a part of an upload. All but the last are equal, and have at least 5 MiB (developers.cloudflare.com/r2, multipart). */
const partBytes = 8 << 20
/** Timeout of an archive that is being made, without data, ms. */
const quietMs = 60_000

/**
 * Archives of closed projects in a bucket of R2, as `{organization}/{id}.gns3project`. An upload that broke off because its program ended is
 * removed by R2 after seven days.
 */
export class ArchiveBucket implements ArchiveStore {
  readonly #bucket: R2Bucket
  readonly #organization: string

  constructor(bucket: R2Bucket, organization: string) {
    this.#bucket = bucket
    this.#organization = organization
  }

  async write(projectId: string, content: ReadableStream<Uint8Array>): Promise<void> {
    const key = this.#keyOf(projectId)
    const sent: R2UploadedPart[] = []
    let upload: R2MultipartUpload | undefined
    try {
      for await (const { bytes, isLast } of partsOf(content)) {
        if (isLast && upload === undefined) {
          await this.#bucket.put(key, bytes)
          return
        }
        upload ??= await this.#bucket.createMultipartUpload(key)
        sent.push(await upload.uploadPart(sent.length + 1, bytes))
      }
      await upload?.complete(sent)
    } catch (error) {
      await upload?.abort().catch(ignore('R2 removes it after seven days'))
      throw error
    }
  }

  async read(projectId: string): Promise<ReadableStream<Uint8Array> | undefined> {
    return (await this.#bucket.get(this.#keyOf(projectId)))?.body
  }

  async remove(projectId: string): Promise<void> {
    await this.#bucket.delete(this.#keyOf(projectId))
  }

  /** Requires an id without a slash: with one it would name an archive of another organization. */
  #keyOf(projectId: string): string {
    if (projectId.includes('/')) throw new Error('The id of a project has no slash')
    return `${this.#organization}/${projectId}.gns3project`
  }
}

interface Part {
  /** Valid until the next part is read. */
  readonly bytes: Uint8Array
  readonly isLast: boolean
}

/** The content in parts of `partBytes`; the last one may be smaller. 413 when it is larger than an import can read. */
async function* partsOf(content: ReadableStream<Uint8Array>): AsyncGenerator<Part> {
  const reader = content.getReader()
  const part = new Uint8Array(partBytes)
  let filled = 0
  let size = 0
  const late = () => {
    throw new ApiError(504, `Its computes sent no data of the archive for ${quietMs} ms`)
  }
  try {
    for (;;) {
      const { done, value } = await withTimeout(reader.read(), quietMs, late)
      if (done) break
      size += value.byteLength
      if (size > maxArchiveBytes) throw new ApiError(413, `Its archive is larger than ${maxArchiveBytes} bytes`)
      for (let at = 0; at < value.byteLength; ) {
        if (filled === partBytes) {
          yield { bytes: part, isLast: false }
          filled = 0
        }
        const piece = value.subarray(at, at + partBytes - filled)
        part.set(piece, filled)
        filled += piece.byteLength
        at += piece.byteLength
      }
    }
    yield { bytes: part.subarray(0, filled), isLast: true }
  } finally {
    reader.cancel().catch(ignore('it has ended, or failed already'))
  }
}
