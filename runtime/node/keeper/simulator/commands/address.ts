import {
  formatIp4,
  formatIp6,
  formatMac,
  isHost6,
  type Mac,
  maskOf,
  parseIp4,
  parseIp6,
  prefixOf,
} from '../stack/address.ts'
import { type Lease, obtain, release, renew } from '../stack/dhcp.ts'
import { type Address4, isHost4 } from '../stack/stack4.ts'
import type { CommandHost, ConsoleCommand } from './command.ts'

const routerWaitMs = 2000
const renewalMs = 1000

/** `ip`: addresses, by hand, by DHCP and by router advertisement. */
export const ip: ConsoleCommand = {
  name: 'ip',
  usage: 'ARG ... [OPTION]',
  help: "Configure the current VPC's IP settings. See ip ?",
  details: [
    'ip ADDRESS [MASK] [GATEWAY]   Set the address, with a mask (255.255.255.0, /24 or 24) and a gateway',
    'ip auto                       Attempt to obtain an IPv6 address by router advertisement',
    'ip dhcp [-d|-r|-x]            Attempt to obtain an IPv4 address by DHCP (-r renew, -x release, -d show)',
    'ip dns SERVER [SERVER]        Set the name servers',
    'ip domain NAME                Set the domain name that is added to short names',
  ],
  async run(machine, [first, ...rest], signal) {
    if (first === undefined || first === '?') return usage(machine)
    const word = first.toLowerCase()
    if (word === 'dhcp') return dhcp(machine, rest, signal)
    if (word === 'auto') return auto(machine, signal)
    if (word === 'dns') return dns(machine, rest)
    if (word === 'domain') {
      machine.net.domain = rest[0] ?? ''
      return
    }
    const [text = '', ownPrefix] = first.split('/')
    if (text.includes(':')) return setIp6(machine, text, ownPrefix ?? rest[0]?.replace('/', ''), signal)
    return setIp4(machine, text, ownPrefix, rest, signal)
  },
}

/** `dhcp`: short for `ip dhcp`. */
export const dhcpCommand: ConsoleCommand = {
  name: 'dhcp',
  usage: '[OPTION]',
  help: 'Shortcut for: ip dhcp. Get IPv4 address via DHCP',
  run: (machine, words, signal) => dhcp(machine, words, signal),
}

function usage(machine: CommandHost): void {
  machine.print(`\r\n${(ip.details ?? []).join('\r\n')}\r\n`)
}

async function setIp4(
  machine: CommandHost,
  text: string,
  ownPrefix: string | undefined,
  rest: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const address = parseIp4(text)
  if (address === undefined || !isHost4(address)) return machine.print('Invalid address\r\n')
  const settings = readSettings(address, ownPrefix, rest)
  if (typeof settings === 'string') return machine.print(`${settings}\r\n`)
  const { ip4 } = machine.net
  machine.print('Checking for duplicate address...\r\n')
  const other = await ip4.duplicate(address, signal)
  if (signal.aborted) return
  if (other !== undefined) return inUse(machine, formatIp4(address), other)
  machine.net.lease.drop()
  ip4.config = settings
  ip4.announce()
  const gateway = settings.gateway === 0 ? '' : ` gateway ${formatIp4(settings.gateway)}`
  machine.print(`${machine.name} : ${formatIp4(address)} ${formatIp4(maskOf(settings.prefix))}${gateway}\r\n`)
}

const inUse = (machine: CommandHost, address: string, mac: Mac) =>
  machine.print(`${address} is being used by MAC ${formatMac(mac)}\r\nAddress not changed\r\n`)

