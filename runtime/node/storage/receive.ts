import type { FileHandle } from 'node:fs/promises'
import { abortable } from '../../../src/async/abort.ts'
import { ignore } from '../../../src/async/ignore.ts'
import { withTimeout } from '../../../src/async/timeout.ts'
import { ApiError } from '../../../src/errors/api-error.ts'
import { requireSpace } from './disk.ts'

/** Bytes that are written between two checks of the free space. */
const checkEvery = 16 * 2 ** 20

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
  let unchecked = 0
  let size = 0
  try {
    for (;;) {
      const { done, value } = await bounded(reader.read(), bodyTimeoutMs, fate, signal)
      if (done) break
      size += value.byteLength
      checkSize?.(size)
      // Not `write`, which may write only a part.
      await handle.writeFile(value)
      unchecked += value.byteLength
      if (unchecked < checkEvery) continue
      unchecked = 0
      await requireSpace(directory, minFreeMb())
    }
    await handle.sync()
  } catch (error) {
    reader.cancel().catch(ignore('the body has failed, or is not wanted any more'))
    throw error
  }
}

function bounded<T>(reading: Promise<T>, ms: number, fate: string, signal: AbortSignal | undefined): Promise<T> {
  const piece = reading.catch((cause: unknown) => {
    throw new BrokenOff(400, `The body ended before its time; ${fate}`, { cause: cause as Error })
  })
  return withTimeout(abortable(piece, signal), ms, () => {
    throw new BrokenOff(408, `The body stopped coming for ${ms} ms; ${fate}`)
  })
}
