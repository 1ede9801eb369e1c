import { aborted } from '../../../../src/async/abort.ts'
import { ignore } from '../../../../src/async/ignore.ts'
import { withTimeout } from '../../../../src/async/timeout.ts'
import { ApiError, conflict } from '../../../../src/errors/api-error.ts'
import type { PortRef } from '../../../../src/host-agent.ts'
import type { EventPayload } from '../../../../src/model/event.ts'
import { hasCarrier } from '../../nodes/record.ts'
import type { GuestControl, GuestProcess, GuestState, KindListener, StopReason } from '../kind.ts'
import type { MachineTimeouts } from './bounds.ts'
import { netdevId } from './command-line.ts'
import { DiskComplaints } from './disk-complaints.ts'
import { cdromId } from './drives.ts'
import { Monitors } from './monitors.ts'
import { prioritise } from './priority.ts'
import type { MachineKindNode, MachineProperties } from './properties.ts'
import type { ToolInfo } from './qemu-img.ts'
import { type Qmp, QmpError, type QmpEvent } from './qmp.ts'
import { dropState, savedStateTag, saveState } from './saved-state.ts'

export interface MachineGuestsOptions {
  /** Where the sockets of monitors are. */
  readonly runDirectory: string
  readonly listener: KindListener
  /** Limits the processor time of the emulator, percent of one processor; 0 lifts the limit. */
  readonly limit: (key: string, percent: number) => Promise<void>
  readonly timeouts: MachineTimeouts
  /** Throws when a machine has opened what it may not read. */
  readonly requireOpened: (node: MachineKindNode, images: readonly ToolInfo[]) => Promise<void>
}

/** After these the guest may be in another state. */
const telling: ReadonlySet<string> = new Set(
  'STOP RESUME SHUTDOWN SUSPEND SUSPEND_DISK WAKEUP GUEST_PANICKED BLOCK_IO_ERROR'.split(' '),
)

