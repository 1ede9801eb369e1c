/** Whether a file begins as a tar archive (POSIX.1, pax(1)). `head`: its first 262 bytes or more. */
export const isTar = (head: Uint8Array): boolean => String.fromCharCode(...head.subarray(257, 262)) === 'ustar'

/** Whether a file begins as one that gzip has compressed (RFC 1952). */
export const isGzip = (head: Uint8Array): boolean => head[0] === 0x1f && head[1] === 0x8b
