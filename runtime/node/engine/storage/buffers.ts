/** Size of the buffers that are lent, bytes. */
export const bufferBytes = 2 ** 20
/** Most buffers that wait for a next use. */
const maxSpare = 4

const spare: ArrayBuffer[] = []
const lent = new WeakSet<ArrayBufferLike>()

/**
 * A buffer of at most `bufferBytes` for the content of a file; it may have other content. V8 collects garbage after some dozen megabytes of
 * new buffers, which took a third of the time of a copy: the last user of a piece gives it back.
 */
export function lend(bytes: number): Uint8Array<ArrayBuffer> {
  if (bytes < bufferBytes) return new Uint8Array(bytes)
  const buffer = spare.pop() ?? new ArrayBuffer(bufferBytes)
  lent.add(buffer)
  return new Uint8Array(buffer)
}

/** Takes a piece back that nothing refers to any more. A part of a buffer, or one that was not lent, is left to the garbage collector. */
export function giveBack({ buffer, byteLength }: Uint8Array): void {
  if (byteLength !== buffer.byteLength || !lent.delete(buffer)) return
  if (spare.length < maxSpare) spare.push(buffer as ArrayBuffer)
}
