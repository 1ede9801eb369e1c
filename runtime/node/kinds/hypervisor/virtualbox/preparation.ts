import { conflict } from '../../../../../src/errors/api-error.ts'
import type { VmPlan } from '../driver.ts'
import { adapterCode } from './adapter-types.ts'
import type { AdapterNote } from './listings.ts'
import { type Adapter, attachments, type ScreenServer, type VirtualBoxVm } from './machine.ts'
import type { AdapterRecord, RunRecord } from './run-record.ts'

/** What a machine that is about to run is given. */
export interface Preparation {
  readonly machine: VirtualBoxVm
  readonly notes: ReadonlyMap<number, AdapterNote>
  readonly plan: VmPlan
  /** Of the socket of its serial port. */
  readonly serialPath: string
}

/** Whether an adapter is free for a port: not attached, or to a driver of that kind as ports are. */
export const isFree = ({ attachment }: Adapter): boolean => ['none', 'null', 'generic'].includes(attachment)

/** Whether it is as a port is. */
export const isTunnel = ({ attachment, to }: Adapter): boolean => attachment === 'generic' && to === 'UDPTunnel'

/** Attached to something that can be put back. */
const isKnown = (adapter: Adapter): boolean =>
  isFree(adapter) || adapter.attachment === 'nat' || attachments[adapter.attachment] !== undefined

export const inUse = (machine: VirtualBoxVm, { number, attachment }: Adapter) =>
  conflict(
    `Adapter ${number - 1} of the VM ${JSON.stringify(machine.name)} is attached to something else (${attachment}): ` +
      'set it to "Not attached" in VirtualBox, or set use_any_adapter',
  )

/** What is recorded before anything is changed; 409 when an adapter that is needed is used for something else. */
export function runRecordOf({ machine, notes, plan, serialPath }: Preparation): RunRecord {
  const isSaved = machine.state === 'saved'
  const { ram, screen } = plan
  const { at, mode } = machine.serialPort
  const adapters = [...portsOf(machine, plan), ...(isSaved ? [] : othersOf(machine, plan))]
  return {
    version: 1,
    uuid: machine.uuid,
    adapters: adapters.map(({ adapter, set }) => adapterRecord(adapter, set, notes.get(adapter.number))),
    ...(ram !== undefined && ram !== machine.memory && !isSaved && { memory: { before: machine.memory, set: ram } }),
    // Of one whose memory is saved it can only be said where it leads, not that there is one.
    ...((at !== 'off' || !isSaved) && {
      serialPort: { at, ...(mode !== undefined && { mode }), set: `server,${serialPath}` },
    }),
    ...(screen !== undefined && { screen: screenRecord(machine.screen, screen) }),
  }
}

/** The adapters that are ports and can be made such. */
function portsOf(machine: VirtualBoxVm, { adapters, useAnyAdapter }: VmPlan): Chosen[] {
  const chosen: Chosen[] = []
  for (const { index, carrier } of adapters) {
    const adapter = machine.adapter(index + 1)
    if (!isKnown(adapter) || !(isFree(adapter) || useAnyAdapter)) {
      if (carrier) throw inUse(machine, adapter)
    } else if (machine.state !== 'saved' || adapter.attachment !== 'none') {
      chosen.push({ adapter, set: 'generic' })
    }
  }
  return chosen
}

/** Those beyond the ports: a node has the adapters that it says it has. */
function othersOf(machine: VirtualBoxVm, { adapters }: VmPlan): Chosen[] {
  const count = Math.max(0, ...adapters.map(({ index }) => index + 1))
  const others = machine.adapters.filter((each) => each.number > count && each.attachment !== 'none' && isKnown(each))
  return others.map((adapter) => ({ adapter, set: 'none' }))
}

interface Chosen {
  readonly adapter: Adapter
  readonly set: AdapterRecord['set']
}

