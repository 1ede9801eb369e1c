/** Parts of a frame with TCP or UDP in it, as tests look at them. */
export interface Packet {
  readonly tags: readonly number[]
  /** Of IPv4; 0 for IPv6. */
  readonly id: number
  readonly protocol: number
  readonly payload: Buffer
  /** Of TCP. */
  readonly sequence: number
  readonly flags: number
  /** Whether lengths and checksums are those of the frame. */
  readonly isSound: boolean
}

/** Takes a frame apart; undefined when there is neither TCP nor UDP in it. */
export function dissect(frame: Buffer): Packet | undefined {
  let network = 14
  const tags: number[] = []
  while ([0x8100, 0x88a8].includes(frame.readUInt16BE(network - 2))) {
    tags.push(frame.readUInt16BE(network) & 0xfff)
    network += 4
  }
  const type = frame.readUInt16BE(network - 2)
  if (type !== 0x0800 && type !== 0x86dd) return undefined
  const isSix = type === 0x86dd
  const transport = network + (isSix ? 40 : (frame.readUInt8(network) & 15) * 4)
  const protocol = frame.readUInt8(network + (isSix ? 6 : 9))
  if (protocol !== 6 && protocol !== 17) return undefined
  const end = isSix ? transport + frame.readUInt16BE(network + 4) : network + frame.readUInt16BE(network + 2)
  const segment = frame.subarray(transport, end)
  const addresses = frame.subarray(network + (isSix ? 8 : 12), network + (isSix ? 40 : 20))
  const isHeaderSound = isSix || ones(frame.subarray(network, transport)) === 0xffff
  const pseudo = Buffer.concat([addresses, Buffer.from([0, protocol, segment.length >> 8, segment.length & 255])])
  const isTransportSound = ones(Buffer.concat([pseudo, segment])) === 0xffff
  const isLengthSound = protocol === 6 || segment.readUInt16BE(4) === segment.length
  return {
    tags,
    id: isSix ? 0 : frame.readUInt16BE(network + 4),
    protocol,
    payload: segment.subarray(protocol === 6 ? (segment.readUInt8(12) >> 4) * 4 : 8),
    sequence: protocol === 6 ? segment.readUInt32BE(4) : 0,
    flags: protocol === 6 ? segment.readUInt8(13) : 0,
    isSound: end === frame.length && isHeaderSound && isTransportSound && isLengthSound,
  }
}

/** The ones' complement sum of the big-endian words; 0xffff over what has its checksum. */
export function ones(bytes: Uint8Array): number {
  let sum = 0
  bytes.forEach((byte, index) => {
    sum += index % 2 === 0 ? byte << 8 : byte
  })
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16)
  return sum
}

export interface SuperFrame {
  readonly isSix: boolean
  readonly protocol: 6 | 17
  readonly payload: Buffer
  readonly segment: number
  readonly flags?: number
  readonly tag?: number
  readonly isEcn?: boolean
}

/** A frame that is longer than any wire takes, with the struct virtio_net_hdr that tells how it is to be split. */
export function superFrame({ isSix, protocol, payload, segment, flags = 0x10, tag, isEcn }: SuperFrame): {
  frame: Buffer
  header: Buffer
} {
  const transport =
    protocol === 6
      ? Buffer.from([0x10, 0, 0x20, 0, ...[0, 0, 4, 0], ...[0, 0, 0, 1], 0x50, flags, 0x20, 0, ...[0, 0, 0, 0]])
      : Buffer.from([0x10, 0, 0x20, 0, 0, 0, 0, 0])
  const length = transport.length + payload.length
  if (protocol === 17) transport.writeUInt16BE(length, 4)
  const network = isSix
    ? Buffer.from([0x60, 0, 0, 0, length >> 8, length & 255, protocol, 64, ...six(1), ...six(2)])
    : Buffer.from([
        0x45,
        0,
        (length + 20) >> 8,
        (length + 20) & 255,
        0xff,
        0xff,
        0,
        0,
        64,
        protocol,
        0,
        0,
        ...four(1),
        ...four(2),
      ])
  if (!isSix) network.writeUInt16BE(~ones(network) & 0xffff, 10)
  const pseudo = [...network.subarray(isSix ? 8 : 12), 0, protocol, length >> 8, length & 255]
  transport.writeUInt16BE(ones(Uint8Array.from(pseudo)), protocol === 6 ? 16 : 6)
  const type = isSix ? [0x86, 0xdd] : [8, 0]
  const ethernet = Buffer.from([
    ...mac(2),
    ...mac(1),
    ...(tag === undefined ? [] : [0x81, 0, tag >> 8, tag & 255]),
    ...type,
  ])
  const header = Buffer.alloc(10)
  header[0] = 1
  header[1] = (protocol === 17 ? 5 : isSix ? 4 : 1) | (isEcn ? 0x80 : 0)
  const start = ethernet.length + network.length
  header.writeUInt16LE(start + transport.length, 2)
  header.writeUInt16LE(segment, 4)
  header.writeUInt16LE(start, 6)
  header.writeUInt16LE(protocol === 6 ? 16 : 6, 8)
  return { frame: Buffer.concat([ethernet, network, transport, payload]), header }
}

/** A frame of an EtherType for experiments. */
export const rawFrame = (to: readonly number[], text: string, ...tagsAndType: readonly number[]): Buffer =>
  Buffer.concat([Buffer.from([...to, ...mac(1)]), words(tagsAndType), Buffer.from(text)])

export const mac = (number: number): readonly number[] => [2, 0, 0, 0, 0, number]
const four = (number: number): readonly number[] => [192, 0, 2, number]
const six = (number: number): readonly number[] => [0xfd, ...new Array(14).fill(0), number]

const words = (values: readonly number[]): Buffer => Buffer.from(values.flatMap((value) => [value >> 8, value & 255]))
