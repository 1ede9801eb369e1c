import { pause } from '../../../../src/async/pause.ts'
import { checksum, write16 } from './bytes.ts'
import { protocol } from './ip4.ts'
import type { Net, Target } from './net.ts'
import { echoPort, type SendOptions, type SendRefusal, type SendResult } from './net-event.ts'
import { buildTcp, tcpFlag } from './transport.ts'

export interface PingOptions {
  readonly mode: 'icmp' | 'udp' | 'tcp'
  /** Number.POSITIVE_INFINITY: until it is interrupted. */
  readonly count: number
  readonly intervalMs: number
  /** Bytes of data. */
  readonly size: number
  readonly waitMs: number
  readonly ttl: number
  readonly dontFragment: boolean
  readonly port: number
  readonly sourcePort: number | undefined
}

export const pingDefaults: PingOptions = {
  mode: 'icmp',
  count: 5,
  intervalMs: 1000,
  size: 56,
  waitMs: 1000,
  ttl: 64,
  dontFragment: false,
  port: echoPort,
  sourcePort: undefined,
}

/** Shows a line for every probe, as VPCS does. */
export async function ping(
  net: Net,
  target: Target,
  options: PingOptions,
  show: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const probe = { icmp: icmpProbe, udp: udpProbe, tcp: tcpProbe }[options.mode]
  const id = Math.floor(Math.random() * 0xffff)
  for (let sequence = 1; sequence <= options.count && !signal.aborted; sequence++) {
    const began = performance.now()
    const line = await probe(net, target, options, id, sequence & 0xffff, signal)
    if (signal.aborted) return
    show(line.text)
    if (line.isFinal) return
    if (sequence < options.count) {
      await pause(options.intervalMs - (performance.now() - began), signal, undefined, net.startTimer)
      await net.gate.pass()
    }
  }
}

interface EchoLine {
  readonly text: string
  /** There is no use in going on. */
  readonly isFinal: boolean
}

const line = (text: string, isFinal = false): EchoLine => ({ text, isFinal })
const ms = (since: number): string => (performance.now() - since).toFixed(3)

function refused(refusal: SendRefusal, target: Target): EchoLine {
  switch (refusal) {
    case 'not reachable':
      return line(`host (${target.text}) not reachable`, true)
    case 'no gateway':
      return line('No gateway found', true)
    case 'no address':
      return line('No IP address', true)
    case 'too big':
      return line('packet too big for the MTU, and it may not be fragmented', true)
  }
}

async function icmpProbe(
  net: Net,
  target: Target,
  options: PingOptions,
  id: number,
  sequence: number,
  signal: AbortSignal,
): Promise<EchoLine> {
  const began = performance.now()
  const name = target.family === 4 ? 'icmp_seq' : 'icmp6_seq'
  const send = () => sendEcho(net, target, id, sequence, options)
  const { refusal, answer } = await net.ask(send, options.waitMs, signal, (event) => {
    if ((event.type !== 'echo' && event.type !== 'error') || event.id !== id || event.sequence !== sequence)
      return undefined
    const tail = `${event.from} ${name}=${sequence} ttl=${event.ttl} time=${ms(began)} ms`
    if (event.type === 'error') return `*${tail} (${describe(event)})`
    return target.family === 4 ? `${event.bytes} bytes from ${tail}` : tail
  })
  if (refusal !== undefined) return refused(refusal, target)
  return line(answer ?? `${target.text} ${name}=${sequence} timeout`)
}

async function sendEcho(
  net: Net,
  target: Target,
  id: number,
  sequence: number,
  options: PingOptions,
): Promise<SendResult> {
  const data = Uint8Array.from({ length: options.size }, (_, index) => index)
  if (target.family === 6) return net.ip6.echo(target.address, id, sequence, data, options)
  const message = new Uint8Array(8 + data.length)
  message[0] = 8
  write16(message, 4, id)
  write16(message, 6, sequence)
  message.set(data, 8)
  write16(message, 2, checksum(message, 0, message.length))
  return net.ip4.send(target.address, protocol.icmp, message, options)
}

