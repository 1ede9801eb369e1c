import { Kind } from '@sinclair/typebox'
import { choicesOf, flagOf, type Key, keys, shown } from '../config/keys.ts'
import { version } from '../system/version.ts'

/** What a person who types "patchbay" sees. */
export const overview = `Patchbay ${version}: runs emulated network labs over HTTP

patchbay serve [flags]           run the service (http://127.0.0.1:3080, reference at /docs)
patchbay doctor [--json]         check what labs need on this machine
patchbay config [flags]          the settings in force, and where each came from
patchbay console [HOST:]PORT     a terminal on a telnet console; Ctrl-] leaves it
patchbay version
patchbay help [COMMAND]          the same as COMMAND --help

Flags are settings: --port 3080, --data DIR, --config FILE, --log-level debug, ...; "patchbay serve --help" lists them all.
`

const flagsIntro = `Flags win over environment variables (--pc-engine is PATCHBAY_PC_ENGINE), and those over the file
(pc.engine in ~/.config/patchbay/config.toml). A password or token on the command line can be seen by
other users of the machine, and is refused outside a terminal: take --password-file, --token-file or
--join-token-file, or the variables PATCHBAY_PASSWORD and PATCHBAY_TOKEN.
`

const texts: Readonly<Record<string, () => string>> = {
  serve: () => `patchbay serve [flags]

Runs the service until Ctrl-C or SIGTERM, which stop the nodes (unless on_exit is keep). When it is ready it
says so on standard output, with its address; what happens later goes to standard error, as JSON unless that
is a terminal.

${flagsIntro}
${flags()}`,
  config: () => `patchbay config [flags]

Shows every setting with its value, and where that came from: a flag, an environment variable, the file or the
default. Secrets are masked. It takes the flags of "patchbay serve", so it shows what those would do.

${flagsIntro}
${flags()}`,
  doctor: () => `patchbay doctor [--json] [flags]

Checks what labs need on this machine, and shows the command that mends each finding. The exit code is 1 when
something is missing that every lab needs. --json has the same for programs. It takes the flags of
"patchbay serve", so it checks the data directory and the programs that those name.
`,
  console: () => `patchbay console [HOST:]PORT

A terminal on the telnet console of a node; Ctrl-] leaves it. PORT is "console" in what the service answers for
the node, HOST is 127.0.0.1 unless it is given. With its input from a pipe it sends that and shows what the
guest says until it is quiet: echo "show ip" | patchbay console 5001
`,
  version: () => 'patchbay version\n\nShows the version of the program.\n',
  help: () => 'patchbay help [COMMAND]\n\nShows the commands, or what one of them does.\n',
}

/** What a command does and takes; undefined for what is no command. */
export const helpOf = (command: string): string | undefined =>
  Object.hasOwn(texts, command) ? texts[command]?.() : undefined

/** Every flag with its meaning and its default. */
function flags(): string {
  const rows = [
    ['--config FILE', 'The configuration file. Default: ~/.config/patchbay/config.toml'],
    ...keys.map((key) => [usage(key), meaning(key)]),
  ] as [string, string][]
  return rows.map(([left, right]) => `  ${left}\n        ${right}\n`).join('')
}

function usage(key: Key): string {
  const flag = flagOf(key)
  switch (key.schema[Kind]) {
    case 'Boolean':
      return `--[no-]${flag}`
    case 'Integer':
      return `--${flag} NUMBER`
    case 'Tuple':
      return `--${flag} FIRST-LAST`
    case 'Array':
      return `--${flag} A,B,...`
    case 'Record':
      return `--${flag} A=B,...`
    case 'Union':
      return `--${flag} ${choicesOf(key).join('|')}`
    default:
      return `--${flag} VALUE`
  }
}

function meaning({ schema }: Key): string {
  const value = shown(schema.default, schema)
  const isEmpty = ['', '[]', '{}', 'false'].includes(value)
  return `${String(schema.description)}${isEmpty ? '' : `. Default: ${value}`}`
}
