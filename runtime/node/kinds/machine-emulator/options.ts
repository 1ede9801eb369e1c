import { badRequest } from '../../../../src/errors/api-error.ts'
import type { MachineEmulatorNode } from '../../../../src/kinds/machine-emulator.ts'
import { escaped, type Members, memberOf, membersIn } from './option-list.ts'
import { judgeOptions, optionFlags, takingArgument } from './option-rules.ts'
import { shellWords } from './shell-words.ts'

/** Ids that begin like this are those of our own devices, back ends and channels. */
export const ownPrefix = 'pb-'

/** What `%vm-name%` and its like stand for. */
export interface Placeholders {
  readonly 'vm-name': string
  readonly 'vm-id': string
  readonly 'project-id': string
  readonly 'project-path': string
  /** 0 when there is no console. */
  readonly 'console-port': number
  readonly 'guest-cid': number
}

export interface OptionRules {
  readonly isLocal: boolean
  readonly consoleType: MachineEmulatorNode['console_type']
  readonly placeholders: Placeholders
}

/** The `options` of a node, ready for the command line. */
export interface ParsedOptions {
  readonly args: readonly string[]
  /** `off`: none is wanted; `given`: they name one themselves. */
  readonly acceleration: 'ours' | 'off' | 'given'
  /** Type of the machine when they name one. */
  readonly machine: string | undefined
  readonly hasUuid: boolean
  readonly hasDisplay: boolean
  readonly hasVga: boolean
  /** Whether they put something where the CD-ROM drive would be. */
  readonly hasCdrom: boolean
  /** How many devices they add, each of which may take a PCI slot. */
  readonly devices: number
}

interface Option {
  /** Without its dashes; '' for a bare word, which is a disk. */
  readonly name: string
  readonly argument: string | undefined
}

/** Splits the text and replaces what stands between percent signs; 400 that names what may not be used. */
export function parseOptions(text: string, rules: OptionRules): ParsedOptions {
  const tokens = shellWords(text, 'options')
  const all = optionsIn(tokens, rules.placeholders)
  for (const option of [...all, ...suspects(tokens, rules.placeholders)]) refuseOurs(option, rules)
  if (!rules.isLocal) for (const option of all) refuseUnsafe(option)
  const has = (...names: readonly string[]) => all.some(({ name }) => names.includes(name))
  const machines = all.filter(({ name }) => name === 'machine' || name === 'M').map(membersOf)
  const isGiven = has('enable-kvm', 'accel') || machines.some((members) => memberOf(members, 'accel') !== undefined)
  // Instructions cannot be counted where the processor runs them itself.
  const isOff = has('no-kvm', 'no-hax') || (has('icount') && !isGiven)
  return {
    args: all.filter(({ name }) => !handled.has(name)).flatMap(words),
    acceleration: isOff ? 'off' : isGiven ? 'given' : 'ours',
    machine: machines.map((members) => memberOf(members, 'type') ?? memberOf(members, '')).findLast((it) => it),
    hasUuid: has('uuid'),
    hasDisplay: has('nographic', 'display', 'sdl', 'vnc', 'spice'),
    hasVga: has('vga'),
    hasCdrom: has('cdrom', 'hdc') || all.some(isSecondMaster),
    devices: all.filter(({ name }) => name === 'device').length,
  }
}

/** Gone from newer versions; what they ask for is done in another way. */
const handled: ReadonlySet<string> = new Set(['no-kvm', 'no-hax', 'enable-hax'])

function optionsIn(tokens: readonly string[], placeholders: Placeholders): Option[] {
  const options: Option[] = []
  for (let index = 0; index < tokens.length; index++) {
    const token = tokens[index] ?? ''
    const name = nameIn(token)
    if (name === undefined) options.push({ name: '', argument: replaced(token, placeholders, false) })
    else if (optionFlags.has(name)) options.push({ name, argument: undefined })
    else {
      const argument = tokens[++index]
      if (argument === undefined) throw badRequest(`options: -${name} at the end, expected its argument`)
      options.push({ name, argument: replaced(argument, placeholders, !wholeTexts.has(name)) })
    }
  }
  return options
}

/**
 * Every word after an option that is not known, as an option: the emulator may take that one without the argument that we see
 * in the next word, and then reads all that follows in another way than we do.
 */
function suspects(tokens: readonly string[], placeholders: Placeholders): Option[] {
  const first = tokens.findIndex((token, index) => {
    const name = nameIn(token)
    const isArgument = takingArgument.has(nameIn(tokens[index - 1]) ?? '')
    return name !== undefined && !isArgument && !optionFlags.has(name) && !takingArgument.has(name)
  })
  if (first < 0) return []
  return tokens.slice(first + 1).flatMap((token, index, rest) => {
    const name = nameIn(token)
    const argument = replaced(rest[index + 1] ?? '', placeholders, true)
    return name === undefined ? [] : [{ name, argument }]
  })
}