function adapterRecord(adapter: Adapter, set: AdapterRecord['set'], note: AdapterNote | undefined): AdapterRecord {
  const { number, attachment, to, type, hasCable } = adapter
  return { number, set, attachment, ...defined({ to, type, hasCable }), ...note }
}

/**
 * What is disabled does not say how it is set. The options that enable it, so that it can be recorded as it is before it is
 * changed; none when nothing is hidden.
 */
export function revealing({ adapters, serialPort, screen }: RunRecord): string[] {
  const hidden = adapters.filter(({ attachment, type }) => attachment === 'none' && type === undefined)
  return [
    ...hidden.flatMap(({ number }) => [`--nic${number}`, 'null']),
    ...(serialPort?.at === 'off' && serialPort.mode === undefined ? serialPortOn : []),
    ...(screen?.isOn === false && screen.ports === undefined ? ['--vrde', 'on'] : []),
  ]
}

const serialPortOn = ['--uart1', '0x3F8', '4']

/** The record with what enabling has shown. */
export function revealed(record: RunRecord, machine: VirtualBoxVm, notes: ReadonlyMap<number, AdapterNote>): RunRecord {
  const { serialPort, screen } = record
  const { mode } = machine.serialPort
  const { ports, address } = machine.screen
  return {
    ...record,
    adapters: record.adapters.map((each) => {
      if (each.attachment !== 'none' || each.type !== undefined) return each
      const { type, hasCable } = machine.adapter(each.number)
      return { ...each, ...defined({ type, hasCable }), ...notes.get(each.number) }
    }),
    ...(serialPort !== undefined && { serialPort: { ...defined({ mode }), ...serialPort } }),
    ...(screen !== undefined && { screen: { ...defined({ ports, address }), ...screen } }),
  }
}

/** The options of modifyvm that make the machine ready for its run. */
export function preparing(record: RunRecord, { machine, plan, serialPath }: Preparation): string[] {
  const { memory, serialPort, screen } = record
  const canChangeAll = machine.state !== 'saved'
  return [
    ...(memory === undefined || !canChangeAll ? [] : ['--memory', String(memory.set)]),
    ...record.adapters.flatMap((each) => adapterOptions(each, plan, canChangeAll)),
    ...(serialPort === undefined || !canChangeAll ? [] : serialPortOn),
    ...(serialPort === undefined ? [] : ['--uartmode1', 'server', serialPath]),
    ...(screen === undefined
      ? []
      : ['--vrde', 'on', '--vrdeport', screen.set.ports, '--vrdeaddress', screen.set.address]),
  ]
}

function adapterOptions({ number, set, isTraced }: AdapterRecord, plan: VmPlan, canChangeAll: boolean): string[] {
  if (set === 'none') return canChangeAll ? [`--nic${number}`, 'none'] : []
  const adapter = plan.adapters.find(({ index }) => index + 1 === number)
  if (adapter === undefined) return []
  return [
    ...(isTraced === true ? [`--nictrace${number}`, 'off'] : []),
    ...(canChangeAll ? [`--nictype${number}`, adapterCode(adapter.type ?? plan.adapterType)] : []),
    ...[`--nic${number}`, 'generic'],
    ...[`--nicgenericdrv${number}`, 'UDPTunnel'],
    ...[`--nicproperty${number}`, `sport=${adapter.guestPort}`],
    ...[`--nicproperty${number}`, 'dest=127.0.0.1'],
    ...[`--nicproperty${number}`, `dport=${adapter.switchPort}`],
    ...[`--cableconnected${number}`, adapter.carrier ? 'on' : 'off'],
  ]
}

function screenRecord({ isOn, ports, address }: ScreenServer, { host, port }: NonNullable<VmPlan['screen']>) {
  return { isOn, ...defined({ ports, address }), set: { ports: String(port), address: host } }
}

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> }

/** Without the members that are undefined. */
function defined<T extends object>(value: T): Partial<Defined<T>> {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as Partial<Defined<T>>
}
