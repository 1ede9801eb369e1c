import { rm, symlink } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import type { EventPayload } from '../../../../src/model/event.ts'
import { ConfinedTool, type ImageTool } from '../../engine/images/confined-tool.ts'
import type { Launch, PortWire } from '../../engine/nodes/kind.ts'
import { replaceOwn } from '../../engine/storage/own-files.ts'
import { firstSocket } from '../../keeper/protocol/protocol.ts'
import { forDesktop, selected } from '../../os/programs/environment.ts'
import { give, insideBox, letRead, makeBox } from '../../os/sandbox/box.ts'
import type { Cell } from '../../os/sandbox/cell.ts'
import type { Confinement, Sandbox } from '../../os/sandbox/sandbox.ts'
import { quoted } from '../../os/sandbox/shell.ts'
import { checkMemory } from '../../os/system/memory.ts'
import { type Adapter, adaptersOf, generatedMac } from './adapters.ts'
import { type Accelerator, acceleratorsOf, resolveEmulator } from './binaries.ts'
import { commandLine, takesSockets } from './command-line.ts'
import { firmwareOf, systemUefis } from './firmware.ts'
import { kvmState } from './kvm-guest.ts'
import type { MachineImages } from './machine-images.ts'
import { memoryIn, staleMemoryHint } from './memory.ts'
import { monitorName, pathForEmulator } from './monitor-path.ts'
import { type ParsedOptions, parseOptions } from './options.ts'
import { nativePlatforms } from './platforms.ts'
import type { BinaryFacts } from './probe.ts'
import type { MachineKindNode, MachineProperties } from './properties.ts'
import { savedStateTag, staleStateHint } from './saved-state.ts'

export interface LaunchOptions {
  readonly isLocal: () => boolean
  readonly sandbox: Sandbox
  readonly runDirectory: string
  readonly consoleHost: string
  readonly acceleration: 'auto' | 'kvm' | 'tcg'
  /** Whether the keeper can hand over connected sockets. */
  readonly handsOver: () => Promise<boolean>
  readonly images: MachineImages
  /** Ends the preparation of the disks. */
  readonly signal: AbortSignal
}

/** The log: the command line, then the output of the emulator other than the console. */
const logName = 'qemu.log'
/** QEMU splits `-initrd` at commas for a multiboot kernel, so a directory such as `x,/etc` would refer to a file of the host. */
const commaInInitrd = 'the emulator reads a comma in a path as the start of another file; use a path without commas'

/** Checks and creates the files of a machine, and returns its command; 409 with what is missing. */
export async function launchOf(
  node: MachineKindNode,
  wires: ReadonlyMap<string, PortWire>,
  options: LaunchOptions,
): Promise<Launch> {
  const { record, directory, projectId } = node
  const properties = node.record.properties
  const { images } = options
  const isLocal = options.isLocal()
  const notices: EventPayload[] = []
  const report = (type: 'log.warning' | 'log.info', message: string) =>
    notices.push({ type, message: `${record.name}: ${message}` })

  const memoryWarning = checkMemory(properties.ram)
  if (memoryWarning !== undefined) report('log.warning', memoryWarning)
  const parsed = optionsOf(node, isLocal)
  const confinement = await options.sandbox.confinement((reason) => report('log.warning', reason))
  const facts = await resolveEmulator(properties, isLocal, options.sandbox)
  let tool: ImageTool | undefined
  const toolFor = async () => {
    tool ??= await images.tool(directory, facts.path, options.signal)
    return tool
  }
  const { disks, stateDisk, warnings, hasState } = await images.disks(node, toolFor)
  for (const warning of warnings) report('log.warning', warning)
  const [cdrom, bios, kernel, initrd] = await Promise.all(
    (['cdrom_image', 'bios_image', 'kernel_image', 'initrd'] as const).map((field) => images.find(node, field)),
  )
  if (!isLocal && initrd?.includes(',')) throw conflict(`initrd: ${commaInInitrd}`)
  const uefi = properties.firmware === 'uefi' ? await systemUefi(facts, parsed) : undefined
  const firmware = bios ?? uefi
  const accelerator = await acceleratorFor(facts, parsed, options.acceleration, (message) =>
    report('log.info', message),
  )
  const { console, console_type } = record
  const hasMemory = memoryIn(directory) !== undefined
  const adapters = adaptersOf({ ...properties, mac_address: macOf(projectId, record.node_id, properties) })
  const sockets = takesSockets(facts) && (await options.handsOver()) ? wiresOf(adapters, wires) : []
  const args = commandLine({
    settings: { ...properties, name: record.name, node_id: record.node_id, console_type },
    facts,
    accelerator,
    options: parsed,
    ...(firmware !== undefined && { firmware: await firmwareOf(firmware, directory) }),
    disks,
    ...(stateDisk !== undefined && { stateDisk }),
    cdrom: cdrom ?? null,
    ...(kernel !== undefined && { kernel }),
    ...(initrd !== undefined && { initrd }),
    adapters,
    wires,
    ...(sockets.length > 0 && { firstSocket }),
    console: console === null || console_type === 'telnet' ? null : { host: options.consoleHost, port: console },
    monitor:
      confinement === undefined
        ? pathForEmulator(options.runDirectory, monitorName(record.node_id), directory)
        : join(insideBox, insideName),
    isPaused: true,
    hasMemory,
    ...(hasState && !hasMemory && { savedState: savedStateTag }),
  })
  const command_line = [facts.path, ...args].map(pasteable).join(' ')
  const log = join(directory, logName)
  // A guest that broke out may have put a link or a FIFO there: it is replaced, not written to.
  await replaceOwn(directory, logName, `${command_line}\n`)
  let run = { command: facts.path, args, is_wrapped: false }
  if (confinement !== undefined) {
    const files = [cdrom, bios, kernel, initrd].filter((file) => file !== undefined)
    const readings = { files, tool: tool instanceof ConfinedTool ? tool : undefined, hasKvm: accelerator === 'kvm' }
    const cell = { ...(await cellOf(node, confinement.user, options, readings)), sockets: sockets.length }
    run = { ...confinement.wrap(cell, facts.path, args), is_wrapped: true }
  }
  return {
    command_line,
    notices,
    hint: hasMemory ? staleMemoryHint : hasState ? staleStateHint : undefined,
    run: {
      type: 'process',
      ...run,
      cwd: directory,
      log,
      stdio: console_type === 'telnet' ? 'pipe' : 'none',
      ...(sockets.length > 0 && { sockets }),
      // In local mode its options may open a window.
      ...(isLocal && { env: selected(forDesktop) }),
    },
  }
}

