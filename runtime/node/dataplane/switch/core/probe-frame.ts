/**
 * The probe of a link: an Ethernet frame by which Patchbay switches check whether the link works. EtherType 0x88b5 is for local
 * experiments (IEEE 802); 60 bytes is the minimum Ethernet frame. Offsets: 0 destination (a group address that bridges do not
 * forward, so that a guest ignores it), 6 source, 12 EtherType, 14 magic, 22 version, 23 flags, 24 sequence number, zeros.
 */
export interface Probe {
  /** true: a request; false: an answer. */
  readonly isQuestion: boolean
  /** The sender has recently received a frame or a probe from this end. */
  readonly hearsYou: boolean
  readonly sequence: number
}

const length = 60
const destination = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x0f]
const source = [0x02, 0x50, 0x42, 0x00, 0x00, 0x01]
const etherType = 0x88b5
const magic = [...'PATCHBAY'].map((letter) => letter.charCodeAt(0))
const version = 1

export function encodeProbe({ isQuestion, hearsYou, sequence }: Probe): Uint8Array {
  const frame = new Uint8Array(length)
  const view = new DataView(frame.buffer)
  frame.set(destination, 0)
  frame.set(source, 6)
  view.setUint16(12, etherType)
  frame.set(magic, 14)
  frame[22] = version
  frame[23] = (isQuestion ? 1 : 0) | (hearsYou ? 2 : 0)
  view.setUint32(24, sequence)
  return frame
}

/** Undefined for an unknown version. */
export function decodeProbe(frame: Uint8Array): Probe | undefined {
  if (!isProbe(frame, 0, frame.length) || frame[22] !== version) return undefined
  const flags = frame[23] as number
  const sequence = new DataView(frame.buffer, frame.byteOffset).getUint32(24)
  return { isQuestion: (flags & 1) !== 0, hearsYou: (flags & 2) !== 0, sequence }
}

/** Whether a received frame is a probe; takes two comparisons for other frames. */
export function isProbe(bytes: Uint8Array, offset: number, size: number): boolean {
  if (bytes[offset + 12] !== 0x88 || bytes[offset + 13] !== 0xb5 || size !== length) return false
  for (let index = 0; index < magic.length; index++) if (bytes[offset + 14 + index] !== magic[index]) return false
  return true
}
