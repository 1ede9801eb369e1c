import { asking, type Command, command, logging, showing } from './cli/command.ts'

/** Every command of the program, in the order in which help lists them. A name may have two words. */
export const commands: Readonly<Record<string, Command>> = {
  ls: command({
    group: 'labs',
    summary: 'list the labs',
    text: 'Lists the labs of the service, with the number of their nodes and of those that run.',
    flags: asking,
    run: async (input) => (await import('./cli/ls.ts')).ls(input),
  }),
  console: command({
    group: 'nodes',
    summary: 'a terminal on the console of a node; Ctrl-] leaves it',
    text: `A terminal on a console by telnet; Ctrl-] leaves it. PORT is the member "console" of the node, HOST is 127.0.0.1
by default. With input from a pipe the command sends the input, and shows the output of the guest until the
guest is quiet: echo "show ip" | patchbay console 5001`,
    args: [{ name: '[HOST:]PORT', about: 'the console' }],
    run: async (input) => (await import('./cli/console.ts')).consoleCommand(input.args),
  }),
  serve: command({
    group: 'service',
    summary: 'run the service in the foreground (reference at /docs)',
    text: `Runs the service until Ctrl-C or SIGTERM, which stop the nodes (unless on_exit is keep). When it is ready it
prints its address on standard output. The log goes to standard error: as JSON, or as text on a terminal.`,
    settings: 'list',
    run: async ({ argv }) => {
      const { loadConfig } = await import('./config/load.ts')
      return (await import('./serve.ts')).serve(loadConfig({ argv, env: process.env }))
    },
  }),
  'service status': command({
    group: 'service',
    summary: 'the service of this user: where it is, and what runs on it',
    text: 'Shows whether the service of this user runs, and where. The exit code is 5 when it does not.',
    flags: showing,
    run: async (input) => (await import('./cli/service.ts')).serviceStatus(input),
  }),
  'service start': command({
    group: 'service',
    summary: 'start the service of this user in the background, if none runs',
    text: `Starts the service of this user, as "patchbay up" does when none runs: detached from the terminal, on
http://127.0.0.1:3080 or a free port, with the settings of "patchbay config". Its nodes go on when it ends.`,
    flags: showing,
    run: async (input) => (await import('./cli/service.ts')).serviceStart(input),
  }),
  'service stop': command({
    group: 'service',
    summary: 'end the service of this user',
    text: `Ends the service of this user. A service that "patchbay up" has started leaves its nodes running, and the
next one takes them over; "patchbay down" stops them.`,
    flags: showing,
    run: async (input) => (await import('./cli/service.ts')).serviceStop(input),
  }),
  'service logs': command({
    group: 'service',
    summary: 'the log of the service that "patchbay up" has started',
    text: 'Shows the last lines of the log.',
    flags: logging,
    run: async (input) => (await import('./cli/service.ts')).serviceLogs(input),
  }),
  doctor: command({
    group: 'service',
    summary: 'check what labs need on this machine',
    text: `Checks what labs need on this machine, and shows the command that mends each finding. The exit code is 1 when
something is missing that every lab needs. It takes the flags of "patchbay serve", and checks the data directory
and the programs that they name.`,
    flags: showing,
    settings: 'named',
    run: async ({ argv }) => (await import('./cli/doctor.ts')).doctorCommand(argv),
  }),
  config: command({
    group: 'service',
    summary: 'the settings in force, and where each came from',
    text: `Shows every setting with its value and its source: a flag, an environment variable, the file or the
default. Secrets are masked. It takes the flags of "patchbay serve", and shows the settings that they give.`,
    settings: 'list',
    run: async ({ argv }) => (await import('./cli/config.ts')).configCommand(argv),
  }),
  version: command({
    group: 'program',
    summary: 'the version of the program, and of a service',
    text: 'Shows the version of the program, and with --server or PATCHBAY_SERVER that of the service there.',
    flags: asking,
    run: async (input) => (await import('./cli/version.ts')).versionCommand(input),
  }),
  help: command({
    group: 'program',
    summary: 'the same as COMMAND --help',
    text: 'Shows the commands, or what one of them does.',
    args: [{ name: 'COMMAND', about: 'a command', optional: true, many: true, complete: 'command' }],
    run: async ({ args }) => (await import('./cli/help.ts')).help(args, commands),
  }),
}
