import { formatIp4, formatIp6, formatMac } from '../stack/address.ts'
import type { CommandHost, ConsoleCommand } from './command.ts'

const version = [
  'Welcome to Virtual PC Simulator, version 0.8.3 (embedded)',
  'This is the simulator of Patchbay, with the commands of VPCS.',
]

/** The banner of the console, and the output of `version`. */
export const banner = `\r\n${version.join('\r\n')}\r\n\r\nPress '?' to get help.\r\n`

export const showCommand: ConsoleCommand = {
  name: 'show',
  usage: '[ARG ...]',
  help: 'Print the information of VPC(s) (default). See show ?',
  details: [
    'show arp               Show arp table',
    'show history           List the command history',
    'show ip [all]          Show IPv4 details',
    'show ipv6 [all]        Show IPv6 details',
    'show version           Show the version information',
  ],
  run(machine, [first, second]) {
    const topics: Readonly<Record<string, () => void>> = {
      arp: () => arpTable(machine),
      history: () => list(machine, machine.history),
      ip: () => (second === 'all' ? table(machine) : ip4(machine)),
      ipv6: () => ip6(machine),
      version: () => list(machine, version),
      echo: () => list(machine, [`echo: ${machine.isEchoing ? 'on' : 'off'}`]),
      dump: () => list(machine, ['dump flags: (none)']),
    }
    if (first === undefined) return table(machine)
    const name =
      Object.keys(topics).find((topic) => topic === first) ??
      Object.keys(topics).find((topic) => topic.startsWith(first))
    const topic = name === undefined ? undefined : topics[name]
    if (topic === undefined) return list(machine, showCommand.details ?? [])
    topic()
  },
}

export const arp: ConsoleCommand = {
  name: 'arp',
  usage: '',
  help: 'Shortcut for: show arp. Show arp table',
  run: (machine) => arpTable(machine),
}
export const versionCommand: ConsoleCommand = {
  name: 'version',
  usage: '',
  help: 'Shortcut for: show version',
  run: (machine) => list(machine, version),
}
export const historyCommand: ConsoleCommand = {
  name: 'history',
  usage: '',
  help: 'Shortcut for: show history. List the command history',
  run: (machine) => list(machine, machine.history),
}

const list = (machine: CommandHost, lines: readonly string[]) =>
  machine.print(`\r\n${lines.map((line) => `${line}\r\n`).join('')}`)

function arpTable(machine: CommandHost): void {
  const { ip4: v4, ip6: v6 } = machine.net
  const rows = [
    ...v4.neighbours.list().map((it) => ({ ...it, address: formatIp4(Number(it.address)) })),
    ...v6.neighbours.list(),
  ].map(({ mac, address, seconds }) => `${formatMac(mac)}  ${address} expires in ${seconds} seconds`)
  list(machine, rows.length === 0 ? ['arp table is empty'] : rows)
}

const title = (machine: CommandHost): string => `${machine.name}[1]`

function ip4(machine: CommandHost): void {
  const { net } = machine
  const { config } = net.ip4
  const lease = net.lease.current
  const remaining =
    lease === undefined ? 0 : Math.max(0, Math.round(lease.seconds - (performance.now() - lease.began) / 1000))
  list(machine, [
    `NAME        : ${title(machine)}`,
    `IP/MASK     : ${config === undefined ? '0.0.0.0/0' : `${formatIp4(config.address)}/${config.prefix}`}`,
    `GATEWAY     : ${formatIp4(config?.gateway ?? 0)}`,
    `DNS         : ${net.dns.map(formatIp4).join('  ')}`,
    ...(lease === undefined
      ? []
      : [
          `DHCP SERVER : ${formatIp4(lease.server)}`,
          `DHCP LEASE  : ${remaining}, ${lease.seconds}/${lease.renewal}/${lease.rebinding}`,
        ]),
    ...(net.domain === '' ? [] : [`DOMAIN NAME : ${net.domain}`]),
    `MAC         : ${formatMac(net.mac)}`,
    `LPORT       : ${machine.lport}`,
    `RHOST:PORT  : ${machine.rhost}:${machine.rport}`,
    `MTU         : ${net.ip4.mtu}`,
  ])
}

function ip6(machine: CommandHost): void {
  const { ip6: v6, mac } = machine.net
  list(machine, [
    `NAME              : ${title(machine)}`,
    `LINK-LOCAL SCOPE  : ${formatIp6(v6.linkLocal)}/64`,
    `GLOBAL SCOPE      : ${v6.global === undefined ? '' : `${formatIp6(v6.global.address)}/${v6.global.prefix}`}`,
    'DNS               : ',
    `ROUTER LINK-LAYER : ${routerMac(machine)}`,
    `MAC               : ${formatMac(mac)}`,
    `LPORT             : ${machine.lport}`,
    `RHOST:PORT        : ${machine.rhost}:${machine.rport}`,
    `MTU               : ${v6.mtu}`,
  ])
}

function routerMac({ net: { ip6: v6 } }: CommandHost): string {
  const mac = v6.router === undefined ? undefined : v6.neighbours.get(formatIp6(v6.router))
  return mac === undefined ? '' : formatMac(mac)
}

function table(machine: CommandHost): void {
  const { net } = machine
  const { config } = net.ip4
  const columns = (parts: readonly string[]) =>
    [6, 20, 17, 19, 7]
      .map((width, index) => (parts[index] ?? '').padEnd(width))
      .join(' ')
      .trimEnd()
  list(machine, [
    columns(['NAME', 'IP/MASK', 'GATEWAY', 'MAC', 'LPORT  RHOST:PORT']),
    columns([
      machine.name,
      config === undefined ? '0.0.0.0/0' : `${formatIp4(config.address)}/${config.prefix}`,
      formatIp4(config?.gateway ?? 0),
      formatMac(net.mac),
      `${machine.lport}  ${machine.rhost}:${machine.rport}`,
    ]),
    `       ${formatIp6(net.ip6.linkLocal)}/64`,
    ...(net.ip6.global === undefined ? [] : [`       ${formatIp6(net.ip6.global.address)}/${net.ip6.global.prefix}`]),
  ])
}
