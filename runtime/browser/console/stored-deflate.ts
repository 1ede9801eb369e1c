/** Most bytes of a stored block. */
const maxBlock = 0xffff
/** The prime of Adler-32. */
const prime = 65_521

/**
 * Stands for the class of noVNC by which a text for the clipboard of a guest is compressed: such a text is short, and the compression
 * larger than all of the page that has to do with screens. The form is the same: zlib (RFC 1950), of stored blocks (RFC 1951, 3.2.4).
 */
export default class StoredDeflate {
  deflate(data: Uint8Array): Uint8Array {
    const parts: number[] = [0x78, 0x01]
    let [a, b] = [1, 0]
    for (let at = 0; at === 0 || at < data.length; at += maxBlock) {
      const block = data.subarray(at, at + maxBlock)
      const isLast = at + maxBlock >= data.length
      const { length } = block
      parts.push(isLast ? 1 : 0, length & 0xff, length >> 8, ~length & 0xff, (~length >> 8) & 0xff)
      for (const byte of block) {
        parts.push(byte)
        a = (a + byte) % prime
        b = (b + a) % prime
      }
    }
    parts.push(b >> 8, b & 0xff, a >> 8, a & 0xff)
    return new Uint8Array(parts)
  }
}
