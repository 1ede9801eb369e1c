import { type CapturedFrame, CaptureReader } from './capture-reader.ts'

export interface PcapngOptions {
  readonly interfaceName: string
  /** Shown by analysers as the comment of the capture. */
  readonly comment: string
}

const option = { end: 0, comment: 1, ifName: 2, userApplication: 4, interfaceDrops: 5 } as const
const block = { section: 0x0a0d0d0a, interface: 1, statistics: 5, packet: 6 } as const

/**
 * Turns a stream of classic pcap into pcapng (draft-ietf-opsawg-pcapng) with times in microseconds: one section, one interface, and
 * statistics of it (isb_ifdrop) after frames that were lost.
 * Chunks may end anywhere. Throws TypeError for a stream that is no capture.
 */
export function pcapng(options: PcapngOptions): TransformStream<Uint8Array, Uint8Array> {
  const reader = new CaptureReader()
  let isBegun = false
  let lost = 0
  return new TransformStream({
    transform(piece, controller) {
      const packets = reader.push(piece).map(packet)
      if (!isBegun && reader.linkType !== undefined) {
        isBegun = true
        packets.unshift(head(reader.linkType, options))
      }
      if (reader.lost > lost) {
        lost = reader.lost
        packets.push(statistics(lost))
      }
      if (packets.length > 0) controller.enqueue(concat(packets))
    },
  })
}

/** Frames of one link type as a whole capture. */
export const pcapngOf = (
  frames: readonly CapturedFrame[],
  linkType: number,
  options: PcapngOptions,
): Uint8Array<ArrayBuffer> => concat([head(linkType, options), ...frames.map(packet)])

const head = (linkType: number, { comment, interfaceName }: PcapngOptions): Uint8Array =>
  concat([section(comment), description(linkType, interfaceName)])

function section(comment: string): Uint8Array {
  const body = new DataView(new ArrayBuffer(16))
  body.setUint32(0, 0x1a2b3c4d, true)
  body.setUint16(4, 1, true)
  // The length of the section is unknown (draft, 4.1).
  body.setBigInt64(8, -1n, true)
  return makeBlock(block.section, [
    new Uint8Array(body.buffer),
    text(option.comment, comment),
    text(option.userApplication, 'Patchbay'),
    endOfOptions,
  ])
}

function description(linkType: number, name: string): Uint8Array {
  const body = new DataView(new ArrayBuffer(8))
  body.setUint16(0, linkType, true)
  return makeBlock(block.interface, [new Uint8Array(body.buffer), text(option.ifName, name), endOfOptions])
}

/** Draft, 4.6: counts from the beginning of the capture, and when they were taken. */
function statistics(lost: number): Uint8Array {
  const body = new DataView(new ArrayBuffer(24))
  const micros = BigInt(Date.now()) * 1000n
  body.setUint32(4, Number(micros >> 32n), true)
  body.setUint32(8, Number(micros & 0xffffffffn), true)
  body.setUint16(12, option.interfaceDrops, true)
  body.setUint16(14, 8, true)
  body.setBigUint64(16, BigInt(lost), true)
  return makeBlock(block.statistics, [new Uint8Array(body.buffer), endOfOptions])
}

function packet({ seconds, nanos, length, bytes }: CapturedFrame): Uint8Array {
  const micros = BigInt(seconds) * 1_000_000n + BigInt(Math.trunc(nanos / 1000))
  const body = new DataView(new ArrayBuffer(20))
  body.setUint32(4, Number(micros >> 32n), true)
  body.setUint32(8, Number(micros & 0xffffffffn), true)
  body.setUint32(12, bytes.length, true)
  body.setUint32(16, length, true)
  return makeBlock(block.packet, [new Uint8Array(body.buffer), padded(bytes)])
}

const endOfOptions = new Uint8Array(4)

function text(code: number, value: string): Uint8Array {
  const bytes = new TextEncoder().encode(value)
  const head = new DataView(new ArrayBuffer(4))
  head.setUint16(0, code, true)
  head.setUint16(2, bytes.length, true)
  return concat([new Uint8Array(head.buffer), padded(bytes)])
}

/** Type, total length, the parts, total length again. */
function makeBlock(type: number, parts: readonly Uint8Array[]): Uint8Array {
  const total = 12 + parts.reduce((sum, { length }) => sum + length, 0)
  const head = new DataView(new ArrayBuffer(8))
  head.setUint32(0, type, true)
  head.setUint32(4, total, true)
  const tail = new DataView(new ArrayBuffer(4))
  tail.setUint32(0, total, true)
  return concat([new Uint8Array(head.buffer), ...parts, new Uint8Array(tail.buffer)])
}

/** To the next multiple of four bytes. */
function padded(bytes: Uint8Array): Uint8Array {
  const length = (bytes.length + 3) & ~3
  if (length === bytes.length) return bytes
  const all = new Uint8Array(length)
  all.set(bytes)
  return all
}

function concat(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let offset = 0
  for (const part of parts) {
    all.set(part, offset)
    offset += part.length
  }
  return all
}
