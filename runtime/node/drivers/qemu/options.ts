import { badRequest } from '../../../../src/lib/errors/api-error.ts'
import type { MachineEmulatorNode } from '../../../../src/model/kinds/machine-emulator.ts'
import {
  escaped,
  memberOf,
  membersIn,
  type OptionMembers,
} from '../../../../src/model/kinds/machine-options/option-list.ts'
import { judgeOptions, optionFlags, takingArgument } from '../../../../src/model/kinds/machine-options/option-rules.ts'
import { type EmulatorOption, nameIn, optionsIn } from '../../../../src/model/kinds/machine-options/options-in.ts'
import { shellWords } from '../../../../src/model/kinds/machine-options/shell-words.ts'

/** The prefix of ids that the service uses. */
const ownPrefix = 'pb-'

/** The values of `%vm-name%` and the other placeholders. */
interface Placeholders {
  readonly 'vm-name': string
  readonly 'vm-id': string
  readonly 'project-id': string
  readonly 'project-path': string
  /** 0: no console. */
  readonly 'console-port': number
  readonly 'guest-cid': number
}

export interface OptionRules {
  readonly isLocal: boolean
  readonly consoleType: MachineEmulatorNode['console_type']
  readonly placeholders: Placeholders
}

/** The parsed `options` of a node. */
export interface ParsedOptions {
  readonly args: readonly string[]
  /** `off`: the options switch it off; `given`: they name one. */
  readonly acceleration: 'ours' | 'off' | 'given'
  /** The machine type in the options. */
  readonly machine: string | undefined
  readonly hasUuid: boolean
  readonly hasDisplay: boolean
  readonly hasVga: boolean
  /** Whether the options use the place of the CD-ROM drive. */
  readonly hasCdrom: boolean
  /** The number of added devices, each of which may take a PCI slot. */
  readonly devices: number
}

/** Parses options and replaces placeholders; 400 with the name of an option that is not allowed. */
export function parseOptions(text: string, rules: OptionRules): ParsedOptions {
  const tokens = shellWords(text, 'options')
  const all = optionsIn(tokens).map((option) => withPlaceholders(option, rules.placeholders))
  for (const option of [...all, ...suspects(tokens, rules.placeholders)]) refuseReserved(option, rules)
  if (!rules.isLocal) for (const option of all) refuseUnsafe(option)
  const has = (...names: readonly string[]) => all.some(({ name }) => names.includes(name))
  const machines = all.filter(({ name }) => name === 'machine' || name === 'M').map(membersOf)
  const isGiven = has('enable-kvm', 'accel') || machines.some((members) => memberOf(members, 'accel') !== undefined)
  // icount does not work under KVM.
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

/** Options that newer versions lack; the service handles them. */
const handled: ReadonlySet<string> = new Set(['no-kvm', 'no-hax', 'enable-hax'])

/**
 * All words after an unknown option, each as an option. It is not known whether an unknown option takes an argument, so QEMU may
 * parse the following words in either way.
 */
function suspects(tokens: readonly string[], placeholders: Placeholders): EmulatorOption[] {
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

/** Options whose argument is one text; in other arguments a comma separates members. */
const wholeTexts: ReadonlySet<string> = new Set(
  'append kernel bios cdrom hda hdb hdc hdd fda fdb uuid dtb L D pflash sd mtdblock'.split(' '),
)

const withPlaceholders = ({ name, argument }: EmulatorOption, placeholders: Placeholders): EmulatorOption => ({
  name,
  argument: argument === undefined ? undefined : replaced(argument, placeholders, name !== '' && !wholeTexts.has(name)),
})

const replaced = (word: string, placeholders: Placeholders, isList: boolean): string =>
  word.replace(/%([a-z-]+)%/g, (text, name: string) => {
    if (!Object.hasOwn(placeholders, name)) return text
    // Escaped, because a comma in a name would begin another member.
    const value = String(placeholders[name as keyof Placeholders])
    return isList ? escaped(value) : value
  })

const membersOf = ({ argument }: EmulatorOption): OptionMembers => membersIn(argument ?? '')
const words = ({ name, argument }: EmulatorOption): string[] => [
  ...(name === '' ? [] : [`-${name}`]),
  ...(argument === undefined ? [] : [argument]),
]

/** Options that the service needs itself, with the reason. */
const reserved: Readonly<Record<string, string>> = {
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

function refuseReserved(option: EmulatorOption, { consoleType }: OptionRules): void {
  const { name } = option
  const reason = Object.hasOwn(reserved, name) ? reserved[name] : undefined
  if (reason !== undefined) throw badRequest(`options: -${name} cannot be used, ${reason}: leave it out`)
  const isOurConsole =
    (name === 'vnc' && consoleType === 'vnc') || (name === 'spice' && consoleType.startsWith('spice'))
  if (isOurConsole) throw badRequest(`options: -${name} cannot be used: console_type is already ${consoleType}`)
  const problem = conflictIn(option)
  if (problem !== undefined)
    throw badRequest(`options: -${words(option).join(' ').slice(1)} cannot be used, ${problem}`)
}

/** Why the argument of an option conflicts with channels of the service. */
function conflictIn({ name, argument = '' }: EmulatorOption): string | undefined {
  if (/^(serial|parallel|debugcon|virtioconsole)$/.test(name)) {
    if (/^(mon:)?stdio\b/.test(argument)) return 'standard input and output are the console, which is serial port 0'
    if (argument.startsWith('mon:')) return 'the monitor is used by the service'
  }
  const members = membersIn(argument)
  const kind = memberOf(members, 'backend') ?? memberOf(members, '')
  if (name === 'chardev' && kind === 'stdio') return 'standard input and output are the console'
  if (name === 'display' && /^curses\b/.test(argument)) return 'the terminal is the console'
  if (name === 'set' && /^(netdev|chardev|mon)\.pb-/.test(argument)) return `ids with ${ownPrefix} are the service's`
  if (name === 'global' && members.some(([, value]) => value.startsWith(ownPrefix)))
    return `ids with ${ownPrefix} are the service's`
  // The old option -net names a back end by `name`.
  for (const member of ['id', 'netdev', 'chardev', ...(name === 'net' ? ['name'] : [])]) {
    const value = memberOf(members, member)
    const isReference = name === 'object' && member !== 'id'
    if (value?.startsWith(ownPrefix) && !isReference) return `ids with ${ownPrefix} are the service's`
  }
  return undefined
}

/** Whether a drive is on the second IDE bus, by its index or its bus. */
function isSecondMaster(option: EmulatorOption): boolean {
  if (option.name !== 'drive') return false
  const members = membersOf(option)
  return memberOf(members, 'index') === '2' || memberOf(members, 'bus') === '1'
}

function refuseUnsafe({ name, argument = '' }: EmulatorOption): void {
  if (name === '') throw badRequest(`options: expected an option, got ${argument}`)
  const verdict = judgeOptions(name, argument)
  if (verdict === 'option') throw badRequest(`options: -${name} may be used in local mode only`)
  if (verdict === 'argument') throw badRequest(`options: -${name} ${argument} may be used in local mode only`)
}
