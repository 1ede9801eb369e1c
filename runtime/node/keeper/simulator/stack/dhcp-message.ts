import { equalBytes, type Mac } from './address.ts'
import { read32, write16, write32 } from './bytes.ts'

const magic = 0x63825363
const optionsAt = 240
/** Minimum message size, bytes: the size of BOOTP messages, which some relays still require (RFC 1542, 2.1). */
const size = 300

/** DHCP message types (RFC 2132, 9.6). */
export const messageType = { discover: 1, offer: 2, request: 3, ack: 5, nak: 6, release: 7 } as const

/** Codes of the DHCP options in use (RFC 2132). */
export const dhcpOption = {
  mask: 1,
  router: 3,
  dns: 6,
  hostName: 12,
  domain: 15,
  address: 50,
  seconds: 51,
  type: 53,
  server: 54,
  wanted: 55,
  renewal: 58,
  rebinding: 59,
  client: 61,
} as const

export type DhcpOption = readonly [code: number, value: readonly number[]]

export interface DhcpMessage {
  readonly type: number
  /** The address from the server. */
  readonly address: number
  readonly options: ReadonlyMap<number, Uint8Array>
}

export interface DhcpRequest {
  readonly type: number
  readonly id: number
  readonly mac: Mac
  /** The client's current address; 0 for none. */
  readonly own: number
  readonly options: readonly DhcpOption[]
}

/** Builds a client message (RFC 2131, table 5). */
export function buildDhcp({ type, id, mac, own, options }: DhcpRequest): Uint8Array {
  const message = new Uint8Array(size)
  message.set([1, 1, 6, 0])
  write32(message, 4, id)
  // Broadcast flag: without an address the pc receives no unicast (RFC 2131, 4.1).
  write16(message, 10, own === 0 ? 0x8000 : 0)
  write32(message, 12, own)
  message.set(mac, 28)
  write32(message, 236, magic)
  const all: readonly DhcpOption[] = [[dhcpOption.type, [type]], ...options, [dhcpOption.client, [1, ...mac]]]
  const bytes = all.flatMap(([code, value]) => [code, value.length, ...value])
  message.set([...bytes, 255], optionsAt)
  return message
}

/** Parses a server message; undefined for a malformed message or another client's. */
export function parseDhcp(data: Uint8Array, id: number, mac: Mac): DhcpMessage | undefined {
  const isReply = data.length >= optionsAt && data[0] === 2 && read32(data, 4) === id && read32(data, 236) === magic
  if (!isReply || !equalBytes(data.subarray(28, 34), mac)) return undefined
  const options = new Map<number, Uint8Array>()
  for (let at = optionsAt; at < data.length && data[at] !== 255; ) {
    const code = data[at] ?? 0
    const length = code === 0 ? -1 : (data[at + 1] ?? 0)
    if (length >= 0) options.set(code, data.slice(at + 2, at + 2 + length))
    at += 2 + length
  }
  return { type: options.get(dhcpOption.type)?.[0] ?? 0, address: read32(data, 16), options }
}
