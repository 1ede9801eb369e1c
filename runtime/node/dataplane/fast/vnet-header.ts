/** Length of struct virtio_net_hdr { u8 flags, gso_type; u16 hdr_len, gso_size, csum_start, csum_offset; }, bytes. */
export const vnetHeaderBytes = 10
/** Bit of `flags`: the sender left a checksum to its device, which has the sum of the pseudo-header in its place. */
export const needsChecksum = 1
/** Values of `gso_type`. */
export const gso = { none: 0, tcp4: 1, tcp6: 4, udp: 5, ecn: 0x80 } as const

/** Whether a received frame has a header, just before it, and what this leaves to a device. */
export const remaining = {
  /** There is no header, or the frame was cut. */
  noHeader: 0,
  nothing: 1,
  checksum: 2,
  /** It is a super-frame, which a device splits into segments; also their checksums. */
  segments: 3,
} as const
