import { formatIp4, formatIp6 } from './address.ts'
import { read16, read32, write16 } from './bytes.ts'
import type { IpTarget, Net } from './net.ts'

const dnsPort = 53
const waitMs = 2000
const typeA = 1
const typeAaaa = 28
/** Maximum number of labels of a name (RFC 1035, 2.3.4: 255 bytes). */
const maxLabels = 128

/** Resolves a name to an IPv4 address (RFC 1035), else to an IPv6 address (RFC 3596); undefined when no server has one. */
export async function lookup(net: Net, name: string, signal: AbortSignal): Promise<IpTarget | undefined> {
  const full = name.includes('.') || net.domain === '' ? name : `${name}.${net.domain}`
  if (!/^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?$/i.test(full) || full.length > 253) return undefined
  for (const server of net.dns) {
    for (const type of [typeA, typeAaaa]) {
      if (signal.aborted) return undefined
      const found = await ask(net, server, full, type, signal)
      if (found !== undefined) return found
    }
  }
  return undefined
}

async function ask(
  net: Net,
  server: number,
  name: string,
  type: number,
  signal: AbortSignal,
): Promise<IpTarget | undefined> {
  const { port, close } = net.openPort()
  const id = Math.floor(Math.random() * 0x10000)
  const from = formatIp4(server)
  try {
    const send = () => net.ip4.udp(server, port, dnsPort, query(id, name, type))
    const { answer } = await net.ask(send, waitMs, signal, (event) => {
      if (event.type !== 'udp' || event.from !== from || event.datagram.sourcePort !== dnsPort) return undefined
      const { destinationPort, data } = event.datagram
      return destinationPort === port && read16(data, 0) === id ? { found: parseAnswer(data, type) } : undefined
    })
    return answer?.found
  } finally {
    close()
  }
}

function query(id: number, name: string, type: number): Uint8Array {
  const labels = name.replace(/\.$/, '').split('.')
  const bytes = labels.flatMap((label) => [label.length, ...new TextEncoder().encode(label)])
  const message = new Uint8Array(12 + bytes.length + 5)
  write16(message, 0, id)
  write16(message, 2, 0x0100)
  write16(message, 4, 1)
  message.set(bytes, 12)
  write16(message, message.length - 4, type)
  write16(message, message.length - 2, 1)
  return message
}

/** The first address of the type in an answer. CNAME records before it are skipped. */
function parseAnswer(data: Uint8Array, type: number): IpTarget | undefined {
  const answers = read16(data, 6)
  let at = 12
  for (let question = 0; question < read16(data, 4); question++) at = skipName(data, at) + 4
  for (let answer = 0; answer < answers && at + 10 <= data.length; answer++) {
    at = skipName(data, at)
    const found = read16(data, at)
    const length = read16(data, at + 8)
    const value = data.slice(at + 10, at + 10 + length)
    if (found === type && type === typeA && value.length === 4) {
      const address = read32(value, 0)
      return { family: 4, address, text: formatIp4(address) }
    }
    if (found === type && type === typeAaaa && value.length === 16)
      return { family: 6, address: value, text: formatIp6(value) }
    at += 10 + length
  }
  return undefined
}

function skipName(data: Uint8Array, from: number): number {
  let at = from
  for (let label = 0; label < maxLabels && at < data.length; label++) {
    const length = data[at] ?? 0
    if (length === 0) return at + 1
    if (length >= 0xc0) return at + 2
    at += length + 1
  }
  return data.length
}
