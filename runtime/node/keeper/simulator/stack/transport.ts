import { fold, read16, read32, sum16, write16, write32 } from './bytes.ts'
import { protocol } from './ip4.ts'

/** The sum of the pseudo-header for a protocol and a length: the only difference between IPv4 and IPv6 here. */
export type PseudoHeader = (number: number, length: number) => number

export interface Datagram {
  readonly sourcePort: number
  readonly destinationPort: number
  readonly data: Uint8Array
}

/** Parses a UDP datagram (RFC 768); undefined when it is malformed. */
export function parseUdp(payload: Uint8Array, pseudo: PseudoHeader): Datagram | undefined {
  const length = read16(payload, 4)
  if (length < 8 || length > payload.length) return undefined
  if (read16(payload, 6) !== 0 && fold(sum16(payload, 0, length, pseudo(protocol.udp, length))) !== 0) return undefined
  return { sourcePort: read16(payload, 0), destinationPort: read16(payload, 2), data: payload.subarray(8, length) }
}

export function buildUdp({ sourcePort, destinationPort, data }: Datagram, pseudo: PseudoHeader): Uint8Array {
  const payload = new Uint8Array(8 + data.length)
  write16(payload, 0, sourcePort)
  write16(payload, 2, destinationPort)
  write16(payload, 4, payload.length)
  payload.set(data, 8)
  // A checksum of zero is sent as all ones: zero means no checksum (RFC 768).
  write16(payload, 6, fold(sum16(payload, 0, payload.length, pseudo(protocol.udp, payload.length))) || 0xffff)
  return payload
}

export const tcpFlag = { fin: 1, syn: 2, rst: 4, psh: 8, ack: 16 } as const

export interface Segment extends Datagram {
  readonly sequence: number
  readonly acknowledged: number
  readonly flags: number
}

const tcpHead = 20

/** Parses a TCP segment (RFC 9293); undefined when it is malformed. */
export function parseTcp(payload: Uint8Array, pseudo: PseudoHeader): Segment | undefined {
  const headLength = ((payload[12] ?? 0) >> 4) * 4
  if (payload.length < tcpHead || headLength < tcpHead || headLength > payload.length) return undefined
  if (fold(sum16(payload, 0, payload.length, pseudo(protocol.tcp, payload.length))) !== 0) return undefined
  return {
    sourcePort: read16(payload, 0),
    destinationPort: read16(payload, 2),
    sequence: read32(payload, 4),
    acknowledged: read32(payload, 8),
    flags: payload[13] ?? 0,
    data: payload.subarray(headLength),
  }
}

export function buildTcp(segment: Segment, pseudo: PseudoHeader): Uint8Array {
  const payload = new Uint8Array(tcpHead + segment.data.length)
  write16(payload, 0, segment.sourcePort)
  write16(payload, 2, segment.destinationPort)
  write32(payload, 4, segment.sequence)
  write32(payload, 8, segment.acknowledged)
  payload[12] = (tcpHead / 4) << 4
  payload[13] = segment.flags
  write16(payload, 14, 65_535)
  payload.set(segment.data, tcpHead)
  write16(payload, 16, fold(sum16(payload, 0, payload.length, pseudo(protocol.tcp, payload.length))))
  return payload
}

/**
 * The answer to a segment that belongs to no own connection. Port 7 echoes (RFC 862) without any state, because the segment
 * contains all that is needed; other ports refuse.
 */
export function answerTcp(segment: Segment, echoPort: number): Segment | undefined {
  const { sourcePort, destinationPort, sequence, acknowledged, flags, data } = segment
  if ((flags & tcpFlag.rst) !== 0) return undefined
  const back = { sourcePort: destinationPort, destinationPort: sourcePort, data: new Uint8Array(0) }
  const length = data.length + ((flags & tcpFlag.syn) !== 0 ? 1 : 0) + ((flags & tcpFlag.fin) !== 0 ? 1 : 0)
  const next = (sequence + length) >>> 0
  // Two echo ports would answer each other forever.
  if (destinationPort !== echoPort || sourcePort === echoPort)
    return { ...back, sequence: acknowledged, acknowledged: next, flags: tcpFlag.rst | tcpFlag.ack }
  if ((flags & tcpFlag.syn) !== 0) {
    return { ...back, sequence: (sequence ^ 0x5bd1e995) >>> 0, acknowledged: next, flags: tcpFlag.syn | tcpFlag.ack }
  }
  if (length === 0) return undefined
  const finish = (flags & tcpFlag.fin) !== 0 ? tcpFlag.fin : 0
  const push = data.length > 0 ? tcpFlag.psh : 0
  return { ...back, data: data.slice(), sequence: acknowledged, acknowledged: next, flags: tcpFlag.ack | push | finish }
}
