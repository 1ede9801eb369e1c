/** Below this length, bytes, a loop is faster than the view for a block copy. */
const short = 96

/** Copies bytes; allocates nothing for short frames. */
export function copyBytes(from: Uint8Array, offset: number, to: Uint8Array, start: number, length: number): void {
  if (length > short) {
    to.set(from.subarray(offset, offset + length), start)
    return
  }
  for (let index = 0; index < length; index++) to[start + index] = from[offset + index] as number
}
