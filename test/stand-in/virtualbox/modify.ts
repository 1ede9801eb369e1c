import { renameFiles } from './clones.ts'
import { lockForWriting, Misuse, machineOf, maxNics, Refusal, saveSettings } from './machine.ts'
import type { MachineState, Nic, State } from './state.ts'

const types = ['Am79C970A', 'Am79C973', '82540EM', '82543GC', '82545EM', 'virtio']
export const kinds = ['none', 'null', 'nat', 'bridged', 'intnet', 'hostonly', 'generic', 'natnetwork']

/** Takes the values that an option wants. */
type Take = () => string

/** All options or none: the settings are saved when every one has been understood. */
export function modifyVm(state: State, args: readonly string[]): string {
  const [wanted, ...options] = args
  if (wanted === undefined || options.length === 0) throw new Misuse('Not enough parameters')
  const machine = machineOf(state, wanted)
  lockForWriting(machine)
  const changed = structuredClone(machine)
  const rest = [...options]
  for (let option = rest.shift(); option !== undefined; option = rest.shift()) {
    const name = option
    apply(state, changed, name, () => {
      const value = rest.shift()
      if (value === undefined) throw new Misuse(`Missing or invalid argument to '${name}'`)
      return value
    })
  }
  Object.assign(machine, changed)
  saveSettings(state, machine)
  return ''
}

function apply(state: State, machine: MachineState, option: string, take: Take): void {
  const [, word, digits] = /^--([a-z-]+?)(\d+)?$/.exec(option) ?? []
  const setting = digits === undefined ? settings[word ?? ''] : undefined
  if (setting !== undefined) return setting(machine, take, state)
  const number = Number(digits)
  if (word === 'uart' || word === 'uartmode') {
    if (number !== 1 && number !== 2) throw new Refusal('E_INVALIDARG', `Invalid slot number: ${number - 1}`)
    return word === 'uart' ? setUart(machine, take) : setUartMode(machine, take)
  }
  const nicSetting = nicSettings[word ?? '']
  if (nicSetting === undefined || digits === undefined) throw new Misuse(`Unknown option: ${option}`)
  const nic = machine.nics[number - 1]
  if (nic === undefined || number > maxNics(state, machine)) throw new Misuse(`Invalid NIC number '${number}'`)
  nicSetting(nic, take, machine)
}

/** What cannot be changed while the memory of the machine is saved. */
function requireMutable({ state }: MachineState): void {
  if (state !== 'saved') return
  throw new Refusal('VBOX_E_INVALID_VM_STATE', 'The machine is not mutable (state is Saved)')
}

const settings: Readonly<Record<string, (machine: MachineState, take: Take, state: State) => void>> = {
  memory(machine, take) {
    requireMutable(machine)
    const value = take()
    if (!/^\d+$/.test(value)) throw new Misuse(`Invalid value '${value}' for option '--memory'`)
    if (Number(value) < 4 || Number(value) > 2 ** 21) {
      throw new Refusal('E_INVALIDARG', `Invalid RAM size: ${value} MB (must be in range [4, 2097152] MB)`)
    }
    machine.memory = Number(value)
  },
  cpus(machine, take) {
    requireMutable(machine)
    machine.processors = Number(take())
  },
  name(machine, take, state) {
    const name = take()
    if (state.machines.some((each) => each.uuid !== machine.uuid && each.name === name)) {
      throw new Refusal('VBOX_E_FILE_ERROR', `Machine settings file for '${name}' already exists`)
    }
    renameFiles(state, machine, name)
  },
  vrde(machine, take) {
    machine.vrde.on = onOff(take())
  },
  vrdeport(machine, take) {
    machine.vrde.ports = take()
  },
  vrdeaddress(machine, take) {
    machine.vrde.address = take()
  },
}

const nicSettings: Readonly<Record<string, (nic: Nic, take: Take, machine: MachineState) => void>> = {
  nic(nic, take, machine) {
    const kind = take()
    if (!kinds.includes(kind)) throw new Misuse(`Invalid type '${kind}' specfied for NIC`)
    if (nic.enabled !== (kind !== 'none')) requireMutable(machine)
    nic.enabled = kind !== 'none'
    if (kind !== 'none') nic.attachment = kind
  },
  nictype(nic, take, machine) {
    requireMutable(machine)
    const type = take()
    if (!types.includes(type)) throw new Misuse(`Invalid NIC type '${type}' specified for NIC`)
    nic.type = type
  },
  nicgenericdrv(nic, take) {
    nic.driver = take()
  },
  nicproperty(nic, take) {
    setProperty(nic, take())
  },
  cableconnected(nic, take) {
    nic.cable = onOff(take())
  },
  nictrace(nic, take) {
    nic.trace = onOff(take())
  },
  bridgeadapter(nic, take) {
    nic.bridge = take()
  },
  intnet(nic, take) {
    nic.intnet = take()
  },
  hostonlyadapter(nic, take) {
    nic.hostonly = take()
  },
  'nat-network'(nic, take) {
    nic.natnetwork = take()
  },
}

/** One without a value is removed. */
export function setProperty(nic: Nic, text: string): void {
  const [, key, value] = /^([^=]+)=(.*)$/s.exec(text) ?? []
  if (key === undefined || value === undefined) throw new Misuse(`Invalid nicproperty argument '${text}'`)
  if (value === '') delete nic.properties[key]
  else nic.properties[key] = value
}

export function onOff(value: string): boolean {
  if (value !== 'on' && value !== 'off') throw new Misuse(`Invalid value '${value}': expected on or off`)
  return value === 'on'
}

function setUart(machine: MachineState, take: Take): void {
  requireMutable(machine)
  const base = take()
  machine.uart.on = base !== 'off'
  if (base === 'off') return
  if (!/^0x[0-9a-f]+$/i.test(base)) throw new Misuse(`Error parsing UART I/O base '${base}'`)
  machine.uart.base = `0x${Number(base).toString(16).padStart(4, '0')}`
  machine.uart.irq = take()
}

function setUartMode(machine: MachineState, take: Take): void {
  const word = take()
  const hasPath = ['server', 'client', 'tcpserver', 'tcpclient', 'file'].includes(word)
  machine.uart.mode = hasPath ? `${word},${take()}` : word
}
