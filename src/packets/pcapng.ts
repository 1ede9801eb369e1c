import { type CapturedFrame, CaptureReader } from './capture-reader.ts'
import { block, byteOrderMagic, option, shortText } from './pcapng-format.ts'

/** A source of frames in a capture. */
export interface CaptureInterface {
  readonly name: string
  /** As in `linkTypes`. */
  readonly linkType: number
}

export interface PcapngOptions {
  readonly interfaceName: string
  /** Shown by analysers as the comment of the capture. */
  readonly comment: string
}

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
      const frames = reader.push(piece)
      const parts: Uint8Array[] = frames.length > 0 ? [packetBlocks(frames)] : []
      if (!isBegun && reader.linkType !== undefined) {
        isBegun = true
        parts.unshift(pcapngHead([{ name: options.interfaceName, linkType: reader.linkType }], options.comment))
      }
      if (reader.lost > lost) {
        lost = reader.lost
        parts.push(lossBlock(0, lost))
      }
      if (parts.length > 0) controller.enqueue(concat(parts))
    },
  })
}

/** Frames of one link type as a whole capture. */
export const pcapngOf = (
  frames: readonly CapturedFrame[],
  linkType: number,
  { interfaceName, comment }: PcapngOptions,
): Uint8Array<ArrayBuffer> => concat([pcapngHead([{ name: interfaceName, linkType }], comment), packetBlocks(frames)])

/** The comment of a capture of links of a lab. */
export const commentOfLinks = (lab: string): string => `Links of ${lab}`

/** What a capture begins with: the section, and its interfaces in the order of their numbers. */
export const pcapngHead = (interfaces: readonly CaptureInterface[], comment: string): Uint8Array<ArrayBuffer> =>
  concat([section(comment), ...interfaces.map(({ linkType, name }) => description(linkType, name))])

function section(comment: string): Uint8Array {
  const body = new DataView(new ArrayBuffer(16))
  body.setUint32(0, byteOrderMagic, true)
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
  return makeBlock(block.interface, [new Uint8Array(body.buffer), text(option.interfaceName, name), endOfOptions])
}

/**
 * Statistics of an interface (draft, 4.6): how many frames were lost since the beginning of the capture, and when they were counted.
 * `comment`: what else happened to it.
 */
export function lossBlock(interfaceNumber: number, lost: number, comment?: string): Uint8Array {
  const body = new DataView(new ArrayBuffer(24))
  const micros = BigInt(Date.now()) * 1000n
  body.setUint32(0, interfaceNumber, true)
  body.setUint32(4, Number(micros >> 32n), true)
  body.setUint32(8, Number(micros & 0xffffffffn), true)
  body.setUint16(12, option.interfaceDrops, true)
  body.setUint16(14, 8, true)
  body.setBigUint64(16, BigInt(lost), true)
  const words = comment === undefined ? [] : [text(option.comment, comment)]
  return makeBlock(block.statistics, [new Uint8Array(body.buffer), ...words, endOfOptions])
}

/** Frames as enhanced packet blocks (draft, 4.3). Written at once, as they may be hundreds of thousands a second. */
export function packetBlocks(frames: readonly CapturedFrame[]): Uint8Array<ArrayBuffer> {
  let size = 0
  for (const { bytes } of frames) size += 32 + ((bytes.length + 3) & ~3)
  const all = new Uint8Array(size)
  const view = new DataView(all.buffer)
  let at = 0
  for (const { seconds, nanos, length, bytes, interfaceNumber } of frames) {
    const total = 32 + ((bytes.length + 3) & ~3)
    // Exact: less than 2^53 until the year 2255.
    const micros = seconds * 1e6 + Math.trunc(nanos / 1000)
    view.setUint32(at, block.packet, true)
    view.setUint32(at + 4, total, true)
    view.setUint32(at + 8, interfaceNumber, true)
    view.setUint32(at + 12, Math.floor(micros / 2 ** 32), true)
    view.setUint32(at + 16, micros % 2 ** 32, true)
    view.setUint32(at + 20, bytes.length, true)
    view.setUint32(at + 24, length, true)
    all.set(bytes, at + 28)
    view.setUint32(at + total - 4, total, true)
    at += total
  }
  return all
}

const endOfOptions = new Uint8Array(4)

function text(code: number, value: string): Uint8Array {
  const bytes = shortText(new TextEncoder().encode(value))
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
