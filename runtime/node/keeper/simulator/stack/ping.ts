import { pause } from '../../../../../src/lib/async/pause.ts'
import type { IpTarget, Net } from './net.ts'
import { echoPort, type SendRefusal } from './net-event.ts'
import { tcpFlag } from './transport.ts'

export interface PingOptions {
  readonly mode: 'icmp' | 'udp' | 'tcp'
  /** Number.POSITIVE_INFINITY: until Ctrl-C. */
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

/** Pings a host. Shows a line for every probe, as VPCS does. */
export async function ping(
  net: Net,
  target: IpTarget,
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
  /** No further probe can succeed. */
  readonly isFinal: boolean
}

type Probe = (
  ...of: [net: Net, target: IpTarget, options: PingOptions, id: number, sequence: number, signal: AbortSignal]
) => Promise<EchoLine>

const line = (text: string, isFinal = false): EchoLine => ({ text, isFinal })
const ms = (since: number): string => (performance.now() - since).toFixed(3)

function refused(refusal: SendRefusal, target: IpTarget): EchoLine {
  const texts: Readonly<Record<SendRefusal, string>> = {
    'not reachable': `host (${target.text}) not reachable`,
    'no gateway': 'No gateway found',
    'no address': 'No IP address',
    'too big': 'packet too big for the MTU, and it may not be fragmented',
  }
  return line(texts[refusal], true)
}

const icmpProbe: Probe = async (net, target, options, id, sequence, signal) => {
  const began = performance.now()
  const name = target.family === 4 ? 'icmp_seq' : 'icmp6_seq'
  const data = Uint8Array.from({ length: options.size }, (_, index) => index)
  const send = () => net.to(target).echo(id, sequence, data, options)
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

const udpProbe: Probe = async (net, target, options, _, sequence, signal) => {
  const { port, close } = net.openPort(options.sourcePort)
  const began = performance.now()
  try {
    const send = () => net.to(target).udp(port, options.port, new Uint8Array(options.size), options)
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

/** Connects to the port, sends data and closes the connection: a line for each step. */
const tcpProbe: Probe = async (net, target, options, _, sequence, signal) => {
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
      const send = () => net.to(target).tcp(segment, options)
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

/** What is unreachable, by code (RFC 792; RFC 4443, 3.1). */
const unreachable4 = ['network', 'host', 'protocol', 'port', 'size'] as const
const unreachable6 = ['network', 'prohibited', 'scope', 'host', 'port'] as const

/** `ICMP type:3, code:3, Destination port unreachable`. */
export function describe({ from, icmpType, code }: { from: string; icmpType: number; code: number }): string {
  const isIp6 = from.includes(':')
  const names = isIp6 ? unreachable6 : unreachable4
  const isExceeded = icmpType === (isIp6 ? 3 : 11)
  return `ICMP type:${icmpType}, code:${code}, ${isExceeded ? 'TTL expired in transit' : `Destination ${names[code] ?? 'unknown'} unreachable`}`
}
