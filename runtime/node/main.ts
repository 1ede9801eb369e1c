#!/usr/bin/env node
import { nearest } from '../../src/http/nearest-word.ts'
import { consoleCommand } from './cli/console.ts'
import { ConfigError, loadConfig } from './config/load.ts'
import { NewerRecord } from './storage/newer-record.ts'
import { version } from './system/version.ts'

// What a command needs is loaded by it: the terminal client must not wait for the service's modules.
const commands: Readonly<Record<string, (argv: string[]) => Promise<number>>> = {
  serve: async (argv) => (await import('./serve.ts')).serve(loadConfig({ argv, env: process.env })),
  doctor: async (argv) => (await import('./cli/doctor.ts')).doctorCommand(argv),
  config: async (argv) => (await import('./cli/config.ts')).configCommand(argv),
  console: consoleCommand,
  version: async () => say(`${version}\n`),
  help: async ([of]) => showHelp(of),
}

function say(text: string): number {
  process.stdout.write(text)
  return 0
}

/** What a command does; what all do, when none is named. */
async function showHelp(command?: string): Promise<number> {
  const { helpOf, overview } = await import('./cli/help.ts')
  const text = command === undefined ? overview : helpOf(command)
  return text === undefined ? unknownCommand(command ?? '') : say(text)
}

function unknownCommand(name: string): number {
  const guess = nearest(name, Object.keys(commands))
  process.stderr.write(
    `patchbay: unknown command ${name}${guess === undefined ? '' : `, did you mean ${guess}?`} ("patchbay help" lists them)\n`,
  )
  return 2
}

async function main([first, ...rest]: string[]): Promise<number> {
  if (first === undefined || first === '--help' || first === '-h') return showHelp(rest[0])
  if (first === '--version' || first === '-v') return say(`${version}\n`)
  // Flags alone are those of the service.
  const [name, ...argv] = first.startsWith('-') ? ['serve', first, ...rest] : [first, ...rest]
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (command === undefined) return unknownCommand(name)
  return argv.includes('--help') || argv.includes('-h') ? showHelp(name) : command(argv)
}

try {
  process.exitCode = await main(process.argv.slice(2))
  // A socket or a timer that is left must not keep an ended command alive.
  process.exit()
} catch (error) {
  const isOurs = error instanceof ConfigError || (error as Error).name === 'StartError' || error instanceof NewerRecord
  process.stderr.write(`patchbay: ${isOurs ? (error as Error).message : (error as Error).stack}\n`)
  process.exit(error instanceof ConfigError ? 2 : 1)
}
