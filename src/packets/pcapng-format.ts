/** What reader and writer of pcapng (draft-ietf-opsawg-pcapng) have in common. */
export const block = { section: 0x0a0d0d0a, interface: 1, simple: 3, statistics: 5, packet: 6 } as const
export const option = {
  ...{ end: 0, comment: 1, interfaceName: 2, userApplication: 4 },
  ...{ interfaceDrops: 5, resolution: 9 },
} as const
export const byteOrderMagic = 0x1a2b3c4d

/** Most interfaces of a section. */
export const maxInterfaces = 1000
/** Most bytes of a name or a comment. */
const maxText = 255

/** The beginning of a text in UTF-8 that is not too long, up to a whole character. */
export function shortText(bytes: Uint8Array): Uint8Array {
  if (bytes.length <= maxText) return bytes
  let end = maxText
  // The bytes of a character after its first one begin with 10.
  while (((bytes[end] ?? 0) & 0xc0) === 0x80 && end > 0) end -= 1
  return bytes.subarray(0, end)
}
