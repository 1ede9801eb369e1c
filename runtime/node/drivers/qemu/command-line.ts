import { conflict } from '../../../../src/lib/errors/api-error.ts'
import type { MachineEmulatorNode } from '../../../../src/model/kinds/machine-emulator.ts'
import { escaped } from '../../../../src/model/kinds/machine-options/option-list.ts'
import type { PortWire } from '../../engine/nodes/kind.ts'
import { longestSocketPath } from '../../os/system/socket-path.ts'
import type { Adapter } from './adapters.ts'
import type { Accelerator } from './binaries.ts'
import { consoleArguments } from './console-arguments.ts'
import { cdromArguments, diskArguments, type Firmware, firmwareArguments, type MachineDisk } from './drives.ts'
import type { ParsedOptions } from './options.ts'
import { pciPlan } from './pci-slots.ts'
import { type BinaryFacts, isAtLeast } from './probe.ts'

/** The input of a command line. Paths are absolute, or relative to the working directory of the emulator. */
export interface MachineSpec {
  readonly settings: Pick<
    MachineEmulatorNode,
    'name' | 'node_id' | 'ram' | 'cpus' | 'boot_priority' | 'kernel_command_line' | 'console_type'
  >
  readonly facts: BinaryFacts
  /** The accelerator, unless the options name one. */
  readonly accelerator: Accelerator
  readonly options: ParsedOptions
  readonly firmware?: Firmware
  readonly disks: readonly MachineDisk[]
  /** A disk, hidden from the guest, for the saved state. */
  readonly stateDisk?: string
  /** null: no medium. */
  readonly cdrom: string | null
  readonly kernel?: string
  readonly initrd?: string
  readonly adapters: readonly Adapter[]
  /** The descriptor of the first adapter's socket, if the keeper hands over connected ones (`firstSocket`); else QEMU opens them. */
  readonly firstSocket?: number
  /** By `{adapter}/0`; each adapter has one. */
  readonly wires: ReadonlyMap<string, PortWire>
  /** The address of a VNC or SPICE server; unused for telnet consoles, which are on stdin and stdout. */
  readonly console: { readonly host: string; readonly port: number } | null
  /** Path of the UNIX socket of the monitor. */
  readonly monitor: string
  /** Whether the guest waits for `cont`, so that its links are set before its boot. */
  readonly isPaused: boolean
  /** Whether the guest goes on from memory that comes by its monitor's `migrate-incoming`. */
  readonly hasMemory?: boolean
  /** The tag of the saved state to restore. */
  readonly savedState?: string
}

/** The id of the network back end of an adapter, for `set_link`. */
export const netdevId = (adapter: number): string => `pb-net${adapter}`

/** The arguments of the emulator, without its name; 409 when the emulator does not support a setting. */
export function commandLine(machine: MachineSpec): string[] {
  const { settings, facts, options, disks, kernel, initrd } = machine
  const isPc = isPcOf(machine)
  if (settings.kernel_command_line !== '' && kernel === undefined)
    throw conflict('kernel_command_line: needs kernel_image')
  const drives = diskArguments(disks, isPc, facts)
  const console = consoleArguments(settings.console_type, machine.console, facts, options)
  return [
    // `guest=` is explicit, so that QEMU does not parse a name with an equals sign as another member.
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
    ...(machine.hasMemory === true ? ['-incoming', 'defer'] : []),
    ...(machine.isPaused ? ['-S'] : []),
    ...options.args,
  ]
}

/** Whether the machine type is pc or q35, whose devices are known. */
function isPcOf({ facts, options }: MachineSpec): boolean {
  const byDefault = facts.machines.find(({ isDefault }) => isDefault)
  return /^(x86_64|i386)$/.test(facts.platform) && /^(pc|q35)(-|$)/.test(options.machine ?? byDefault?.name ?? '')
}

function accelerationArguments({ facts, accelerator, options, firmware }: MachineSpec, isPc: boolean): string[] {
  if (options.acceleration === 'given') return []
  const isKvm = options.acceleration === 'ours' && accelerator === 'kvm'
  const isNamed = isAtLeast(facts.version, 2, 9)
  if (!isKvm) return isNamed ? ['-accel', 'tcg'] : []
  // System management mode is slow under KVM, and only a UEFI with Secure Boot needs it.
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
    // The default monitor can be opened by a key on the screen.
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
      adapterArguments(machine, adapter, number, onPci[number] === true ? plan.addressOf(pciAdapters++) : ''),
    ),
  ]
}

function adapterArguments(
  { facts, wires, firstSocket }: MachineSpec,
  { model, mac }: Adapter,
  number: number,
  address: string,
): string[] {
  const wire = wires.get(`${number}/0`)
  if (wire === undefined) throw conflict(`Adapter ${number} has no port`)
  const id = netdevId(number)
  const netdev = !takesSockets(facts)
    ? olderDatagrams(id, wire)
    : firstSocket === undefined
      ? datagrams(id, wire)
      : `dgram,id=${id},local.type=fd,local.str=${firstSocket + number}`
  return [...['-netdev', netdev], ...['-device', `${model},id=pb-nic${number},mac=${mac},netdev=${id}${address}`]]
}

/** Whether it sends and receives by sockets that it is handed over: QEMU from 7.2 on. */
export const takesSockets = ({ netdevs }: Pick<BinaryFacts, 'netdevs'>): boolean => netdevs.has('dgram')

/** Sockets that QEMU opens itself take datagrams of any sender. */
const datagrams = (id: string, { guest_port, switch_port }: PortWire): string =>
  `dgram,id=${id},local.type=inet,local.host=127.0.0.1,local.port=${guest_port}` +
  `,remote.type=inet,remote.host=127.0.0.1,remote.port=${switch_port}`

/** For QEMU before 7.2. */
const olderDatagrams = (id: string, { guest_port, switch_port }: PortWire): string =>
  `socket,id=${id},udp=127.0.0.1:${switch_port},localaddr=127.0.0.1:${guest_port}`

/** The facts of a network adapter model; 409 with the available models. */
export function requireModel({ devices }: Pick<BinaryFacts, 'devices'>, model: string) {
  const device = devices.get(model)
  if (device?.category === 'Network') return device
  const known = [...devices].filter(([, it]) => it.category === 'Network').map(([name]) => name)
  throw conflict(`adapter_type: this emulator has no network adapter ${model}; it has ${known.sort().join(', ')}`)
}
