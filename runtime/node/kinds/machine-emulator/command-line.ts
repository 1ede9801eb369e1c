import { conflict } from '../../../../src/errors/api-error.ts'
import type { MachineEmulatorNode } from '../../../../src/kinds/machine-emulator.ts'
import { longestSocketPath } from '../../system/socket-path.ts'
import type { PortWire } from '../kind.ts'
import type { Adapter } from './adapters.ts'
import type { Accelerator } from './binaries.ts'
import { consoleArguments } from './console-arguments.ts'
import { cdromArguments, diskArguments, type Firmware, firmwareArguments, type MachineDisk } from './drives.ts'
import { escaped } from './option-list.ts'
import type { ParsedOptions } from './options.ts'
import { pciPlan } from './pci-slots.ts'
import { type BinaryFacts, isAtLeast } from './probe.ts'

export type { Adapter } from './adapters.ts'
export type { Firmware, MachineDisk } from './drives.ts'

/** Everything that a command line says. Paths are absolute, or relative to the directory that the emulator is started in. */
export interface MachineSpec {
  readonly settings: Pick<
    MachineEmulatorNode,
    'name' | 'node_id' | 'ram' | 'cpus' | 'boot_priority' | 'kernel_command_line' | 'console_type'
  >
  readonly facts: BinaryFacts
  /** What runs the guest unless the options say otherwise; see `acceleratorsOf`. */
  readonly accelerator: Accelerator
  readonly options: ParsedOptions
  readonly firmware?: Firmware
  readonly disks: readonly MachineDisk[]
  /** A disk that the guest does not see: it holds its state while it is stopped. */
  readonly stateDisk?: string
  /** null: nothing in the drive. */
  readonly cdrom: string | null
  readonly kernel?: string
  readonly initrd?: string
  readonly adapters: readonly Adapter[]
  /** By `{adapter}/0`; every adapter has one, linked or not. */
  readonly wires: ReadonlyMap<string, PortWire>
  /** Where a VNC or SPICE server listens; a telnet console is on standard input and output, and has no use for it. */
  readonly console: { readonly host: string; readonly port: number } | null
  /** Path of the UNIX socket of the monitor. */
  readonly monitor: string
  /** Whether the guest waits for `cont`, so that its links can be set before it looks at them. */
  readonly isPaused: boolean
  /** The saved state that the guest goes on from. */
  readonly savedState?: string
}

/** The back end of an adapter, by which `set_link` knows it. */
export const netdevId = (adapter: number): string => `pb-net${adapter}`

/** The arguments of the emulator, without its name; 409 when it cannot do what is wanted. */
export function commandLine(machine: MachineSpec): string[] {
  const { settings, facts, options, disks, kernel, initrd } = machine
  const isPc = isPcOf(machine)
  if (settings.kernel_command_line !== '' && kernel === undefined) {
    throw conflict('kernel_command_line: needs kernel_image')
  }
  const drives = diskArguments(disks, isPc, facts)
  const console = consoleArguments(settings.console_type, machine.console, facts, options)
  return [
    // By its own name, for a name with an equals sign is not taken for another member then.
    ...['-name', `guest=${escaped(settings.name)}`],
    ...['-m', `${settings.ram}M`],
    ...['-smp', `cpus=${settings.cpus}`],
    ...accelerationArguments(machine, isPc),
    ...['-boot', `order=${settings.boot_priority}`],
    ...firmwareArguments(machine.firmware),
    ...cdromArguments({ path: machine.cdrom, isPc, disks, isTaken: options.hasCdrom }),
    ...drives.args,
    ...(machine.stateDisk === undefined
      ? []
      : ['-drive', `file=${escaped(machine.stateDisk)},if=none,id=pb-state,format=qcow2`]),
    ...(initrd === undefined ? [] : ['-initrd', initrd]),
    ...(kernel === undefined ? [] : ['-kernel', kernel]),
    ...(settings.kernel_command_line === '' ? [] : ['-append', settings.kernel_command_line]),
    ...(options.hasUuid ? [] : ['-uuid', settings.node_id]),
    ...console.args,
    ...monitorArguments(machine.monitor),
    ...networkArguments(machine, drives.pciDevices + console.pciDevices + options.devices),
    ...(machine.savedState === undefined ? [] : ['-loadvm', machine.savedState]),
    ...(machine.isPaused ? ['-S'] : []),
    ...options.args,
  ]
}

