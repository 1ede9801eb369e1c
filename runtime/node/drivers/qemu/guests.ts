import { dirname, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { PortRef } from '../../../../src/host-agent.ts'
import { aborted, untilAborted } from '../../../../src/lib/async/abort.ts'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { withTimeout } from '../../../../src/lib/async/timeout.ts'
import { ApiError, conflict } from '../../../../src/lib/errors/api-error.ts'
import { diskSlots } from '../../../../src/model/kinds/machine-emulator.ts'
import type { ToolInfo } from '../../engine/images/qemu-img.ts'
import type { GuestControl, GuestProcess, GuestState, KindListener, StopReason } from '../../engine/nodes/kind.ts'
import { hasCarrier } from '../../engine/nodes/record.ts'
import { netdevId } from './command-line.ts'
import { type BlockIoError, DiskComplaints } from './disk-complaints.ts'
import { cdromId, diskId } from './drives.ts'
import { dropMemory, keepMemory, loadMemory, memoryIn } from './memory.ts'
import { Monitors } from './monitors.ts'
import { prioritise } from './priority.ts'
import type { MachineKindNode, MachineProperties } from './properties.ts'
import { type Qmp, QmpError, type QmpEvent } from './qmp.ts'
import { dropState, savedStateTag, saveState } from './saved-state.ts'
import type { MachineTimeouts } from './timeouts.ts'

interface MachineGuestsOptions {
  /** The directory of monitor sockets. */
  readonly runDirectory: string
  readonly listener: KindListener
  /** Limits the processor time of the emulator, percent of one processor; 0 lifts the limit. */
  readonly limit: (key: string, percent: number) => Promise<void>
  readonly timeouts: MachineTimeouts
  readonly minFreeMb: () => number
  /** Throws when a machine has opened a file that it may not read. */
  readonly requireOpened: (node: MachineKindNode, images: readonly ToolInfo[]) => Promise<void>
}

/** Events after which the state of the guest may have changed. */
const stateEvents: ReadonlySet<string> = new Set(
  'STOP RESUME SHUTDOWN SUSPEND SUSPEND_DISK WAKEUP GUEST_PANICKED BLOCK_IO_ERROR'.split(' '),
)

/** Controls running machines by their monitors. */
export class MachineGuests implements GuestControl<MachineProperties> {
  readonly #options: MachineGuestsOptions
  readonly #timeouts: MachineTimeouts
  readonly #monitors: Monitors
  readonly #complaints = new Map<string, DiskComplaints>()

  constructor(options: MachineGuestsOptions) {
    this.#options = options
    this.#timeouts = options.timeouts
    this.#monitors = new Monitors({
      runDirectory: options.runDirectory,
      adoptMs: this.#timeouts.adopt,
      onEvent: (node, event) => this.#onEvent(node, event),
    })
  }

  async begin(node: MachineKindNode, process: GuestProcess): Promise<void> {
    const { begin, restore } = this.#timeouts
    // The monitor does not answer before the memory is read.
    const ms = node.record.properties.on_close === 'save_vm_state' ? restore : begin
    await orConflict(async () => {
      try {
        await this.#release(node, process, await this.#monitors.hold(node, process, ms))
      } catch (error) {
        // A closed monitor means that the emulator ends. Its log is complete after the exit.
        const isClosed = error instanceof QmpError && error.code === 'closed'
        if (isClosed) await withTimeout(aborted(process.ended), this.#timeouts.command, () => {})
        throw error
      }
    })
  }

  /** About one of 3,000 emulators of version 7.2 never answers on its monitor. */
  startsAgain(error: unknown): boolean {
    const { cause } = error as Error
    return cause instanceof QmpError && (cause.code === 'silent' || cause.code === 'unreachable')
  }

  async adopt(node: MachineKindNode, process: GuestProcess): Promise<GuestState> {
    return orConflict(async () => {
      const qmp = await this.#monitors.hold(node, process, this.#timeouts.adopt)
      // The earlier service was killed during the start.
      const isStarting = ['prelaunch', 'inmigrate'].includes(await this.#statusOf(qmp))
      if (isStarting || memoryIn(node.directory) !== undefined) await this.#release(node, process, qmp)
      // Or after it saved the state, before the stop. The guest goes on, so the saved state is void.
      else if (await this.#hasSavedState(qmp)) await dropState(qmp)
      return this.state(node)
    })
  }

  async endGuest(node: MachineKindNode, { ended, skipGracePeriod }: GuestProcess, how: StopReason): Promise<void> {
    const { on_close } = node.record.properties
    if (on_close === 'power_off' || how === 'remove' || ended.aborted) return
    if (on_close === 'shutdown_signal' && how === 'close') return
    await orConflict(async () => {
      const qmp = await this.#monitors.of(node)
      if (on_close === 'save_vm_state') {
        await this.#execute(qmp, 'stop')
        return saveState(qmp)
      }
      await this.#pressPowerButton(qmp, skipGracePeriod)
    })
  }

  release(node: MachineKindNode): void {
    this.#monitors.release(node)
    this.#complaints.delete(node.key)
  }

  async state(node: MachineKindNode): Promise<GuestState> {
    // A command that comes while QEMU 7.2 ends makes it hang (monitor_cleanup): on a busy host that was one of ten.
    if (this.#monitors.isOff(node)) return { status: 'stopped', reason: null }
    const status = await this.#statusOf(await this.#monitors.of(node))
    switch (status) {
      case 'running':
        return { status: 'started', reason: null }
      case 'shutdown':
        return { status: 'stopped', reason: null }
      case 'io-error':
        return {
          status: 'suspended',
          reason: this.#complaintsOf(node).blocked ?? 'A disk cannot be written; make room, then resume the node',
        }
      case 'guest-panicked':
        return { status: 'suspended', reason: 'The guest panicked: reload the node' }
      case 'internal-error':
        return { status: 'suspended', reason: 'The accelerator failed (internal-error): reload the node' }
      default:
        return { status: 'suspended', reason: null }
    }
  }

  async suspend(node: MachineKindNode): Promise<void> {
    await orConflict(async () => this.#execute(await this.#monitors.of(node), 'stop'))
  }

  async resume(node: MachineKindNode): Promise<void> {
    await orConflict(async () => {
      const qmp = await this.#monitors.of(node)
      // A sleeping guest (ACPI S3) is woken up.
      const isAsleep = (await this.#settled(qmp)) === 'suspended'
      await this.#execute(qmp, isAsleep ? 'system_wakeup' : 'cont')
    })
  }

  async reset(node: MachineKindNode): Promise<void> {
    await orConflict(async () => {
      const qmp = await this.#monitors.of(node)
      const status = await this.#statusOf(qmp)
      await this.#execute(qmp, 'system_reset')
      const isDead = status === 'guest-panicked' || status === 'internal-error'
      if (isDead) await this.#execute(qmp, 'cont')
    })
  }

  async setCarrier(node: MachineKindNode, { adapter }: PortRef, isUp: boolean): Promise<void> {
    try {
      await this.#setLink(await this.#monitors.of(node), adapter, isUp)
    } catch (error) {
      // An adapter that was added after the start is not in the machine.
      if (isNotFound(error) || this.#monitors.hasEnded(node)) return
      const cable = isUp ? 'connected' : 'disconnected'
      this.#log(node, 'warning', `the cable of adapter ${adapter} could not be ${cable}: ${(error as Error).message}`)
    }
  }

  async withQuiescedGuest<T>(node: MachineKindNode, run: () => Promise<T>): Promise<T> {
    const qmp = await orConflict(() => this.#monitors.of(node))
    const isRunning = (await orConflict(() => this.#statusOf(qmp))) === 'running'
    // `stop` flushes the disks.
    if (isRunning) await orConflict(() => this.#execute(qmp, 'stop'))
    try {
      return await run()
    } finally {
      // The work is done, even if the machine does not continue.
      await this.#goOn(node, isRunning).catch(({ message }: Error) => this.#log(node, 'warning', message))
    }
  }

  /** A machine is kept with its memory, so all that it writes to has to be in its directory, and QEMU has to be able to save the state of all of its devices. */
  async requireKeepable(node: MachineKindNode): Promise<void> {
    await orConflict(async () => {
      const qmp = await this.#monitors.of(node)
      const status = await this.#settled(qmp)
      if (!['running', 'paused', 'postmigrate'].includes(status)) throw conflict(`its guest is in the state ${status}`)
      for (const { device, inserted } of await this.#execute<BlockNode[]>(qmp, 'query-block')) {
        if (inserted === undefined || inserted.ro || dirname(resolve(node.directory, inserted.file)) === node.directory)
          continue
        const slot = diskSlots.find((known) => diskId(known) === device)
        throw conflict(
          slot === undefined ? `${device} is not a disk of the project` : `linked_clone is off: ${slot} is an image`,
        )
      }
      const found = await this.#execute<{ 'blocked-reasons'?: string[] }>(qmp, 'query-migrate')
      const [reason] = found['blocked-reasons'] ?? []
      if (reason !== undefined) throw conflict(reason)
    })
  }

  async keepMemory(node: MachineKindNode, directory: string, signal: AbortSignal): Promise<number> {
    return orConflict(async () => {
      const qmp = await this.#monitors.of(node)
      // A paused machine is in this state when the service was killed after its memory was written. A `cont` must come before the next write.
      if ((await this.#settled(qmp)) === 'postmigrate') await this.#goOn(node, false)
      const { runDirectory, minFreeMb, timeouts } = this.#options
      const state = node.status === 'started' ? 'started' : 'suspended'
      return keepMemory(qmp, node, { runDirectory, directory, state, signal, minFreeMb, ms: timeouts.restore })
    })
  }

  dropMemory(node: MachineKindNode): Promise<void> {
    return dropMemory(node.directory)
  }

  /** Changes the medium of the CD-ROM drive of a running machine; null ejects it. 409. */
  async changeCdrom(node: MachineKindNode, path: string | null): Promise<void> {
    await orConflict(async () => {
      const qmp = await this.#monitors.of(node)
      const drive = { device: cdromId, force: true }
      try {
        if (path === null) await this.#execute(qmp, 'eject', drive)
        else await this.#execute(qmp, 'blockdev-change-medium', { ...drive, filename: path, format: 'raw' })
      } catch (error) {
        if (!isNotFound(error)) throw error
        if (path !== null) throw conflict(`cdrom_image: ${noDrive}`)
      }
    })
  }

  async limit(node: MachineKindNode, percent: number): Promise<void> {
    await this.#options.limit(node.key, percent).catch((error: unknown) => {
      this.#log(node, 'warning', `cpu_throttling: ${(error as Error).message}`)
    })
  }

  /** Completes the start of a paused machine: checks, priority and links, then `cont`. */
  async #release(node: MachineKindNode, { pid }: GuestProcess, qmp: Qmp): Promise<void> {
    const { adapters, cpu_throttling, process_priority } = node.record.properties
    const opened = await this.#execute<{ image: ToolInfo }[]>(qmp, 'query-named-block-nodes')
    await this.#options.requireOpened(
      node,
      opened.map(({ image }) => image),
    )
    const problem = prioritise(pid, process_priority)
    if (problem !== undefined) this.#log(node, 'warning', problem)
    const memory = memoryIn(node.directory)
    const { runDirectory, timeouts } = this.#options
    if ((await this.#statusOf(qmp)) === 'inmigrate') await loadMemory(qmp, node, { runDirectory, ms: timeouts.restore })
    const hasState = await this.#hasSavedState(qmp)
    const isRestored = hasState || memory !== undefined
    for (let adapter = 0; adapter < adapters; adapter++) {
      const isUp = hasCarrier(node.record, { adapter, port: 0 })
      // A restored guest has the links of the time of the save.
      if (!isUp || isRestored) await this.#setLink(qmp, adapter, isUp)
    }
    // The saved state is void when the guest writes to its disks again.
    if (hasState) await dropState(qmp)
    await dropMemory(node.directory)
    if (memory !== 'suspended') await this.#execute(qmp, 'cont')
    else this.#options.listener.changed(node.key)
    if (cpu_throttling > 0) await this.limit(node, cpu_throttling)
  }

  async #pressPowerButton(qmp: Qmp, skipGracePeriod: AbortSignal): Promise<void> {
    const { powerdown } = this.#timeouts
    // With -no-shutdown the emulator does not end with its guest, so the event counts.
    const over = new AbortController()
    const off = qmp.nextEvent(({ event }) => event === 'SHUTDOWN', powerdown, over.signal)
    off.catch(ignore('it is awaited below, unless a command fails first'))
    try {
      // A paused guest does not see its power button.
      if ((await this.#statusOf(qmp)) === 'paused') await this.#execute(qmp, 'cont')
      await this.#execute(qmp, 'system_powerdown')
      await untilAborted(off, skipGracePeriod).catch((error: unknown) => {
        if (!(error instanceof QmpError) || error.code !== 'timeout') return
        throw conflict(`the guest did not shut down within ${powerdown / 1000} s of its power button; it was ended`)
      })
    } finally {
      over.abort()
    }
  }

  #onEvent(node: MachineKindNode, event: QmpEvent): void {
    const complaints = this.#complaintsOf(node)
    if (event.event === 'BLOCK_IO_ERROR') {
      const message = complaints.add(event.data as unknown as BlockIoError)
      if (message !== undefined) this.#log(node, 'error', message)
    } else if (event.event === 'RESUME') complaints.blocked = undefined
    if (stateEvents.has(event.event)) this.#options.listener.changed(node.key)
  }

  #complaintsOf({ key }: MachineKindNode): DiskComplaints {
    const complaints = this.#complaints.get(key) ?? new DiskComplaints()
    this.#complaints.set(key, complaints)
    return complaints
  }

  #log({ key, record }: MachineKindNode, level: 'error' | 'warning', message: string): void {
    this.#options.listener.happened(key, { type: `log.${level}`, message: `${record.name}: ${message}` })
  }

  #execute<T>(qmp: Qmp, command: string, args: Record<string, unknown> = {}): Promise<T> {
    return qmp.execute<T>(command, args, this.#timeouts.command)
  }

  async #statusOf(qmp: Qmp): Promise<string> {
    return (await this.#execute<{ status: string }>(qmp, 'query-status')).status
  }

  /** The status after the end of a migration, if one is ending: `cont` is refused meanwhile. */
  async #settled(qmp: Qmp): Promise<string> {
    for (const until = Date.now() + this.#timeouts.command; ; await pause(settleMs)) {
      const status = await this.#statusOf(qmp)
      if (status !== 'finish-migrate' || Date.now() > until) return status
    }
  }

  /** Continues a machine that was paused while its memory was written, or leaves it paused: QEMU can pause it only after a `cont`. */
  async #goOn(node: MachineKindNode, isRunning: boolean): Promise<void> {
    const qmp = await this.#monitors.of(node)
    const status = await this.#settled(qmp)
    if (!isRunning && status !== 'postmigrate') return
    await Promise.all([this.#execute(qmp, 'cont'), isRunning ? undefined : this.#execute(qmp, 'stop')])
  }

  async #setLink(qmp: Qmp, adapter: number, up: boolean): Promise<void> {
    await this.#execute(qmp, 'set_link', { name: netdevId(adapter), up })
  }

  /** Whether the disks have a saved state, from which the machine was then started. */
  async #hasSavedState(qmp: Qmp): Promise<boolean> {
    const blocks = await this.#execute<BlockNode[]>(qmp, 'query-block')
    return blocks.some(({ inserted }) => inserted?.image?.snapshots?.some(({ name }) => name === savedStateTag))
  }
}

interface BlockNode {
  readonly device: string
  readonly inserted?: {
    readonly file: string
    readonly ro: boolean
    readonly image?: { readonly snapshots?: readonly { readonly name: string }[] }
  }
}

/** Interval of checks for the end of a migration, ms. */
const settleMs = 5

const noDrive = 'the machine runs without a CD-ROM drive; it has one after its next start, unless there is an hdc disk'

const isNotFound = (error: unknown): boolean => error instanceof QmpError && error.qmpClass === 'DeviceNotFound'

/** Runs monitor commands; a refusal or a timeout becomes 409. */
async function orConflict<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof ApiError || !(error instanceof QmpError)) throw error
    throw conflict(error.message, { cause: error })
  }
}
