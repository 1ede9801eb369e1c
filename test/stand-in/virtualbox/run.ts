import { setTimeout as pause } from 'node:timers/promises'
import { cloneVm, closeMedium, registerVm, snapshot, storageAttach, unregisterVm } from './clones.ts'
import { controlVm, startVm } from './control.ts'
import { isAccessible, isActive, Misuse, machineOf, noticeDeaths, Refusal } from './machine.ts'
import { modifyVm } from './modify.ts'
import { showVmInfo } from './show.ts'
import { change, type Fault, log, read, type State } from './state.ts'

type Command = (state: State, args: readonly string[]) => string

function list(state: State, [what, ...rest]: readonly string[]): string {
  if (what === undefined || rest.length > 0) throw new Misuse('Invalid parameter')
  if (what === 'vms' || what === 'runningvms') {
    const shown = state.machines.filter((each) => what === 'vms' || ['running', 'paused'].includes(each.state))
    return shown.map(({ uuid, name, accessible }) => `"${accessible ? name : '<inaccessible>'}" {${uuid}}\n`).join('')
  }
  if (what === 'hdds') return state.media.map((medium) => hdd(medium)).join('\n')
  if (what !== 'systemproperties') throw new Misuse(`Invalid parameter '${what}'`)
  const lines = [
    `API version:                     ${state.api}`,
    'Minimum guest RAM size:          4 Megabytes',
    'Default machine folder:          /home/user/VirtualBox VMs',
    `Remote desktop ExtPack:          ${state.screenPack}`,
    'Maximum PIIX3 Network Adapter count:   8',
    `Maximum ICH9 Network Adapter count:   ${state.ich9Adapters}`,
  ]
  return `${lines.join('\n')}\n`
}

const hdd = (medium: State['media'][number]) => `UUID:           ${medium.uuid}
Parent UUID:    ${medium.parent === '' ? 'base' : medium.parent}
State:          ${isAccessible(medium) ? 'created' : 'inaccessible'}
Type:           normal (${medium.parent === '' ? 'base' : 'differencing'})
Location:       ${medium.file}
Storage format: VDI
Capacity:       8192 MBytes
Encryption:     disabled
`

function getExtraData(state: State, [wanted = '', key]: readonly string[]): string {
  const { extraData } = machineOf(state, wanted)
  if (key === undefined) throw new Misuse('Not enough parameters')
  if (key === 'enumerate')
    return Object.entries(extraData)
      .map(([each, value]) => `Key: ${each}, Value: ${value}\n`)
      .join('')
  return extraData[key] === undefined ? 'No value set!\n' : `Value: ${extraData[key]}\n`
}

function setExtraData(state: State, [wanted = '', key, value]: readonly string[]): string {
  if (key === undefined) throw new Misuse('Not enough parameters')
  machineOf(state, wanted).extraData[key] = value ?? ''
  return ''
}

function guestProperty(state: State, [verb, wanted = '', key, value, ...flags]: readonly string[]): string {
  if (verb === 'enumerate') return properties(state, wanted)
  if (verb !== 'set' || key === undefined || value === undefined) throw new Misuse('Incorrect parameters')
  if (flags.length > 0 && (flags.length !== 2 || flags[0] !== '--flags')) throw new Misuse('Incorrect parameters')
  const machine = machineOf(state, wanted)
  if (!isActive(machine)) throw new Misuse('the machine does not run')
  machine.guestProperties[key] = { value, flags: flags[1] ?? '' }
  return ''
}

/** As VirtualBox has printed them up to 6, and from 7. */
function properties(state: State, wanted: string): string {
  const found = Object.entries(machineOf(state, wanted).guestProperties)
  return found
    .map(([name, { value, flags }]) =>
      state.api >= '7_0'
        ? `${name.padEnd(40)} = '${value}' @ 2026-11-21T12:00:00.000Z\n`
        : `Name: ${name}, value: ${value}, timestamp: 1795262400000000000, flags: ${flags}\n`,
    )
    .join('')
}

