/** The unfolded sum of big-endian 16-bit words for an Internet checksum (RFC 1071). */
export function sumWords(view: DataView, offset: number, length: number): number {
  const end = offset + length
  let at = offset
  let sum = 0
  // 2^16 is 1 in ones' complement, so 32 bits can be added at once; a double holds the sum of any frame exactly.
  for (; at + 4 <= end; at += 4) sum += view.getUint32(at, false)
  if (at + 2 <= end) {
    sum += view.getUint16(at, false)
    at += 2
  }
  return at < end ? sum + view.getUint8(at) * 256 : sum
}

/** Folds the sum into a checksum. */
export function foldSum(sum: number): number {
  let rest = sum
  while (rest > 0xffff) rest = (rest % 0x10000) + Math.floor(rest / 0x10000)
  return ~rest & 0xffff
}

/** CRC-32C (Castagnoli, reflected), the checksum of SCTP (RFC 9260, appendix A). */
function crc32c(bytes: Uint8Array, offset: number, length: number): number {
  let crc = 0xffffffff
  for (let at = offset; at < offset + length; at++)
    crc = (crcTable[(crc ^ (bytes[at] as number)) & 0xff] as number) ^ (crc >>> 8)
  return ~crc >>> 0
}

const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 0 ? crc >>> 1 : (crc >>> 1) ^ 0x82f63b78
  return crc
})

const sctpChecksumOffset = 8

/** Completes the checksum that a sender left to its device: from `start` of the frame on, to be put at `field`. */
export function completeChecksum(
  { bytes, view }: { readonly bytes: Uint8Array; readonly view: DataView },
  frame: number,
  length: number,
  start: number,
  field: number,
): void {
  if (field + 2 > length) return
  if (field - start === sctpChecksumOffset && field + 4 <= length) {
    view.setUint32(frame + field, 0, true)
    view.setUint32(frame + field, crc32c(bytes, frame + start, length - start), true)
    return
  }
  // The field already has the pseudo-header sum. 0 would mean no checksum (UDP).
  view.setUint16(frame + field, foldSum(sumWords(view, frame + start, length - start)) || 0xffff, false)
}
