import { randomUUID } from 'node:crypto'
import { existsSync, renameSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import {
  isActive,
  loadSettings,
  lockForWriting,
  Misuse,
  machineOf,
  mediumOf,
  newMac,
  newOverlay,
  Refusal,
  saveSettings,
  usedBy,
} from './machine.ts'
import type { MachineState, State } from './state.ts'

/** What is between the options and values of a command line. */
function parse(args: readonly string[], known: Readonly<Record<string, boolean>>) {
  const options: Record<string, string> = {}
  const words: string[] = []
  const rest = [...args]
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    if (!arg.startsWith('--')) words.push(arg)
    else if (known[arg] === undefined) throw new Misuse(`Unknown option: ${arg}`)
    else if (known[arg] === false) options[arg] = ''
    else {
      const value = rest.shift()
      if (value === undefined) throw new Misuse(`Missing argument to '${arg}'`)
      options[arg] = value
    }
  }
  return { options, words }
}

const folderOf = (machine: MachineState) => join(dirname(machine.file), 'Snapshots')

export function snapshot(state: State, args: readonly string[]): string {
  const { words } = parse(args, {})
  const [wanted = '', verb, name] = words
  const machine = machineOf(state, wanted)
  if (name === undefined) throw new Misuse('Missing snapshot name')
  if (verb === 'delete') {
    const index = machine.snapshots.findIndex((each) => each.uuid === name || each.name === name)
    if (index < 0) throw new Refusal('VBOX_E_OBJECT_NOT_FOUND', `Could not find a snapshot named '${name}'`)
    machine.snapshots.splice(index, 1)
  } else if (verb === 'take') {
    const { slots } = machine
    machine.snapshots.push({ uuid: randomUUID(), name, slots: structuredClone(slots) })
    // What comes from now on goes into overlays.
    machine.slots = slots.map((slot) => {
      if (mediumOf(state, slot.medium) === undefined) return slot
      const uuid = randomUUID()
      newOverlay(state, slot.medium, join(folderOf(machine), `{${uuid}}.vdi`), uuid)
      return { ...slot, medium: uuid }
    })
  } else throw new Misuse(`Invalid parameter '${verb}'`)
  saveSettings(state, machine)
  return ''
}

export function cloneVm(state: State, args: readonly string[]): string {
  const { options, words } = parse(args, {
    ...{ '--snapshot': true, '--name': true, '--options': true, '--basefolder': true, '--uuid': true },
    '--register': false,
  })
  const source = machineOf(state, words[0] ?? '')
  const name = options['--name'] ?? `${source.name} Clone`
  const uuid = options['--uuid'] ?? randomUUID()
  const base = source.snapshots.find(({ uuid: id, name: called }) => [id, called].includes(options['--snapshot'] ?? ''))
  if (options['--snapshot'] !== undefined && base === undefined) {
    throw new Refusal('VBOX_E_OBJECT_NOT_FOUND', `Could not find a snapshot named '${options['--snapshot']}'`)
  }
  if (options['--options'] !== 'link' || base === undefined) {
    throw new Refusal('VBOX_E_INVALID_OBJECT_STATE', 'Linked clone can only be created from a snapshot')
  }
  const file = join(options['--basefolder'] ?? dirname(dirname(source.file)), name, `${name}.vbox`)
  if (existsSync(file) || state.machines.some((each) => each.uuid === uuid || each.name === name)) {
    throw new Refusal('VBOX_E_FILE_ERROR', `Machine settings file '${file}' already exists`)
  }
  const clone: MachineState = {
    ...structuredClone(source),
    ...{ uuid, name, file, state: 'poweroff', pid: 0, lockedUntil: 0, snapshots: [], extraData: {}, description: '' },
  }
  for (const nic of clone.nics) nic.mac = newMac()
  clone.slots = base.slots.map((slot) => {
    if (mediumOf(state, slot.medium) === undefined) return slot
    const medium = randomUUID()
    newOverlay(state, slot.medium, join(folderOf(clone), `{${medium}}.vdi`), medium)
    return { ...slot, medium }
  })
  saveSettings(state, clone)
  if (options['--register'] !== undefined) state.machines.push(clone)
  return `0%...100%\nMachine has been successfully cloned as "${name}"\n`
}

