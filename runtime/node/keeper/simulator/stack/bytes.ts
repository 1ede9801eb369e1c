/** Big-endian numbers in frames. */
export const read16 = (bytes: Uint8Array, at: number): number => ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)
export const read32 = (bytes: Uint8Array, at: number): number =>
  ((read16(bytes, at) << 16) | read16(bytes, at + 2)) >>> 0

export function write16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 8
  bytes[at + 1] = value
}

export function write32(bytes: Uint8Array, at: number, value: number): void {
  write16(bytes, at, value >>> 16)
  write16(bytes, at + 2, value)
}

/** One's-complement sum of 16-bit words (RFC 1071), not yet folded. */
export function sum16(bytes: Uint8Array, from: number, to: number, initial = 0): number {
  let sum = initial
  let at = from
  for (; at + 1 < to; at += 2) sum += read16(bytes, at)
  if (at < to) sum += (bytes[at] ?? 0) << 8
  return sum
}

/** The internet checksum of a sum. */
export function fold(sum: number): number {
  let folded = sum
  while (folded > 0xffff) folded = (folded & 0xffff) + Math.floor(folded / 0x10000)
  return ~folded & 0xffff
}

export const checksum = (bytes: Uint8Array, from: number, to: number, initial = 0): number =>
  fold(sum16(bytes, from, to, initial))
