import { lookup } from '../stack/dns.ts'
import { type IpTarget, parseTarget } from '../stack/net.ts'
import { type PingOptions, pingDefaults, ping as runPing } from '../stack/ping.ts'
import { trace as runTrace } from '../stack/trace.ts'
import type { CommandHost, ConsoleCommand } from './command.ts'

const maxHops = 64

export const pingCommand: ConsoleCommand = {
  name: 'ping',
  usage: 'HOST [OPTION ...]',
  help: 'Ping the network HOST with ICMP (default) or TCP/UDP',
  details: [
    'ping HOST [OPTION ...]',
    '  HOST can be an IPv4 or IPv6 address, or a name when a DNS server is set',
    '  -1             ICMP mode, default',
    '  -2             UDP mode',
    '  -3             TCP mode',
    '  -c count       Packet count, default 5',
    "  -D             Set the Don't Fragment bit",
    '  -i ms          Wait ms milliseconds between sending each packet',
    '  -l size        Data size',
    '  -P protocol    Use IP protocol: 1 - ICMP (default), 6 - TCP, 17 - UDP',
    '  -p port        Destination port',
    '  -s port        Source port',
    '  -T ttl         Set ttl, default 64',
    '  -t             Send packets until interrupted by Ctrl+C',
    '  -w ms          Wait ms milliseconds to receive the response',
  ],
  async run(machine, words, signal) {
    const [host, ...rest] = words
    if (host === undefined || host === '?') return machine.print(`\r\n${(pingCommand.details ?? []).join('\r\n')}\r\n`)
    const options = readOptions(rest)
    if (typeof options === 'string') return machine.print(`${options}\r\n`)
    const target = await findTarget(machine, host, signal)
    machine.print('\r\n')
    if (target !== undefined)
      await runPing(machine.net, target, options, (line) => machine.print(`${line}\r\n`), signal)
  },
}

export const traceCommand: ConsoleCommand = {
  name: 'trace',
  usage: 'HOST [OPTION ...]',
  help: 'Print the path packets take to network HOST',
  details: ['trace HOST [-m TTL]', '  -m ttl    Maximum number of hops, default 8'],
  async run(machine, words, signal) {
    const [host] = words
    if (host === undefined || host === '?') return machine.print(`\r\n${(traceCommand.details ?? []).join('\r\n')}\r\n`)
    const at = words.indexOf('-m')
    const hops = at < 0 ? 8 : Number(words[at + 1])
    const target = await findTarget(machine, host, signal)
    if (target === undefined) return
    await runTrace(machine.net, target, inRange(hops, 1, maxHops) ? hops : 8, machine.print, signal)
  },
}

/** The address of a host; a name is resolved by DNS. */
async function findTarget(machine: CommandHost, host: string, signal: AbortSignal): Promise<IpTarget | undefined> {
  const target = parseTarget(host)
  if (target !== undefined) return target
  const found = await lookup(machine.net, host, signal)
  if (found === undefined) machine.print(`\r\nCannot resolve ${host}\r\n`)
  else machine.print(`${host} resolved to ${found.text}\r\n`)
  return found
}

const inRange = (value: number, least: number, most: number) =>
  Number.isInteger(value) && value >= least && value <= most

type Change = Partial<{ -readonly [Name in keyof PingOptions]: PingOptions[Name] }>

/** Options with a number: its range, and the change that it makes. */
const numbers: Readonly<Record<string, { least: number; most: number; set: (value: number) => Change | undefined }>> = {
  '-c': { least: 1, most: 1_000_000, set: (count) => ({ count }) },
  '-i': { least: 1, most: 3_600_000, set: (intervalMs) => ({ intervalMs }) },
  '-l': { least: 1, most: 65_000, set: (size) => ({ size }) },
  '-p': { least: 1, most: 65_535, set: (port) => ({ port }) },
  '-s': { least: 1, most: 65_535, set: (sourcePort) => ({ sourcePort }) },
  '-T': { least: 1, most: 255, set: (ttl) => ({ ttl }) },
  '-w': { least: 1, most: 600_000, set: (waitMs) => ({ waitMs }) },
  '-P': {
    least: 1,
    most: 17,
    set: (number) =>
      ({ 1: { mode: 'icmp' as const }, 6: { mode: 'tcp' as const }, 17: { mode: 'udp' as const } })[number],
  },
}

const switches: Readonly<Record<string, Change>> = {
  '-1': { mode: 'icmp' },
  '-2': { mode: 'udp' },
  '-3': { mode: 'tcp' },
  '-D': { dontFragment: true },
  '-t': { count: Number.POSITIVE_INFINITY },
}

/** The options, or what is wrong with one of them. */
function readOptions(words: readonly string[]): PingOptions | string {
  let options: PingOptions = pingDefaults
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ''
    let change = switches[word]
    const number = numbers[word]
    if (number !== undefined) {
      const text = words[++at]
      const value = Number(text)
      if (text === undefined || !inRange(value, number.least, number.most))
        return `Invalid option: ${word} needs a number from ${number.least} to ${number.most}${text === undefined ? '' : `, not ${text.slice(0, 40)}`}`
      change = number.set(value)
      if (change === undefined) return `Invalid option: ${word} needs 1 (ICMP), 6 (TCP) or 17 (UDP), not ${value}`
    }
    if (change === undefined) return `Invalid option: ${word.slice(0, 40)}. Use "ping ?" for help`
    options = { ...options, ...change }
  }
  return options
}