const commands: Readonly<Record<string, Command>> = {
  list,
  showvminfo: showVmInfo,
  modifyvm: modifyVm,
  snapshot,
  clonevm: cloneVm,
  registervm: registerVm,
  unregistervm: unregisterVm,
  storageattach: storageAttach,
  closemedium: closeMedium,
  getextradata: getExtraData,
  setextradata: setExtraData,
  guestproperty: guestProperty,
}

async function obey(directory: string, [name = '', ...args]: readonly string[]): Promise<string> {
  if (name === 'startvm') return await startVm(directory, args)
  if (name === 'controlvm') return await controlVm(directory, args)
  const command = commands[name]
  if (command === undefined) throw new Misuse(`Invalid command '${name}'`)
  return change(directory, (state) => command(state, args))
}

/** How a command ends; `hang` never does, and `flood` never stops talking. */
export interface Outcome {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  readonly never?: 'hang' | 'flood'
}

export interface CommandGiven {
  /** What comes after the name of the program. */
  readonly args: readonly string[]
  /** What the environment says of the language. */
  readonly locale: string
  readonly pid: number
}

/** A locale without UTF-8 does not even let it take an argument that is not ASCII. */
function requireLocale(locale: string, args: readonly string[]): void {
  const isPlain = !/utf-?8$/i.test(locale)
  if (isPlain && args.some((arg) => /[^\x20-\x7e]/.test(arg))) throw new Misuse('Failed to convert the arguments')
}

/** The fault that is due for the command, counted. */
const dueFault = (directory: string, line: string): Fault | undefined =>
  change(directory, (state) => {
    noticeDeaths(state)
    const fault = state.faults.find((each) => each.times > 0 && new RegExp(each.match).test(line))
    if (fault !== undefined) fault.times--
    return fault
  })

function complaint(error: unknown): Outcome {
  if (error instanceof Refusal) {
    const stderr =
      `VBoxManage: error: ${error.message}\nVBoxManage: error: Details: code ${error.code} (0x80bb0001), component ` +
      'MachineWrap, interface IMachine, callee nsISupports\n' +
      'VBoxManage: error: Context: "FindMachine(Bstr(pszName).raw(), machine.asOutParam())" at line 42 of file X.cpp\n'
    return { code: 1, stdout: '', stderr }
  }
  if (!(error instanceof Misuse)) throw error
  return { code: 1, stdout: 'Usage:\n\nVBoxManage ...\n\n', stderr: `VBoxManage: error: ${error.message}\n` }
}

/** Does what a command line says. */
export async function execute(directory: string, { args, locale, pid }: CommandGiven): Promise<Outcome> {
  const [logo, ...words] = args
  log(directory, { event: 'begin', pid, args: words })
  const fault = dueFault(directory, words.join(' '))
  if (fault?.action === 'hang' || fault?.action === 'flood') {
    return { code: 0, stdout: '', stderr: '', never: fault.action }
  }
  if (fault?.action === 'slow') await pause(fault.ms ?? 100)
  const failure = { code: 1, stdout: '', stderr: fault?.stderr ?? 'VBoxManage: error: It went wrong\n' }
  const outcome = fault?.action === 'die' ? failure : await attempt(directory, logo, words, locale)
  log(directory, { event: 'end', pid, args: words, code: outcome.code })
  return fault?.action === 'lose' ? failure : outcome
}

async function attempt(directory: string, logo = '', words: readonly string[], locale: string): Promise<Outcome> {
  try {
    if (logo !== '--nologo') throw new Misuse('the logo is in the way')
    requireLocale(locale, words)
    const text = await obey(directory, words)
    const isGerman = !/^C\b/.test(locale) && read(directory).speaksGerman
    return { code: 0, stdout: isGerman ? inGerman(text) : text, stderr: '' }
  } catch (error) {
    return complaint(error)
  }
}

const inGerman = (text: string) => text.replace('API version:', 'API-Version:').replaceAll('Location:', 'Ort:')
