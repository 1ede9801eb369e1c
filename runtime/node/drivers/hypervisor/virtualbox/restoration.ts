import { attachments, type VirtualBoxAdapter, type VirtualBoxVm } from './machine.ts'
import { isTunnel } from './preparation.ts'
import type { AdapterRecord, RunRecord } from './run-record.ts'

/** The options of modifyvm that restore the settings from before the run. Settings that the user has changed since then stay. */
export function restoring(record: RunRecord, machine: VirtualBoxVm): string[] {
  const { memory, serialPort, screen } = record
  return [
    ...(memory !== undefined && machine.memory === memory.set ? ['--memory', String(memory.before)] : []),
    ...record.adapters.flatMap((each) => adapterOptions(each, machine.adapter(each.number))),
    ...(serialPort === undefined ? [] : serialPortOptions(serialPort, machine)),
    ...(screen === undefined ? [] : screenOptions(screen, machine)),
  ]
}

function adapterOptions(before: AdapterRecord, now: VirtualBoxAdapter): string[] {
  const { number, set, attachment, type, hasCable, isTraced } = before
  // Only `revealing` has changed it.
  const isRevealed = attachment === 'none' && now.attachment === 'null'
  const isAsSet = set === 'generic' ? isTunnel(now) : now.attachment === 'none'
  if (!isAsSet && !isRevealed) return []
  if (set === 'none') return attachedAs(before)
  return [
    ...(isAsSet ? driverOptions(before) : []),
    ...(type === undefined ? [] : [`--nictype${number}`, type]),
    ...(hasCable === undefined ? [] : [`--cableconnected${number}`, hasCable ? 'on' : 'off']),
    ...(isTraced === true ? [`--nictrace${number}`, 'on'] : []),
    // The target of an attachment can be set while the adapter is enabled.
    ...(attachment === 'none' ? [`--nic${number}`, 'null'] : []),
    ...attachedAs(before),
  ]
}

function attachedAs({ number, attachment, to }: AdapterRecord): string[] {
  const option = attachments[attachment]?.option
  const target = option === undefined || to === undefined ? [] : [`${option}${number}`, to]
  return [...target, `--nic${number}`, attachment]
}

/** VirtualBox removes a property with an empty value. */
function driverOptions({ number, attachment, properties }: AdapterRecord): string[] {
  const hadDriver = attachment === 'generic'
  // Unknown properties stay as they are.
  if (hadDriver && properties === undefined) return []
  const values = ['sport', 'dest', 'dport'].map((key) => `${key}=${(hadDriver && properties?.[key]) || ''}`)
  return [
    ...values.flatMap((value) => [`--nicproperty${number}`, value]),
    ...(hadDriver ? [] : [`--nicgenericdrv${number}`, '']),
  ]
}

const modesWithPath = ['server', 'client', 'tcpserver', 'tcpclient', 'file']

function serialPortOptions(
  { at, mode, set }: NonNullable<RunRecord['serialPort']>,
  { serialPort }: VirtualBoxVm,
): string[] {
  const isRevealed = at === 'off' && serialPort.at !== 'off' && (mode === undefined || mode === serialPort.mode)
  if (serialPort.mode !== set && !isRevealed) return []
  return [...(mode === undefined ? [] : ['--uartmode1', ...modeArguments(mode)]), '--uart1', ...addressArguments(at)]
}

function modeArguments(mode: string): string[] {
  const [word = '', ...path] = mode.split(',')
  return modesWithPath.includes(word) ? [word, path.join(',')] : [mode]
}

const addressArguments = (at: string): string[] => at.split(',')

function screenOptions(
  { isOn, ports, address, set }: NonNullable<RunRecord['screen']>,
  { screen }: VirtualBoxVm,
): string[] {
  const isRevealed = !isOn && screen.isOn && (ports === undefined || ports === screen.ports)
  if (!(screen.isOn && screen.ports === set.ports) && !isRevealed) return []
  return [
    ...(ports === undefined ? [] : ['--vrdeport', ports || 'default']),
    ...(address === undefined ? [] : ['--vrdeaddress', address]),
    ...['--vrde', isOn ? 'on' : 'off'],
  ]
}
