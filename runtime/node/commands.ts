import { nearest } from '../../src/http/nearest-word.ts'
import type { Command } from './cli/command.ts'
import { version } from './system/version.ts'

/** Every command of the program, in the order in which help lists them. */
export const commands: Readonly<Record<string, Command>> = {
  serve: {
    usage: '[flags]',
    summary: 'run the service (http://127.0.0.1:3080, reference at /docs)',
    text: `Runs the service until Ctrl-C or SIGTERM, which stop the nodes (unless on_exit is keep). When it is ready it
prints its address on standard output. The log goes to standard error: as JSON, or as text on a terminal.`,
    takesSettings: true,
    run: async (argv) => {
      const { loadConfig } = await import('./config/load.ts')
      return (await import('./serve.ts')).serve(loadConfig({ argv, env: process.env }))
    },
  },
  doctor: {
    usage: '[--json] [flags]',
    summary: 'check what labs need on this machine',
    text: `Checks what labs need on this machine, and shows the command that mends each finding. The exit code is 1 when
something is missing that every lab needs. --json prints the same as JSON. It takes the flags of
"patchbay serve", and checks the data directory and the programs that they name.`,
    run: async (argv) => (await import('./cli/doctor.ts')).doctorCommand(argv),
  },
  config: {
    usage: '[flags]',
    summary: 'the settings in force, and where each came from',
    text: `Shows every setting with its value and its source: a flag, an environment variable, the file or the
default. Secrets are masked. It takes the flags of "patchbay serve", and shows the settings that they give.`,
    takesSettings: true,
    run: async (argv) => (await import('./cli/config.ts')).configCommand(argv),
  },
  console: {
    usage: '[HOST:]PORT',
    summary: 'a terminal on a telnet console; Ctrl-] leaves it',
    text: `A terminal on the telnet console of a node; Ctrl-] leaves it. PORT is the member "console" of the node,
HOST is 127.0.0.1 by default. With input from a pipe the command sends the input, and shows the output of the
guest until the guest is quiet: echo "show ip" | patchbay console 5001`,
    run: async (argv) => (await import('./cli/console.ts')).consoleCommand(argv),
  },
  version: {
    usage: '[--server URL]',
    summary: 'the version of the program, and of a service',
    text: `Shows the version of the program, and with --server that of the service at the URL. PATCHBAY_SERVER names
the service, too; PATCHBAY_TOKEN is the token that lets the command in.`,
    run: async (argv) => (await import('./cli/version.ts')).versionCommand(argv),
  },
  help: {
    usage: '[COMMAND]',
    summary: 'the same as COMMAND --help',
    text: 'Shows the commands, or what one of them does.',
    run: async ([name]) => showHelp(name),
  },
}

/** Runs the command of the command line; resolves with the exit code. */
export async function runCommand([first, ...rest]: string[]): Promise<number> {
  if (first === undefined || first === '--help' || first === '-h') return showHelp(rest[0])
  if (first === '--version' || first === '-v') return print(`${version}\n`)
  // Flags without a command are flags of `serve`.
  const [name, ...argv] = first.startsWith('-') ? ['serve', first, ...rest] : [first, ...rest]
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (command === undefined) return unknownCommand(name)
  return argv.includes('--help') || argv.includes('-h') ? showHelp(name) : command.run(argv)
}

function print(text: string): number {
  process.stdout.write(text)
  return 0
}

/** Prints the help of one command, or the list of commands. */
async function showHelp(name?: string): Promise<number> {
  const { helpOf, overview } = await import('./cli/help.ts')
  if (name === undefined) return print(overview(commands))
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  return command === undefined ? unknownCommand(name) : print(helpOf(name, command))
}

function unknownCommand(name: string): number {
  const guess = nearest(name, Object.keys(commands))
  process.stderr.write(
    `patchbay: unknown command ${name}${guess === undefined ? '' : `, did you mean ${guess}?`} ("patchbay help" lists them)\n`,
  )
  return 2
}
