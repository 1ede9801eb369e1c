import { dhcpCommand, ip } from './address.ts'
import type { Command, CommandHost } from './command.ts'
import { ping, trace } from './probe.ts'
import { clear, echo, load, save, set, sleep } from './settings.ts'
import { arp, history, show, versionCommand } from './show.ts'

const quit: Command = { name: 'quit', usage: '', help: 'Quit program', run: (machine) => machine.quit() }
const disconnect: Command = {
  name: 'disconnect',
  usage: '',
  help: 'Close the console: leave it with the key of your terminal',
  run: (machine) => machine.print('Leave the console with your terminal; quit ends the pc\r\n'),
}
const unavailable = (name: string, help: string): Command => ({
  name,
  usage: '...',
  help,
  run: (machine) => machine.print(`${name} is not available in the embedded pc\r\n`),
})
const help: Command = { name: 'help', usage: '', help: 'Print help', run: (machine) => printHelp(machine) }

export const commands: readonly Command[] = [
  ...[arp, clear, dhcpCommand, disconnect, echo, help, history, ip, load, ping, quit],
  ...[
    unavailable('relay', 'Configure packet relay between UDP ports'),
    unavailable('rlogin', 'Telnet to port on host'),
    save,
    set,
    show,
    sleep,
  ],
  ...[trace, versionCommand],
]

const aliases: Readonly<Record<string, string>> = {
  '?': 'help',
  tracer: 'trace',
  tracert: 'trace',
  traceroute: 'trace',
  exit: 'quit',
}

/** The command that a word means: its name, an alias, or an unambiguous beginning. */
export function findCommand(word: string): Command | 'ambiguous' | undefined {
  const name = aliases[word] ?? word
  const exact = commands.find((command) => command.name === name)
  if (exact !== undefined) return exact
  const [first, ...others] = commands.filter((command) => command.name.startsWith(name))
  return others.length > 0 ? 'ambiguous' : first
}

function printHelp(machine: CommandHost): void {
  const rows = commands.map(({ name, usage, help: text }) => `${`${name} ${usage}`.padEnd(26)} ${text}\r\n`)
  machine.print(`\r\n?                          Print help\r\n${rows.join('')}`)
}