/** The wires in the order of the adapters; the command line misses one that is not there. */
const wiresOf = (adapters: readonly Adapter[], wires: ReadonlyMap<string, PortWire>): PortWire[] =>
  adapters.flatMap((_, number) => wires.get(`${number}/0`) ?? [])

/** The name of the monitor in the box. */
const insideName = 'qmp'

/** The cell of an emulator: its node, its images (`files`: not the disks, which `tool` has), and the box with its monitor. */
async function cellOf(
  { record, directory }: MachineKindNode,
  user: Confinement['user'],
  { runDirectory, images, consoleHost }: LaunchOptions,
  { files, tool, hasKvm }: { files: readonly string[]; tool: ConfinedTool | undefined; hasKvm: boolean },
): Promise<Cell> {
  const directories = images.directories()
  const box = await makeBox(runDirectory, record.node_id)
  // The service connects to the monitor by this link.
  const monitor = join(runDirectory, monitorName(record.node_id))
  await rm(monitor, { force: true })
  await symlink(join(box, insideName), monitor)
  for (const file of files) await letRead(user, file, directories)
  await give(user, directory, box)
  const { console, console_type } = record
  const hasScreen = console !== null && console_type !== 'telnet' && console_type !== 'none'
  return {
    cwd: directory,
    writable: tool?.writable ?? [directory],
    readable: [...(tool?.readable ?? directories), ...files],
    mounts: [{ from: box, at: insideBox, isWritable: true }],
    devices: hasKvm ? ['/dev/kvm'] : [],
    // Its links are UDP sockets of the host, and the port of its screen is one of the host.
    network: 'host',
    // The name of a console host has to be resolved.
    ...(isIP(consoleHost) !== 0 && { sees: 'nameless' }),
    listens: hasScreen ? [console] : [],
  }
}

/** The further options of a machine; 400. */
export function optionsOf({ record, projectId, projectPath }: MachineKindNode, isLocal: boolean): ParsedOptions {
  const { node_id, name, console, console_type } = record
  const { options } = record.properties
  return parseOptions(options, {
    isLocal,
    consoleType: console_type,
    placeholders: {
      'vm-name': name,
      'vm-id': node_id,
      'project-id': projectId,
      'project-path': projectPath,
      'console-port': console ?? 0,
      // Ports are below 65,536, so the id of a machine without a console differs from that of any with one.
      'guest-cid': console ?? 65_536 + Number.parseInt(node_id.slice(-7), 16),
    },
  })
}

export const macOf = (projectId: string, nodeId: string, { mac_address }: MachineProperties): string =>
  mac_address ?? generatedMac(projectId, nodeId)

/** A UEFI of the host for the machine; 409 when there is none. */
async function systemUefi({ platform, machines }: BinaryFacts, { machine }: ParsedOptions): Promise<string> {
  const wanted = machines.find(({ name, alias, isDefault }) =>
    machine === undefined ? isDefault : machine === name || machine === alias,
  )
  const [uefi] = await systemUefis(platform, wanted?.name ?? machine ?? '')
  if (uefi === undefined)
    throw conflict('firmware: this host has no UEFI for the machine; install it (apt-get install ovmf)')
  return uefi.code
}

async function acceleratorFor(
  facts: BinaryFacts,
  { acceleration }: ParsedOptions,
  wanted: 'auto' | 'kvm' | 'tcg',
  report: (message: string) => void,
): Promise<Accelerator> {
  const usable = acceleratorsOf(facts)
  if (acceleration !== 'ours') return 'tcg'
  const kvm = wanted === 'auto' && usable.includes('kvm') ? await kvmState() : 'unknown'
  if (usable.includes('tcg') && (kvm === 'hangs' || kvm === 'fails')) {
    const what = kvm === 'hangs' ? 'a guest hangs at its boot' : 'QEMU cannot run a guest'
    report(`it runs without KVM, much slower: under KVM ${what} on this host (see patchbay doctor)`)
    return 'tcg'
  }
  if (wanted === 'kvm' && !usable.includes('kvm')) {
    throw conflict('KVM is required (machine_emulator.acceleration) and cannot be used by this emulator on this host')
  }
  const [best] = usable.filter((it) => wanted === 'auto' || it === wanted)
  if (best === undefined) throw conflict('The emulator has no accelerator that can be used on this host')
  const isSlow = best === 'tcg' && wanted === 'auto' && nativePlatforms().includes(facts.platform)
  if (isSlow) report('it runs without KVM, much slower: /dev/kvm does not exist or this user may not open it')
  return best
}

/** A word of the command line that is shown, which can be pasted into a shell. */
const pasteable = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : quoted(word))
