import { pause } from '../../../../../src/lib/async/pause.ts'
import { formatIp4, formatIp6 } from '../stack/address.ts'
import type { CommandHost, ConsoleCommand } from './command.ts'
import { pcName } from './pc-name.ts'

const startup = 'startup.vpc'

export const set: ConsoleCommand = {
  name: 'set',
  usage: 'ARG ...',
  help: 'Set VPC name and other options. See set ?',
  details: [
    'set pcname NAME     Set the name of the VPC',
    'set echo on|off     Show the lines of scripts before they run; not those that begin with @',
    'set echo color ...  Accepted, for scripts that set it',
    'set mtu VALUE       Set the maximum transmission unit (568 to 1500)',
    'set lport|rport|rhost|dump VALUE   Accepted, for scripts that set them',
  ],
  run(machine, [first, ...values]) {
    const [value] = values
    const invalid = () => machine.print(`\r\n${(set.details ?? []).join('\r\n')}\r\n`)
    if (first === undefined || value === undefined) return invalid()
    const option = ['pcname', 'echo', 'mtu', 'lport', 'rport', 'rhost', 'dump'].find((it) => it.startsWith(first))
    const number = Number(value)
    switch (option) {
      case 'pcname':
        machine.name = pcName(values.join(' ')) || machine.name
        return
      case 'echo':
        if (!/^(on|off|color)$/.test(value)) return invalid()
        if (value !== 'color') machine.isEchoing = value === 'on'
        return
      case 'mtu':
        if (!Number.isInteger(number) || number < 568 || number > 1500)
          return machine.print('Invalid MTU: 568 to 1500\r\n')
        machine.net.ip4.mtu = number
        // IPv6 needs 1280 on every link (RFC 8200, 5).
        machine.net.ip6.mtu = Math.max(1280, number)
        return
      case 'lport':
      case 'rport':
        if (!Number.isInteger(number) || number < 1 || number > 65_535) return machine.print('Invalid port\r\n')
        machine[option] = number
        return
      case 'rhost':
        machine.rhost = value
        return
      case 'dump':
        return
      default:
        return invalid()
    }
  },
}

export const clearCommand: ConsoleCommand = {
  name: 'clear',
  usage: 'ARG',
  help: 'Clear IPv4/IPv6, arp/neighbor cache, command history',
  details: ['clear arp|ip|ipv6|neighbor|hist|all'],
  run(machine, [first = '']) {
    const { net } = machine
    const parts: Readonly<Record<string, () => void>> = {
      arp: () => net.ip4.neighbours.clear(),
      neighbor: () => net.ip6.neighbours.clear(),
      ip: () => {
        net.ip4.config = undefined
        net.lease.drop()
        net.dns = []
      },
      ipv6: () => {
        net.ip6.global = undefined
        net.ip6.forgetRouter()
      },
      hist: () => machine.clearHistory(),
    }
    if (first === 'all') {
      for (const part of Object.values(parts)) part()
      return
    }
    const name = Object.hasOwn(parts, first)
      ? first
      : Object.keys(parts).find((part) => first !== '' && part.startsWith(first))
    if (name === undefined) return machine.print(`\r\n${(clearCommand.details ?? []).join('\r\n')}\r\n`)
    parts[name]?.()
  },
}

export const saveCommand: ConsoleCommand = {
  name: 'save',
  usage: '[FILENAME]',
  help: 'Save the configuration to the file FILENAME',
  async run(machine, [name = startup]) {
    const file = name.includes('.') ? name : `${name}.vpc`
    machine.print(`Saving startup configuration to ${file}\r\n`)
    try {
      await machine.files.write(file, configuration(machine))
      machine.print('.  done\r\n')
    } catch (error) {
      machine.print(`Can't write to ${file}: ${(error as Error).message}\r\n`)
    }
  },
}

export const loadCommand: ConsoleCommand = {
  name: 'load',
  usage: '[FILENAME]',
  help: 'Load the configuration/script from the file FILENAME',
  async run(machine, [name = startup]) {
    const candidates = name.includes('.') ? [name] : [`${name}.vpc`, name]
    for (const file of candidates) {
      const text = await machine.files.read(file)
      if (text === undefined) continue
      machine.print(`Executing the file "${file}"\r\n`)
      return machine.script(text)
    }
    machine.print(`Can't open ${candidates[0]}\r\n`)
  },
}

export const echo: ConsoleCommand = {
  name: 'echo',
  usage: 'TEXT',
  help: 'Display TEXT in output. See also set echo ?',
  run: (machine, words) => machine.print(`${words.join(' ')}\r\n`),
}

export const sleep: ConsoleCommand = {
  name: 'sleep',
  usage: '[seconds] [TEXT]',
  help: 'Print TEXT and pause running script for seconds',
  async run(machine, [first, ...text], signal) {
    const seconds = /^\d{1,5}$/.test(first ?? '') ? Number(first) : undefined
    const words = seconds === undefined && first !== undefined ? [first, ...text] : text
    if (words.length > 0) machine.print(`${words.join(' ')}\r\n`)
    await pause((seconds ?? 0) * 1000, signal, undefined, machine.net.startTimer)
    await machine.net.gate.pass()
  },
}

/** The commands that restore the current configuration. */
function configuration(machine: CommandHost): string {
  const { net, name } = machine
  const lease = net.lease.current
  const { config, mtu } = net.ip4
  const address =
    config &&
    `ip ${formatIp4(config.address)}/${config.prefix}${config.gateway === 0 ? '' : ` ${formatIp4(config.gateway)}`}`
  const lines = [
    `set pcname ${name}`,
    ...(mtu === 1500 ? [] : [`set mtu ${mtu}`]),
    ...(lease !== undefined ? ['dhcp'] : address === undefined ? [] : [address]),
    ...(lease === undefined && net.dns.length > 0 ? [`ip dns ${net.dns.map(formatIp4).join(' ')}`] : []),
    ...(lease === undefined && net.domain !== '' ? [`ip domain ${net.domain}`] : []),
    ...(net.ip6.global === undefined ? [] : [`ip ${formatIp6(net.ip6.global.address)}/${net.ip6.global.prefix}`]),
    ...(machine.isEchoing ? ['set echo on'] : []),
  ]
  return `# This the configuration for ${name}\n#\n${lines.join('\n')}\n`
}