/** Two dashes are one. */
const nameIn = (token: string | undefined): string | undefined => /^--?(.+)$/.exec(token ?? '')?.[1]

/** Options whose argument is one text; in all others a comma begins another member. */
const wholeTexts: ReadonlySet<string> = new Set(
  'append kernel bios cdrom hda hdb hdc hdd fda fdb uuid dtb L D pflash sd mtdblock'.split(' '),
)

function replaced(word: string, placeholders: Placeholders, isList: boolean): string {
  return word.replace(/%([a-z-]+)%/g, (text, name: string) => {
    if (!Object.hasOwn(placeholders, name)) return text
    // Else a name with a comma would add members of its own.
    const value = String(placeholders[name as keyof Placeholders])
    return isList ? escaped(value) : value
  })
}

const membersOf = ({ argument }: Option): Members => membersIn(argument ?? '')
const words = ({ name, argument }: Option): string[] => [
  ...(name === '' ? [] : [`-${name}`]),
  ...(argument === undefined ? [] : [argument]),
]

/** Options that would take away what the service itself needs, with what to do instead. */
const ours: Readonly<Record<string, string>> = {
  monitor: 'the monitor is used by the service',
  mon: 'the monitor is used by the service',
  qmp: 'the monitor is used by the service',
  'qmp-pretty': 'the monitor is used by the service',
  daemonize: 'the service watches the process',
  pidfile: 'the service watches the process',
  S: 'the service starts and pauses the machine',
  preconfig: 'the service starts and pauses the machine',
  name: 'set the field name instead',
  curses: 'the terminal is the console',
  h: 'it ends the emulator',
  help: 'it ends the emulator',
  '?': 'it ends the emulator',
  version: 'it ends the emulator',
}

function refuseOurs(option: Option, { consoleType }: OptionRules): void {
  const { name } = option
  const reason = Object.hasOwn(ours, name) ? ours[name] : undefined
  if (reason !== undefined) throw badRequest(`options: -${name} cannot be used, ${reason}: leave it out`)
  const isOurConsole =
    (name === 'vnc' && consoleType === 'vnc') || (name === 'spice' && consoleType.startsWith('spice'))
  if (isOurConsole) throw badRequest(`options: -${name} cannot be used, console_type is ${consoleType} already`)
  const problem = wiringIn(option)
  if (problem !== undefined)
    throw badRequest(`options: -${words(option).join(' ').slice(1)} cannot be used, ${problem}`)
}

/** How the argument of an option touches our own channels, if it does. */
function wiringIn({ name, argument = '' }: Option): string | undefined {
  if (/^(serial|parallel|debugcon|virtioconsole)$/.test(name)) {
    if (/^(mon:)?stdio\b/.test(argument)) return 'standard input and output are the console, which is serial port 0'
    if (argument.startsWith('mon:')) return 'the monitor is used by the service'
  }
  const members = membersIn(argument)
  const kind = memberOf(members, 'backend') ?? memberOf(members, '')
  if (name === 'chardev' && kind === 'stdio') return 'standard input and output are the console'
  if (name === 'display' && /^curses\b/.test(argument)) return 'the terminal is the console'
  if (name === 'set' && /^(netdev|chardev|mon)\.pb-/.test(argument)) return `ids with ${ownPrefix} are the service's`
  if (name === 'global' && members.some(([, value]) => value.startsWith(ownPrefix))) {
    return `ids with ${ownPrefix} are the service's`
  }
  // Network back ends are called by `name` in the old form.
  for (const member of ['id', 'netdev', 'chardev', ...(name === 'net' ? ['name'] : [])]) {
    const value = memberOf(members, member)
    const isLook = name === 'object' && member !== 'id'
    if (value?.startsWith(ownPrefix) && !isLook) return `ids with ${ownPrefix} are the service's`
  }
  return undefined
}

/** A drive by its index, or by its bus and unit. */
function isSecondMaster(option: Option): boolean {
  if (option.name !== 'drive') return false
  const members = membersOf(option)
  return memberOf(members, 'index') === '2' || memberOf(members, 'bus') === '1'
}

function refuseUnsafe({ name, argument = '' }: Option): void {
  if (name === '') throw badRequest(`options: expected an option, got ${argument}`)
  const verdict = judgeOptions(name, argument)
  if (verdict === 'option') throw badRequest(`options: -${name} may be used in local mode only`)
  if (verdict === 'argument') throw badRequest(`options: -${name} ${argument} may be used in local mode only`)
}