export function registerVm(state: State, args: readonly string[]): string {
  const [file, ...rest] = args
  if (file === undefined || rest.length > 0) throw new Misuse('Invalid parameter')
  const { machine, media } = loadSettings(file)
  if (state.machines.some(({ uuid }) => uuid === machine.uuid)) {
    throw new Refusal(
      'E_INVALIDARG',
      `Trying to open a VM config '${file}' which has the same UUID as an existing virtual machine`,
    )
  }
  for (const medium of media) if (mediumOf(state, medium.uuid) === undefined) state.media.push(medium)
  state.machines.push({ ...machine, file, pid: 0, lockedUntil: 0 })
  return ''
}

export function unregisterVm(state: State, args: readonly string[]): string {
  const { options, words } = parse(args, { '--delete': false })
  const machine = machineOf(state, words[0] ?? '')
  if (isActive(machine)) {
    throw new Refusal(
      'VBOX_E_INVALID_OBJECT_STATE',
      `Cannot unregister the machine '${machine.name}' while it is locked`,
    )
  }
  state.machines.splice(state.machines.indexOf(machine), 1)
  // Its media are closed, but for those that others have or are overlays of.
  for (const uuid of usedBy(machine)) closeWhenUnused(state, uuid)
  if (options['--delete'] !== undefined) rmSync(dirname(machine.file), { recursive: true, force: true })
  return ''
}

const isUsed = (state: State, uuid: string) => state.machines.some((each) => usedBy(each).has(uuid))
const hasOverlays = (state: State, uuid: string) => state.media.some(({ parent }) => parent === uuid)

function closeWhenUnused(state: State, uuid: string): void {
  const index = state.media.findIndex((each) => each.uuid === uuid)
  if (index >= 0 && !isUsed(state, uuid) && !hasOverlays(state, uuid)) state.media.splice(index, 1)
}

export function storageAttach(state: State, args: readonly string[]): string {
  const wanted = { '--storagectl': true, '--port': true, '--device': true, '--type': true, '--medium': true }
  const { options, words } = parse(args, wanted)
  for (const option of Object.keys(wanted)) {
    if (options[option] === undefined) throw new Misuse(`Missing argument: ${option}`)
  }
  const machine = machineOf(state, words[0] ?? '')
  lockForWriting(machine)
  if (machine.state === 'saved') {
    throw new Refusal('VBOX_E_INVALID_VM_STATE', 'The machine is not mutable (state is Saved)')
  }
  const controller = options['--storagectl'] ?? ''
  if (!machine.controllers.includes(controller)) {
    throw new Refusal('VBOX_E_OBJECT_NOT_FOUND', `Could not find a storage controller named '${controller}'`)
  }
  const [port, device] = [Number(options['--port']), Number(options['--device'])]
  const isThere = (each: MachineState['slots'][number]) =>
    each.controller === controller && each.port === port && each.device === device
  machine.slots = machine.slots.filter((each) => !isThere(each))
  const file = options['--medium'] ?? ''
  if (file !== 'none') {
    if (!existsSync(file)) throw new Refusal('VBOX_E_FILE_ERROR', `Could not find file for the medium '${file}'`)
    const known = mediumOf(state, file)
    const uuid = known?.uuid ?? basename(file, '.vdi').replace(/[{}]/g, '')
    if (known === undefined) state.media.push({ uuid, file, parent: '' })
    machine.slots.push({ controller, port, device, medium: uuid })
  }
  saveSettings(state, machine)
  return ''
}

export function closeMedium(state: State, args: readonly string[]): string {
  const [kind, wanted, ...rest] = args
  if (kind !== 'disk' || wanted === undefined || rest.length > 0) throw new Misuse('Invalid parameter')
  const medium = mediumOf(state, wanted)
  if (medium === undefined) {
    throw new Refusal('VBOX_E_FILE_ERROR', `Could not find file for the medium '${wanted}' (VERR_FILE_NOT_FOUND)`)
  }
  if (isUsed(state, medium.uuid) || hasOverlays(state, medium.uuid)) {
    throw new Refusal('VBOX_E_OBJECT_IN_USE', `Cannot close medium '${medium.file}' because it is in use`)
  }
  state.media.splice(state.media.indexOf(medium), 1)
  return ''
}

/** A machine has its name in the names of its directory and file. */
export function renameFiles(state: State, machine: MachineState, name: string): void {
  const folder = dirname(machine.file)
  const renamed = join(dirname(folder), name)
  if (basename(folder) === machine.name) {
    renameSync(folder, renamed)
    rmSync(join(renamed, basename(machine.file)), { force: true })
    for (const medium of state.media) {
      if (medium.file.startsWith(`${folder}/`)) medium.file = renamed + medium.file.slice(folder.length)
    }
    machine.file = join(renamed, `${name}.vbox`)
  }
  machine.name = name
}
