import type { FileHandle } from 'node:fs/promises'
import { abortable } from '../../../src/async/abort.ts'
import { ignore } from '../../../src/async/ignore.ts'
import { withTimeout } from '../../../src/async/timeout.ts'
import { ApiError } from '../../../src/errors/api-error.ts'
import { requireSpace } from './disk.ts'

/** Bytes that are written between two checks of the free space. */
const checkEvery = 16 * 2 ** 20
/** Bytes, and pieces of them, that wait while those before them are written; they are written together then. */
const [maxWaiting, maxPieces] = [2 ** 20, 256]

export interface ReceiveOptions {
  /** Directory on the disk that is written to. */
  readonly directory: string
  readonly minFreeMb: () => number
  /** Timeout of a body without data, ms. */
  readonly bodyTimeoutMs: number
  /** What happens to the received bytes of an interrupted body, for the error message. */
  readonly fate: string
  /** Throws when a body of this size is too large. */
  readonly checkSize?: (bytes: number) => void
  readonly signal?: AbortSignal
}

/** 400 or 408: the body ended early, or its data stopped. The received bytes are valid. */
export class BrokenOff extends ApiError {}

/** Appends a body to an open file and syncs the file. 400 or 408 when the body is interrupted, 507 when the disk gets full. */
export async function receive(
  content: ReadableStream<Uint8Array>,
  handle: FileHandle,
  { directory, minFreeMb, bodyTimeoutMs, fate, checkSize, signal }: ReceiveOptions,
): Promise<void> {
  const reader = content.getReader()
  let [size, unchecked, waiting] = [0, 0, 0]
  let pieces: Uint8Array[] = []
  let [writing, failure]: [Promise<void> | undefined, unknown] = [undefined, undefined]
  const write = async () => {
    while (pieces.length > 0) {
      const now = pieces
      unchecked += waiting
      ;[pieces, waiting] = [[], 0]
      const { bytesWritten } = await handle.writev(now)
      // It may write only a part.
      if (bytesWritten < byteLength(now)) await handle.writeFile(Buffer.concat(now).subarray(bytesWritten))
      if (unchecked < checkEvery) continue
      unchecked = 0
      await requireSpace(directory, minFreeMb())
    }
  }
  const written = async () => {
    await writing
    if (failure !== undefined) throw failure
  }
  try {
    for (;;) {
      const { done, value } = await bounded(reader.read(), bodyTimeoutMs, fate, signal)
      if (done) break
      size += value.byteLength
      checkSize?.(size)
      if (failure !== undefined) throw failure
      pieces.push(value)
      waiting += value.byteLength
      writing ??= write()
        .catch((error: unknown) => {
          failure = error
        })
        .finally(() => {
          writing = undefined
        })
      if (waiting >= maxWaiting || pieces.length >= maxPieces) await written()
    }
    await written()
    await handle.sync()
  } catch (error) {
    reader.cancel().catch(ignore('the body has failed, or is not wanted any more'))
    await written()
    throw error
  }
}

const byteLength = (pieces: readonly Uint8Array[]): number => pieces.reduce((sum, it) => sum + it.byteLength, 0)

function bounded<T>(reading: Promise<T>, ms: number, fate: string, signal: AbortSignal | undefined): Promise<T> {
  const piece = reading.catch((cause: unknown) => {
    throw new BrokenOff(400, `The body broke off; ${fate}`, { cause: cause as Error })
  })
  return withTimeout(abortable(piece, signal), ms, () => {
    throw new BrokenOff(408, `The body stopped coming for ${ms} ms; ${fate}`)
  })
}
