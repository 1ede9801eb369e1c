import { dhcpCommand, ip } from './address.ts'
import type { CommandHost, ConsoleCommand } from './command.ts'
import { pingCommand, traceCommand } from './probe.ts'
import { clearCommand, echo, loadCommand, saveCommand, set, sleep } from './settings.ts'
import { arp, historyCommand, showCommand, versionCommand } from './show.ts'

const quit: ConsoleCommand = { name: 'quit', usage: '', help: 'Quit program', run: (machine) => machine.quit() }
const disconnect: ConsoleCommand = {
  name: 'disconnect',
  usage: '',
  help: 'Close the console: leave it with the key of your terminal',
  run: (machine) => machine.print('Leave the console with your terminal; quit ends the pc\r\n'),
}
const unavailable = (name: string, help: string): ConsoleCommand => ({
  name,
  usage: '...',
  help,
  run: (machine) => machine.print(`${name} is not available in the embedded pc\r\n`),
})
const help: ConsoleCommand = { name: 'help', usage: '', help: 'Print help', run: (machine) => printHelp(machine) }

export const consoleCommands: readonly ConsoleCommand[] = [
  ...[arp, clearCommand, dhcpCommand, disconnect, echo, help, historyCommand, ip, loadCommand, pingCommand, quit],
  ...[
    unavailable('relay', 'Configure packet relay between UDP ports'),
    unavailable('rlogin', 'Telnet to port on host'),
    saveCommand,
    set,
    showCommand,
    sleep,
  ],
  ...[traceCommand, versionCommand],
]

const aliases: Readonly<Record<string, string>> = {
  '?': 'help',
  tracer: 'trace',
  tracert: 'trace',
  traceroute: 'trace',
  exit: 'quit',
}

/** Finds a command by its name, an alias, or an unambiguous prefix. */
export function findCommand(word: string): ConsoleCommand | 'ambiguous' | undefined {
  const name = aliases[word] ?? word
  const exact = consoleCommands.find((command) => command.name === name)
  if (exact !== undefined) return exact
  const [first, ...others] = consoleCommands.filter((command) => command.name.startsWith(name))
  return others.length > 0 ? 'ambiguous' : first
}

function printHelp(machine: CommandHost): void {
  const rows = consoleCommands.map(({ name, usage, help: text }) => `${`${name} ${usage}`.padEnd(26)} ${text}\r\n`)
  machine.print(`\r\n?                          Print help\r\n${rows.join('')}`)
}
