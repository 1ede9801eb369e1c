export interface PcapngOptions {
  readonly interfaceName: string
  /** Shown by analysers as the comment of the capture. */
  readonly comment: string
}

const fileHeader = 24
const recordHeader = 16
/** No frame is longer: a longer record means a damaged stream. */
const longestRecord = 1 << 20

const option = { end: 0, comment: 1, ifName: 2, userApplication: 4 } as const
const block = { section: 0x0a0d0d0a, interface: 1, packet: 6 } as const

/**
 * Turns a stream of classic pcap (little-endian, times in microseconds) into pcapng (draft-ietf-opsawg-pcapng): one section,
 * one interface. Chunks may end anywhere. Throws TypeError for a stream that is not pcap.
 */
export function pcapng(options: PcapngOptions): TransformStream<Uint8Array, Uint8Array> {
  let pending: Uint8Array = new Uint8Array(0)
  let isBegun = false
  return new TransformStream({
    transform(piece, controller) {
      const bytes = append(pending, piece)
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      const out: Uint8Array[] = []
      let place = 0
      if (!isBegun) {
        if (bytes.length < fileHeader) {
          pending = bytes
          return
        }
        if (view.getUint32(0, true) !== 0xa1b2c3d4) throw new TypeError('the capture is not classic pcap')
        out.push(section(options.comment), description(view.getUint32(20, true), options.interfaceName))
        place = fileHeader
        isBegun = true
      }
      while (place + recordHeader <= bytes.length) {
        const length = view.getUint32(place + 8, true)
        if (length > longestRecord) throw new TypeError('the capture holds a record that is too long')
        if (place + recordHeader + length > bytes.length) break
        out.push(packet(view, bytes, place, length))
        place += recordHeader + length
      }
      pending = bytes.slice(place)
      if (out.length > 0) controller.enqueue(concat(out))
    },
  })
}

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

function packet(view: DataView, bytes: Uint8Array, place: number, length: number): Uint8Array {
  const micros = BigInt(view.getUint32(place, true)) * 1_000_000n + BigInt(view.getUint32(place + 4, true))
  const body = new DataView(new ArrayBuffer(20))
  body.setUint32(4, Number(micros >> 32n), true)
  body.setUint32(8, Number(micros & 0xffffffffn), true)
  body.setUint32(12, length, true)
  body.setUint32(16, view.getUint32(place + 12, true), true)
  const frame = bytes.subarray(place + recordHeader, place + recordHeader + length)
  return makeBlock(block.packet, [new Uint8Array(body.buffer), padded(frame)])
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

const append = (a: Uint8Array, b: Uint8Array): Uint8Array => (a.length === 0 ? b : concat([a, b]))

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let place = 0
  for (const part of parts) {
    all.set(part, place)
    place += part.length
  }
  return all
}