async function udpProbe(
  net: Net,
  target: Target,
  options: PingOptions,
  _: number,
  sequence: number,
  signal: AbortSignal,
): Promise<EchoLine> {
  const { port, close } = net.openPort(options.sourcePort)
  const began = performance.now()
  try {
    const send = () => sendUdp(net, target, port, options.port, new Uint8Array(options.size), options)
    const { refusal, answer } = await net.ask(send, options.waitMs, signal, (event) => {
      if (event.type === 'udp' && event.from === target.text && event.datagram.destinationPort === port) {
        return `${event.datagram.data.length + 28} bytes from ${event.from} udp_seq=${sequence} ttl=${event.ttl} time=${ms(began)} ms`
      }
      if (event.type !== 'error' || event.id !== port || event.sequence !== options.port) return undefined
      return `*${event.from} udp_seq=${sequence} ttl=${event.ttl} time=${ms(began)} ms (${describe(event)})`
    })
    if (refusal !== undefined) return refused(refusal, target)
    return line(answer ?? `${target.text} udp_seq=${sequence} timeout`)
  } finally {
    close()
  }
}

/** A whole conversation with the echo port: connect, send, close. */
async function tcpProbe(
  net: Net,
  target: Target,
  options: PingOptions,
  _: number,
  sequence: number,
  signal: AbortSignal,
): Promise<EchoLine> {
  const { port, close } = net.openPort(options.sourcePort)
  const where = `${options.port}@${target.text} seq=${sequence}`
  try {
    const data = new Uint8Array(Math.min(options.size, 1400))
    let [next, acknowledged] = [Math.floor(Math.random() * 0xffffffff), 0]
    const lines: string[] = []
    for (const [name, flags, payload] of [
      ['Connect  ', tcpFlag.syn, undefined],
      ['SendData ', tcpFlag.psh | tcpFlag.ack, data],
      ['Close    ', tcpFlag.fin | tcpFlag.ack, undefined],
    ] as const) {
      const began = performance.now()
      const segment = {
        sourcePort: port,
        destinationPort: options.port,
        sequence: next,
        acknowledged,
        flags,
        data: payload ?? new Uint8Array(0),
      }
      const send = () => sendTcp(net, target, segment, options)
      const { refusal, answer } = await net.ask(send, options.waitMs, signal, (event) =>
        event.type === 'tcp' && event.from === target.text && event.segment.destinationPort === port
          ? event
          : undefined,
      )
      if (refusal !== undefined) return refused(refusal, target)
      if (answer === undefined) return line([...lines, `${name} ${where} timeout`].join('\r\n'))
      const { segment: got, ttl } = answer
      if ((got.flags & tcpFlag.rst) !== 0) return line([...lines, `${name} ${where} RST returned`].join('\r\n'))
      lines.push(`${name} ${where} ttl=${ttl} time=${ms(began)} ms`)
      next = got.acknowledged
      acknowledged = (got.sequence + got.data.length + ((got.flags & (tcpFlag.syn | tcpFlag.fin)) !== 0 ? 1 : 0)) >>> 0
    }
    return line(lines.join('\r\n'))
  } finally {
    close()
  }
}

export function sendUdp(
  net: Net,
  target: Target,
  from: number,
  to: number,
  data: Uint8Array,
  options: SendOptions,
): Promise<SendResult> {
  return target.family === 4
    ? net.ip4.udp(target.address, from, to, data, options)
    : net.ip6.udp(target.address, from, to, data, options)
}

function sendTcp(
  net: Net,
  target: Target,
  segment: Parameters<typeof buildTcp>[0],
  options: SendOptions,
): Promise<SendResult> {
  if (target.family === 4) {
    const pseudo = net.ip4.pseudo(net.ip4.config?.address ?? 0, target.address)
    return net.ip4.send(target.address, protocol.tcp, buildTcp(segment, pseudo), options)
  }
  const pseudo = net.ip6.pseudo(net.ip6.sourceFor(target.address), target.address)
  return net.ip6.send(target.address, protocol.tcp, buildTcp(segment, pseudo), options)
}

/** By code: RFC 792, and RFC 4443, 3.1. */
const unreachable4 = ['network', 'host', 'protocol', 'port', 'size'] as const
const unreachable6 = ['network', 'prohibited', 'scope', 'host', 'port'] as const

/** `ICMP type:3, code:3, Destination port unreachable`. */
export function describe({ from, icmpType, code }: { from: string; icmpType: number; code: number }): string {
  const isIp6 = from.includes(':')
  const names = isIp6 ? unreachable6 : unreachable4
  const isExceeded = icmpType === (isIp6 ? 3 : 11)
  return `ICMP type:${icmpType}, code:${code}, ${isExceeded ? 'TTL expired in transit' : `Destination ${names[code] ?? 'unknown'} unreachable`}`
}