/** Mask and gateway in either order; the mask as a netmask, a number or `/number`. */
function readSettings(address: number, ownPrefix: string | undefined, rest: readonly string[]): Address4 | string {
  let prefix = ownPrefix === undefined ? undefined : readPrefix(ownPrefix)
  if (ownPrefix !== undefined && prefix === undefined) return 'Invalid address'
  let gateway = 0
  for (const word of rest) {
    const asPrefix = readPrefix(word.replace(/^\//, ''))
    const asAddress = parseIp4(word)
    if (prefix === undefined && asPrefix !== undefined) prefix = asPrefix
    else if (asAddress !== undefined && asAddress >>> 24 === 255) return 'Invalid mask'
    else if (asAddress !== undefined && gateway === 0) gateway = asAddress
    else return 'Invalid address'
  }
  return checked({ address, prefix: prefix ?? 24, gateway })
}

/** The settings, or why a host cannot have them, in the words of VPCS. */
function checked(settings: Address4): Address4 | string {
  const { address, prefix, gateway } = settings
  if (isEndOfSubnet(address, prefix)) return 'Invalid host address'
  if (gateway === 0) return settings
  if (gateway === address) return 'Invalid address'
  if (!isHost4(gateway) || isEndOfSubnet(gateway, prefix)) return 'Invalid gateway address'
  if (((gateway ^ address) & maskOf(prefix)) !== 0) return 'not same subnet'
  return settings
}

/** Whether an address is that of its subnet, or of its broadcasts; a subnet of one or two addresses has neither (RFC 3021). */
function isEndOfSubnet(address: number, prefix: number): boolean {
  const rest = ~maskOf(prefix)
  return prefix < 31 && ((address & rest) === 0 || (address | maskOf(prefix)) >>> 0 === 0xffffffff)
}

function readPrefix(text: string): number | undefined {
  if (/^\d{1,2}$/.test(text)) return Number(text) >= 1 && Number(text) <= 32 ? Number(text) : undefined
  const mask = parseIp4(text)
  const prefix = mask === undefined ? undefined : prefixOf(mask)
  // A gateway is not a valid netmask, and a netmask of zero is useless.
  return prefix === 0 ? undefined : prefix
}

async function setIp6(
  machine: CommandHost,
  text: string,
  prefixText: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const address = parseIp6(text)
  const prefix = Number(prefixText ?? 64)
  if (address === undefined || !isHost6(address) || !Number.isInteger(prefix) || prefix < 1 || prefix > 128) {
    return machine.print('Invalid address\r\n')
  }
  const { ip6 } = machine.net
  const other = await ip6.duplicate(address, signal)
  if (signal.aborted) return
  if (other !== undefined) return inUse(machine, formatIp6(address), other)
  ip6.global = { address, prefix }
  machine.print(`${machine.name} : ${formatIp6(address)}/${prefix}\r\n`)
}

async function auto(machine: CommandHost, signal: AbortSignal): Promise<void> {
  const { ip6 } = machine.net
  const found = await ip6.solicitRouters(routerWaitMs, signal)
  if (signal.aborted) return
  if (found === undefined) return machine.print("Can't find router\r\n")
  ip6.global = found
  machine.print(`GLOBAL SCOPE      : ${formatIp6(found.address)}/${found.prefix}\r\n`)
}

function dns(machine: CommandHost, words: readonly string[]): void {
  const servers = words.slice(0, 2).map(parseIp4)
  if (servers.length === 0 || servers.some((server) => server === undefined))
    return machine.print('Invalid name server\r\n')
  machine.net.dns = servers.filter((server) => server !== undefined)
}

/** Renews the lease with its server; undefined where there is none, or its server refuses or is silent. */
async function again(machine: CommandHost, signal: AbortSignal): Promise<Lease | undefined> {
  const { net, name } = machine
  const { current } = net.lease
  if (current === undefined) return undefined
  machine.print('R')
  const lease = await renew(net, current, name, false, renewalMs, signal)
  if (lease === undefined || lease === 'refused') return undefined
  machine.print('A')
  return lease
}

async function dhcp(machine: CommandHost, words: readonly string[], signal: AbortSignal): Promise<void> {
  const { net } = machine
  if (words.includes('-x')) {
    if (net.lease.current !== undefined) release(net, net.lease.current)
    net.lease.drop()
    net.ip4.config = undefined
    return
  }
  const show = (letter: string) => machine.print(letter)
  const lease =
    (words.includes('-r') && (await again(machine, signal))) || (await obtain(net, machine.name, show, signal))
  if (lease === undefined || signal.aborted) {
    return machine.print(signal.aborted ? '\r\n' : "\r\nCan't find dhcp server\r\n")
  }
  net.lease.use(lease, () => machine.name)
  if (lease.dns.length > 0) net.dns = [...lease.dns]
  if (lease.domain !== '') net.domain = lease.domain
  net.ip4.announce()
  const gateway = lease.gateway === 0 ? '' : ` GW ${formatIp4(lease.gateway)}`
  machine.print(` IP ${formatIp4(lease.address)}/${lease.prefix}${gateway}\r\n`)
  if (!words.includes('-d')) return
  machine.print(
    `  Server ${formatIp4(lease.server)}, lease ${lease.seconds} s, DNS ${lease.dns.map(formatIp4).join(' ')}\r\n`,
  )
}
