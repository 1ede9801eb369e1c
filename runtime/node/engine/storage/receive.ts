import type { FileHandle } from 'node:fs/promises'
import { abortable } from '../../../../src/lib/async/abort.ts'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { withTimeout } from '../../../../src/lib/async/timeout.ts'
import { ApiError } from '../../../../src/lib/errors/api-error.ts'
import { bufferBytes, giveBack } from './buffers.ts'
import { requireSpace } from './disk.ts'

/** Bytes that are written between two checks of the free space, and after which the disk begins to write them. */
const checkEvery = 16 * 2 ** 20
/** Bytes, and pieces of them, that wait while those before them are written; they are written together then. */
const [maxWaiting, maxPieces] = [2 * bufferBytes, 256]

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
  /** False for a file that is used by this process only: it need not survive a power cut. */
  readonly lasts?: boolean
}

/** 400 or 408: the body ended early, or its data stopped. The received bytes are valid. */
export class BrokenOff extends ApiError {}

/** Appends a body to an open file and, if it `lasts`, syncs the file. 400 or 408 when the body is interrupted, 507 when the disk gets full. */
export async function receive(
  content: ReadableStream<Uint8Array>,
  handle: FileHandle,
  { directory, minFreeMb, bodyTimeoutMs, fate, checkSize, signal, lasts = true }: ReceiveOptions,
): Promise<void> {
  const reader = content.getReader()
  let [size, unchecked, waiting] = [0, 0, 0]
  let pieces: Uint8Array[] = []
  let [writing, syncing, failure]: [Promise<void> | undefined, Promise<void> | undefined, unknown] = [
    undefined,
    undefined,
    undefined,
  ]
  const fail = (error: unknown) => {
    failure ??= error
  }
  /** Has the disk write while the body comes: a sync at the end would have to wait for all of it. */
  const sync = () => {
    syncing ??= handle
      .datasync()
      .catch(fail)
      .finally(() => {
        syncing = undefined
      })
  }
  const write = async () => {
    while (pieces.length > 0) {
      const now = pieces
      unchecked += waiting
      ;[pieces, waiting] = [[], 0]
      const { bytesWritten } = await handle.writev(now)
      // It may write only a part.
      if (bytesWritten < byteLength(now)) await handle.writeFile(Buffer.concat(now).subarray(bytesWritten))
      now.forEach(giveBack)
      if (unchecked < checkEvery) continue
      unchecked = 0
      if (lasts) sync()
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
        .catch(fail)
        .finally(() => {
          writing = undefined
        })
      if (waiting >= maxWaiting || pieces.length >= maxPieces) await written()
    }
    await written()
    if (!lasts) return
    await syncing
    await handle.sync()
    if (failure !== undefined) throw failure
  } catch (error) {
    reader.cancel().catch(ignore('the body has failed, or is not wanted any more'))
    await Promise.all([written(), syncing])
    throw error
  }
}

const byteLength = (pieces: readonly Uint8Array[]): number => pieces.reduce((sum, piece) => sum + piece.byteLength, 0)

function bounded<T>(reading: Promise<T>, ms: number, fate: string, signal: AbortSignal | undefined): Promise<T> {
  const piece = reading.catch((cause: unknown) => {
    throw new BrokenOff(400, `The request body ended early; ${fate}`, { cause: cause as Error })
  })
  return withTimeout(abortable(piece, signal), ms, () => {
    throw new BrokenOff(408, `The body sent no data for ${ms} ms; ${fate}`)
  })
}
