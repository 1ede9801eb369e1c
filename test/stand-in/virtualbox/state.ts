import { appendFileSync, mkdirSync, readFileSync, renameSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** What VirtualBox would have in its heads and files: `state.json` in its directory. */
export interface State {
  /** Where the stand-in's programs are. */
  programs: string
  /** `7_0`. */
  api: string
  ich9Adapters: number
  /** The extension pack that serves screens. */
  screenPack: string
  /** Whether messages come in German when the environment does not forbid it. */
  speaksGerman: boolean
  /** How long a machine stays locked after it has stopped, ms. */
  unlockMs: number
  machines: MachineState[]
  media: Medium[]
  faults: Fault[]
}

/** What goes wrong with commands whose arguments, joined by spaces, match. */
export interface Fault {
  match: string
  /** `die`: the command changes nothing; `lose`: it does what it should, and ends badly. */
  action: 'die' | 'lose' | 'hang' | 'slow' | 'flood'
  stderr?: string
  ms?: number
  /** How often yet. */
  times: number
}

export interface Nic {
  enabled: boolean
  attachment: string
  bridge: string
  intnet: string
  hostonly: string
  natnetwork: string
  driver: string
  properties: Record<string, string>
  type: string
  cable: boolean
  trace: boolean
  mac: string
  /** Of NAT: ports of the host that lead to the guest, by the name of the rule. */
  forwardings: Record<string, string>
}

interface Slot {
  controller: string
  port: number
  device: number
  /** Of a medium, or a path of what is no hard disk. */
  medium: string
}

interface SnapshotState {
  uuid: string
  name: string
  /** The disks as they were. */
  slots: Slot[]
}

export interface MachineState {
  uuid: string
  name: string
  /** Of its settings. */
  file: string
  accessible: boolean
  state: 'poweroff' | 'running' | 'paused' | 'gurumeditation' | 'saved' | 'aborted'
  memory: number
  processors: number
  chipset: string
  description: string
  nics: Nic[]
  uart: { on: boolean; base: string; irq: string; mode: string }
  vrde: { on: boolean; ports: string; address: string }
  controllers: string[]
  slots: Slot[]
  snapshots: SnapshotState[]
  extraData: Record<string, string>
  guestProperties: Record<string, { value: string; flags: string }>
  /** Its process. */
  pid: number
  /** Until then nobody may change it, ms. */
  lockedUntil: number
  /** Whether its guest obeys its power button. */
  obeys: boolean
}

export interface Medium {
  uuid: string
  file: string
  /** The uuid of the one below it. */
  parent: string
}

/** Where the world is. */
export const home = (): string => {
  const directory = process.env.VBOX_USER_HOME
  if (directory === undefined) throw new Error('VBOX_USER_HOME is not set')
  return directory
}

const nothing = new Int32Array(new SharedArrayBuffer(4))

/** Without using the processor. */
const sleep = (ms: number): void => void Atomics.wait(nothing, 0, 0, ms)

/** Changes the state; one process at a time. */
export function change<T>(directory: string, alter: (state: State) => T): T {
  const lock = join(directory, 'state.lock')
  for (;;) {
    try {
      mkdirSync(lock)
      break
    } catch {
      sleep(2)
    }
  }
  try {
    const text = readFileSync(join(directory, 'state.json'), 'utf8')
    const state = JSON.parse(text) as State
    const result = alter(state)
    if (JSON.stringify(state) !== text) write(directory, state)
    return result
  } finally {
    rmdirSync(lock)
  }
}

export const read = (directory: string): State =>
  JSON.parse(readFileSync(join(directory, 'state.json'), 'utf8')) as State

export function write(directory: string, state: State): void {
  const temporary = join(directory, `state.json.${process.pid}`)
  writeFileSync(temporary, JSON.stringify(state))
  renameSync(temporary, join(directory, 'state.json'))
}

/** A command as it came; `end` is undefined for one that has not ended, or was killed. */
export interface Logged {
  readonly event: 'begin' | 'end'
  readonly pid: number
  readonly args: readonly string[]
  readonly code?: number
}

export function log(directory: string, line: Logged): void {
  appendFileSync(join(directory, 'commands.log'), `${JSON.stringify(line)}\n`)
}
