import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { MachineState, Medium, Nic, State } from './state.ts'

/** An error as VirtualBox tells it. */
export class Refusal extends Error {
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** Wrong usage; VBoxManage has no code for that. */
export class Misuse extends Error {}

const uuidPattern = /^\{?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\}?$/i

export function machineOf(state: State, wanted: string): MachineState {
  const uuid = uuidPattern.exec(wanted)?.[1]?.toLowerCase()
  const found = state.machines.find((each) => (uuid === undefined ? each.name === wanted : each.uuid === uuid))
  if (found !== undefined) return found
  const how = uuid === undefined ? `named '${wanted}'` : `with UUID {${uuid}}`
  throw new Refusal('VBOX_E_OBJECT_NOT_FOUND', `Could not find a registered machine ${how}`)
}

const alive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** A machine whose process has died without a word has been aborted. */
export function noticeDeaths(state: State): void {
  for (const machine of state.machines) {
    if (isActive(machine) && machine.pid !== 0 && !alive(machine.pid)) {
      machine.state = 'aborted'
      machine.pid = 0
    }
  }
}

/** A machine does not run any more; what was only for its run is forgotten. */
export function settleVm(state: State, machine: MachineState, how: MachineState['state']): void {
  Object.assign(machine, { state: how, pid: 0, lockedUntil: Date.now() + state.unlockMs })
  const kept = Object.entries(machine.guestProperties).filter(([, { flags }]) => flags !== 'TRANSIENT')
  machine.guestProperties = Object.fromEntries(kept)
}

export const isActive = ({ state }: MachineState): boolean => ['running', 'paused', 'gurumeditation'].includes(state)

export const isLocked = (machine: MachineState): boolean => isActive(machine) || Date.now() < machine.lockedUntil

/** What everything that changes a machine has to have. */
export function lockForWriting(machine: MachineState): void {
  if (!machine.accessible) throw new Refusal('E_ACCESSDENIED', 'The object functionality is limited')
  if (!isLocked(machine)) return
  throw new Refusal(
    'VBOX_E_INVALID_OBJECT_STATE',
    `The machine '${machine.name}' is already locked for a session (or being locked or unlocked)`,
  )
}

export const newMac = (): string => `080027${randomBytes(3).toString('hex').toUpperCase()}`

export const newNic = (attachment = 'null', enabled = false): Nic => ({
  enabled,
  attachment,
  bridge: '',
  intnet: 'intnet',
  hostonly: '',
  natnetwork: '',
  driver: '',
  properties: {},
  type: '82540EM',
  cable: true,
  trace: false,
  mac: newMac(),
  forwardings: {},
})

export const maxNics = (state: State, machine: MachineState): number =>
  machine.chipset === 'ich9' ? state.ich9Adapters : 8

export const mediumOf = (state: State, wanted: string): Medium | undefined =>
  state.media.find(({ uuid, file }) => uuid === wanted || file === wanted)

export const isAccessible = ({ file }: Medium): boolean => existsSync(file)

/** A disk that is an overlay of another one. */
export function newOverlay(state: State, parent: string, file: string, uuid: string): Medium {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, `overlay of ${parent}\n`)
  const medium = { uuid, file, parent }
  state.media.push(medium)
  return medium
}

/** The settings on disk: as VirtualBox's, as far as anybody else reads them, and all of ours in a comment. */
export function saveSettings(state: State, machine: MachineState): void {
  mkdirSync(dirname(machine.file), { recursive: true })
  const all = { machine, media: state.media.filter((each) => usedBy(machine).has(each.uuid)) }
  const text = Buffer.from(JSON.stringify(all)).toString('base64')
  const name = machine.name.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')
  writeFileSync(
    machine.file,
    `<?xml version="1.0"?>\n<VirtualBox xmlns="http://www.virtualbox.org/" version="1.19-linux">\n` +
      `  <Machine uuid="{${machine.uuid}}" name="${name}">\n  </Machine>\n</VirtualBox>\n<!--${text}-->\n`,
  )
}

export function loadSettings(file: string): { machine: MachineState; media: Medium[] } {
  if (!existsSync(file)) {
    throw new Refusal('VBOX_E_FILE_ERROR', `Runtime error opening '${file}' for reading: -102 (File not found.)`)
  }
  const text = /<!--(.*)-->/.exec(readFileSync(file, 'utf8'))?.[1] ?? ''
  return JSON.parse(Buffer.from(text, 'base64').toString('utf8')) as { machine: MachineState; media: Medium[] }
}

/** The media of a machine, those in its snapshots, too. */
export const usedBy = (machine: MachineState): Set<string> =>
  new Set([machine.slots, ...machine.snapshots.map(({ slots }) => slots)].flat().map(({ medium }) => medium))
