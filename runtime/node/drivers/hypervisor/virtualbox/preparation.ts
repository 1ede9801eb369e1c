import { conflict } from '../../../../../src/lib/errors/api-error.ts'
import type { VmPlan } from '../driver.ts'
import { adapterCode } from './adapter-types.ts'
import type { AdapterNote } from './listings.ts'
import { attachments, type VirtualBoxAdapter, type VirtualBoxVm } from './machine.ts'
import type { AdapterRecord, RunRecord } from './run-record.ts'

/** The input of a start. */
interface Preparation {
  readonly machine: VirtualBoxVm
  readonly notes: ReadonlyMap<number, AdapterNote>
  readonly plan: VmPlan
  /** Path of the socket of the serial port. */
  readonly serialPath: string
}

/** Whether a port may use an adapter: not attached, or attached to a generic driver. */
export const isFree = ({ attachment }: VirtualBoxAdapter): boolean => ['none', 'null', 'generic'].includes(attachment)

/** Whether an adapter has the tunnel of a port. */
export const isTunnel = ({ attachment, to }: VirtualBoxAdapter): boolean =>
  attachment === 'generic' && to === 'UDPTunnel'

/** Whether the attachment can be restored. */
const isKnown = (adapter: VirtualBoxAdapter): boolean =>
  isFree(adapter) || adapter.attachment === 'nat' || attachments[adapter.attachment] !== undefined

export const inUse = (machine: VirtualBoxVm, { number, attachment }: VirtualBoxAdapter) =>
  conflict(
    `Adapter ${number - 1} of the VM ${JSON.stringify(machine.name)} is attached to something else (${attachment}): ` +
      'set it to "Not attached" in VirtualBox, or set use_any_adapter',
  )

/** The record of the settings before the start; 409 when a linked adapter is in other use. */
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
    // A saved VM cannot get a serial port, only another mode.
    ...((at !== 'off' || !isSaved) && {
      serialPort: { at, ...(mode !== undefined && { mode }), set: `server,${serialPath}` },
    }),
    ...(screen !== undefined && { screen: screenRecord(machine.screen, screen) }),
  }
}

/** The adapters that become ports. */
function portsOf(machine: VirtualBoxVm, { adapters, useAnyAdapter }: VmPlan): Chosen[] {
  const chosen: Chosen[] = []
  for (const { index, carrier } of adapters) {
    const adapter = machine.adapter(index + 1)
    if (!isKnown(adapter) || !(isFree(adapter) || useAnyAdapter)) {
      if (carrier) throw inUse(machine, adapter)
    } else if (machine.state !== 'saved' || adapter.attachment !== 'none') chosen.push({ adapter, set: 'generic' })
  }
  return chosen
}

/** Adapters beyond the ports; they are disabled, so that the guest has as many as the node. */
function othersOf(machine: VirtualBoxVm, { adapters }: VmPlan): Chosen[] {
  const count = Math.max(0, ...adapters.map(({ index }) => index + 1))
  const others = machine.adapters.filter((each) => each.number > count && each.attachment !== 'none' && isKnown(each))
  return others.map((adapter) => ({ adapter, set: 'none' }))
}

type Chosen = { readonly adapter: VirtualBoxAdapter; readonly set: AdapterRecord['set'] }

function adapterRecord(
  adapter: VirtualBoxAdapter,
  set: AdapterRecord['set'],
  note: AdapterNote | undefined,
): AdapterRecord {
  const { number, attachment, to, type, hasCable } = adapter
  return { number, set, attachment, ...defined({ to, type, hasCable }), ...note }
}

/** Options that enable disabled devices, because VirtualBox shows the settings of enabled devices only; empty if all are known. */
export function revealing({ adapters, serialPort, screen }: RunRecord): string[] {
  const hidden = adapters.filter(({ attachment, type }) => attachment === 'none' && type === undefined)
  return [
    ...hidden.flatMap(({ number }) => [`--nic${number}`, 'null']),
    ...(serialPort?.at === 'off' && serialPort.mode === undefined ? serialPortOn : []),
    ...(screen?.isOn === false && screen.ports === undefined ? ['--vrde', 'on'] : []),
  ]
}

const serialPortOn = ['--uart1', '0x3F8', '4']

/** The record with the settings that `revealing` made visible. */
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

/** The options of modifyvm that prepare the VM for a run. */
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

const screenRecord = (
  { isOn, ports, address }: VirtualBoxVm['screen'],
  { host, port }: NonNullable<VmPlan['screen']>,
) => ({ isOn, ...defined({ ports, address }), set: { ports: String(port), address: host } })

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> }

/** Drops members that are undefined. */
const defined = <T extends object>(value: T): Partial<Defined<T>> =>
  Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as Partial<Defined<T>>
