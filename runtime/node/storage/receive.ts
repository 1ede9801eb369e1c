import type { FileHandle } from 'node:fs/promises'
import { abortable } from '../../../src/async/abort.ts'
import { ignore } from '../../../src/async/ignore.ts'
import { withTimeout } from '../../../src/async/timeout.ts'
import { ApiError } from '../../../src/errors/api-error.ts'
import { requireSpace } from './disk.ts'

/** So much may be written before the free space is looked at again. */
const checkEvery = 16 * 2 ** 20

export interface ReceiveOptions {
  /** Directory on the disk that is written to. */
  readonly directory: string
  readonly minFreeMb: () => number
  /** A body that brings nothing for so long is given up, ms. */
  readonly bodyTimeoutMs: number
  /** What became of the bytes of a body that broke off, as a client is told it. */
  readonly fate: string
  /** Throws when a body may not have so many bytes. */
  readonly checkSize?: (bytes: number) => void
  /** Gives the body up. */
  readonly signal?: AbortSignal
}

/** 400 or 408: the body ended before its time, or nothing came any more. What came of it is fine. */
export class BrokenOff extends ApiError {}

/** Writes a body to the end of what was written to a file, and syncs it. 400 or 408 when it breaks off, 507 when the disk gets full. */
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
      // Not `write`, which may take less than all of it.
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