/** Running machines, held by their monitors. */
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
      heard: (node, event) => this.#heard(node, event),
    })
  }

  async begin(node: MachineKindNode, process: GuestProcess): Promise<void> {
    const { begin, restore } = this.#timeouts
    // Its monitor is silent until its memory has been read.
    const ms = node.record.properties.on_close === 'save_vm_state' ? restore : begin
    await obeying(async () => {
      try {
        await this.#release(node, process, await this.#monitors.hold(node, process, ms))
      } catch (error) {
        // One that has closed its monitor is about to end; with its end comes what it said.
        if (error instanceof QmpError && error.code === 'closed') await exitOfEmulator(process, this.#timeouts.command)
        throw error
      }
    })
  }

  async adopt(node: MachineKindNode, process: GuestProcess): Promise<GuestState> {
    return obeying(async () => {
      const qmp = await this.#monitors.hold(node, process, this.#timeouts.adopt)
      // The service before us was killed while it started this one.
      if ((await this.#statusOf(qmp)) === 'prelaunch') await this.#release(node, process, qmp)
      // Or when it had just saved it, to stop it: it can go on, so it must not come back to that.
      else if (await this.#hasSavedState(qmp)) await dropState(qmp)
      return this.state(node)
    })
  }

  async end(node: MachineKindNode, { ended, expedited }: GuestProcess, how: StopReason): Promise<void> {
    const { on_close } = node.record.properties
    if (on_close === 'power_off' || how === 'remove' || ended.aborted) return
    if (on_close === 'shutdown_signal' && how === 'close') return
    await obeying(async () => {
      const qmp = await this.#monitors.of(node)
      if (on_close === 'save_vm_state') {
        await this.#execute(qmp, 'stop')
        return saveState(qmp)
      }
      await this.#pressPowerButton(qmp, expedited)
    })
  }

  ended(node: MachineKindNode): void {
    this.#monitors.release(node)
    this.#complaints.delete(node.key)
  }

  async state(node: MachineKindNode): Promise<GuestState> {
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
        return { status: 'suspended', reason: 'The processor gave up on the guest: reload the node' }
      default:
        return { status: 'suspended', reason: null }
    }
  }

  async suspend(node: MachineKindNode): Promise<void> {
    await obeying(async () => this.#execute(await this.#monitors.of(node), 'stop'))
  }

  async resume(node: MachineKindNode): Promise<void> {
    await obeying(async () => {
      const qmp = await this.#monitors.of(node)
      // A guest that put itself to sleep is woken as by its keyboard.
      const isAsleep = (await this.#statusOf(qmp)) === 'suspended'
      await this.#execute(qmp, isAsleep ? 'system_wakeup' : 'cont')
    })
  }

  async reset(node: MachineKindNode): Promise<void> {
    await obeying(async () => {
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
      // An adapter that came after the start is not in the machine yet.
      if (isNotFound(error) || this.#monitors.hasEnded(node)) return
      const message = `The cable of adapter ${adapter} cannot be shown to the guest: ${(error as Error).message}`
      this.#tell(node, 'log.warning', message)
    }
  }

  async whileStill<T>(node: MachineKindNode, run: () => Promise<T>): Promise<T> {
    const qmp = await obeying(() => this.#monitors.of(node))
    const isRunning = (await obeying(() => this.#statusOf(qmp))) === 'running'
    // It writes what it has to the disks first.
    if (isRunning) await obeying(() => this.#execute(qmp, 'stop'))
    try {
      return await run()
    } finally {
      // What was done is done, whether it runs on or not.
      if (isRunning) await this.#execute(qmp, 'cont').catch((error: Error) => this.#warn(node, error))
    }
  }

  /** Puts an image into the CD-ROM drive of a machine that runs, or (null) takes it out; 409. */
  async changeCdrom(node: MachineKindNode, path: string | null): Promise<void> {
    await obeying(async () => {
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
      this.#tell(node, 'log.warning', `cpu_throttling: ${(error as Error).message}`)
    })
  }

  /** Lets a machine go that was started standing still: everything is as it shall be when it looks around. */
  async #release(node: MachineKindNode, { pid }: GuestProcess, qmp: Qmp): Promise<void> {
    const { adapters, cpu_throttling, process_priority } = node.record.properties
    const opened = await this.#execute<{ image: ToolInfo }[]>(qmp, 'query-named-block-nodes')
    await this.#options.requireOpened(
      node,
      opened.map(({ image }) => image),
    )
    const complaint = prioritise(pid, process_priority)
    if (complaint !== undefined) this.#tell(node, 'log.warning', complaint)
    const isRestored = await this.#hasSavedState(qmp)
    for (let adapter = 0; adapter < adapters; adapter++) {
      const isUp = hasCarrier(node.record, { adapter, port: 0 })
      // A saved guest has its cables as they were then.
      if (!isUp || isRestored) await this.#setLink(qmp, adapter, isUp)
    }
    // It must not be gone back to once the guest writes to its disks again.
    if (isRestored) await dropState(qmp)
    await this.#execute(qmp, 'cont')
    if (cpu_throttling > 0) await this.limit(node, cpu_throttling)
  }

  async #pressPowerButton(qmp: Qmp, expedited: AbortSignal): Promise<void> {
    const { powerdown } = this.#timeouts
    // With -no-shutdown the emulator stays when its guest has gone.
    const off = qmp.nextEvent(({ event }) => event === 'SHUTDOWN', powerdown)
    off.catch(ignore('it is awaited below, unless a command fails first'))
    // One that stands still would not hear of it.
    if ((await this.#statusOf(qmp)) === 'paused') await this.#execute(qmp, 'cont')
    await this.#execute(qmp, 'system_powerdown')
    await Promise.race([off, aborted(expedited)]).catch((error: unknown) => {
      if (!(error instanceof QmpError) || error.code !== 'timeout') return
      throw conflict(`the guest did not shut down within ${powerdown / 1000} s of its power button; it was ended`)
    })
  }

  #heard(node: MachineKindNode, event: QmpEvent): void {
    const complaints = this.#complaintsOf(node)
    if (event.event === 'BLOCK_IO_ERROR') {
      const news = complaints.hear(event.data)
      if (news !== undefined) this.#tell(node, 'log.error', news)
    } else if (event.event === 'RESUME') complaints.blocked = undefined
    const name = event.event === 'OTHER' ? event.name : event.event
    if (telling.has(name)) this.#options.listener.changed(node.key)
  }

  #complaintsOf({ key }: MachineKindNode): DiskComplaints {
    const complaints = this.#complaints.get(key) ?? new DiskComplaints()
    this.#complaints.set(key, complaints)
    return complaints
  }

  #warn(node: MachineKindNode, { message }: Error): void {
    this.#tell(node, 'log.warning', message)
  }

  #tell(node: MachineKindNode, type: EventPayload['type'] & `log.${string}`, message: string): void {
    this.#options.listener.happened(node.key, { type, message: `${node.record.name}: ${message}` })
  }

  #execute<T>(qmp: Qmp, command: string, args: Record<string, unknown> = {}): Promise<T> {
    return qmp.execute<T>(command, args, this.#timeouts.command)
  }

  async #statusOf(qmp: Qmp): Promise<string> {
    return (await this.#execute<{ status: string }>(qmp, 'query-status')).status
  }

  async #setLink(qmp: Qmp, adapter: number, up: boolean): Promise<void> {
    await this.#execute(qmp, 'set_link', { name: netdevId(adapter), up })
  }

  /** Whether a state is in the disks of the machine: it was started from it then. */
  async #hasSavedState(qmp: Qmp): Promise<boolean> {
    const blocks = await this.#execute<BlockNode[]>(qmp, 'query-block')
    return blocks.some(({ inserted }) => inserted?.image?.snapshots?.some(({ name }) => name === savedStateTag))
  }
}

interface BlockNode {
  readonly inserted?: { readonly image?: { readonly snapshots?: readonly { readonly name: string }[] } }
}

/** Resolves when the process has ended, or after the bound. */
const exitOfEmulator = ({ ended }: GuestProcess, ms: number): Promise<void> => withTimeout(aborted(ended), ms, () => {})

const noDrive =
  'the machine runs without a CD-ROM drive; it has one after its next start, unless hdc has the place of that'

const isNotFound = (error: unknown): boolean => error instanceof QmpError && error.qmpClass === 'DeviceNotFound'

/** Runs what the monitor is asked to do; a monitor that refuses or hangs is told as 409. */
async function obeying<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof ApiError || !(error instanceof QmpError)) throw error
    throw conflict(error.message, { cause: error })
  }
}