/** Whether the machine is a PC of the usual kinds, whose parts are known. */
function isPcOf({ facts, options }: MachineSpec): boolean {
  const byDefault = facts.machines.find(({ isDefault }) => isDefault)
  return /^(x86_64|i386)$/.test(facts.platform) && /^(pc|q35)(-|$)/.test(options.machine ?? byDefault?.name ?? '')
}

function accelerationArguments({ facts, accelerator, options, firmware }: MachineSpec, isPc: boolean): string[] {
  if (options.acceleration === 'given') return []
  const isKvm = options.acceleration === 'ours' && accelerator === 'kvm'
  const isNamed = isAtLeast(facts.version, 2, 9)
  if (!isKvm) return isNamed ? ['-accel', 'tcg'] : []
  // It costs much under KVM, and no guest needs it but a UEFI with Secure Boot.
  const hasSwitch = isPc && facts.platform === 'x86_64' && isAtLeast(facts.version, 2, 4) && firmware?.type !== 'uefi'
  return [...(isNamed ? ['-accel', 'kvm'] : ['-enable-kvm']), ...(hasSwitch ? ['-machine', 'smm=off'] : [])]
}

function monitorArguments(socket: string): string[] {
  if (Buffer.byteLength(socket) > longestSocketPath) {
    throw conflict(
      `The path of the monitor's socket is longer than ${longestSocketPath} bytes: use a shorter directory`,
    )
  }
  return [
    ...['-chardev', `socket,id=pb-qmp,path=${escaped(socket)},server=on,wait=off`],
    ...['-mon', 'chardev=pb-qmp,mode=control'],
    // The default one would be a key stroke away for everybody who sees the screen.
    ...['-monitor', 'none'],
  ]
}

function networkArguments(machine: MachineSpec, otherPciDevices: number): string[] {
  const { facts, adapters } = machine
  const onPci = adapters.map((adapter) => requireModel(facts, adapter.model).bus === 'PCI')
  const plan = pciPlan(facts, onPci.filter(Boolean).length, otherPciDevices)
  let pciAdapters = 0
  return [
    ...['-net', 'none'],
    ...plan.bridges,
    ...adapters.flatMap((adapter, number) =>
      adapterArguments(machine, adapter, number, onPci[number] === true ? plan.place(pciAdapters++) : ''),
    ),
  ]
}

function adapterArguments(
  { facts, wires }: MachineSpec,
  { model, mac }: Adapter,
  number: number,
  place: string,
): string[] {
  const wire = wires.get(`${number}/0`)
  if (wire === undefined) throw conflict(`The port of adapter ${number} is not there`)
  const id = netdevId(number)
  return [
    ...['-netdev', facts.netdevs.has('dgram') ? datagrams(id, wire) : olderDatagrams(id, wire)],
    ...['-device', `${model},id=pb-nic${number},mac=${mac},netdev=${id}${place}`],
  ]
}

const datagrams = (id: string, { guest_port, switch_port }: PortWire): string =>
  `dgram,id=${id},local.type=inet,local.host=127.0.0.1,local.port=${guest_port}` +
  `,remote.type=inet,remote.host=127.0.0.1,remote.port=${switch_port}`

/** Before 7.2. */
const olderDatagrams = (id: string, { guest_port, switch_port }: PortWire): string =>
  `socket,id=${id},udp=127.0.0.1:${switch_port},localaddr=127.0.0.1:${guest_port}`

/** What the emulator knows of a network adapter; 409 with those that it has. */
export function requireModel({ devices }: Pick<BinaryFacts, 'devices'>, model: string) {
  const device = devices.get(model)
  if (device?.category === 'Network') return device
  const known = [...devices].filter(([, it]) => it.category === 'Network').map(([name]) => name)
  throw conflict(`adapter_type: this emulator has no network adapter ${model}, it has ${known.sort().join(', ')}`)
}
