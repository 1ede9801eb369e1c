#!/usr/bin/env node
import { nearest } from '../../src/http/nearest.ts'
import { consoleCommand } from './cli/console.ts'
import { ConfigError, loadConfig } from './config/load.ts'
import { version } from './version.ts'

const help = `Patchbay ${version}: runs emulated network labs over HTTP

patchbay serve [flags]           run the service (the default)
patchbay doctor [--json]         check what labs need on this machine
patchbay config [flags]          the settings in force, and where each came from
patchbay console [HOST:]PORT     a terminal on a telnet console; Ctrl-] leaves it
patchbay version
patchbay help

Flags are settings: --port 3080, --join wss://GATEWAY, --host, --data DIR, --config FILE, --log-level, --insecure, --pc-engine, ...
"patchbay config" lists them all; so does the README.
`

// What a command needs is loaded by it: the terminal client must not wait for the service's modules.
const commands: Readonly<Record<string, (argv: string[]) => Promise<number>>> = {
  serve: async (argv) => (await import('./serve.ts')).serve(loadConfig({ argv, env: process.env })),
  doctor: async (argv) => (await import('./cli/doctor.ts')).doctorCommand(argv),
  config: async (argv) => (await import('./cli/config.ts')).configCommand(argv),
  console: consoleCommand,
  version: async () => say(`${version}\n`),
  help: async () => say(help),
}

function say(text: string): number {
  process.stdout.write(text)
  return 0
}

async function main([first, ...rest]: string[]): Promise<number> {
  if (first === '--help' || first === '-h') return say(help)
  if (first === '--version') return say(`${version}\n`)
  const isCommand = first !== undefined && !first.startsWith('-')
  const name = isCommand ? first : 'serve'
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (command !== undefined) return command(isCommand ? rest : [...(first === undefined ? [] : [first]), ...rest])
  const guess = nearest(name, Object.keys(commands))
  process.stderr.write(
    `patchbay: unknown command ${name}${guess === undefined ? '' : `, did you mean ${guess}?`} ("patchbay help" lists them)\n`,
  )
  return 2
}

try {
  process.exitCode = await main(process.argv.slice(2))
  // A socket or a timer that is left must not keep an ended command alive.
  process.exit()
} catch (error) {
  const isOurs = error instanceof ConfigError || (error as Error).name === 'StartError'
  process.stderr.write(`patchbay: ${isOurs ? (error as Error).message : (error as Error).stack}\n`)
  process.exit(error instanceof ConfigError ? 2 : 1)
}
