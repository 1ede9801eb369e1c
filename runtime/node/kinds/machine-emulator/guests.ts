import { rmSync } from 'node:fs'
import { ApiError, conflict } from '../../../../src/errors.ts'
import type { PortRef } from '../../../../src/host-agent.ts'
import type { Happening } from '../../../../src/model/event.ts'
import { hasCarrier } from '../../nodes/record.ts'
import type { GuestProcess, GuestState, Guests, KindListener, KindNode } from '../kind.ts'
import { netdevId } from './command-line.ts'
import { cdromId } from './drives.ts'
import { monitorPath } from './monitor-path.ts'
import { prioritise } from './priority.ts'
import { propertiesOf } from './properties.ts'
import { type BlockIoError, Qmp, QmpError, type QmpEvent } from './qmp.ts'
import { dropState, savedStateTag, saveState } from './saved-state.ts'

/** A busy host may take so long to start an emulator, ms. */
const beginMs = 30_000
const adoptMs = 5000
const commandMs = 10_000
/** How long a guest may take to shut itself down before it is ended, ms. */
const powerdownMs = 120_000

export interface MachineGuestsOptions {
  /** Where the sockets of monitors are. */
  readonly runDirectory: string
  readonly listener: KindListener
  /** Limits the processor time of the emulator, percent of one processor; 0 lifts the limit. */
  readonly limit: (key: string, percent: number) => Promise<void>
}

/** After these the guest may be in another state. */
const telling: ReadonlySet<string> = new Set(
  'STOP RESUME SHUTDOWN SUSPEND SUSPEND_DISK WAKEUP GUEST_PANICKED BLOCK_IO_ERROR'.split(' '),
)

interface Held {
  readonly qmp: Qmp
  /** Why it stands still, when a disk made it. */
  blocked: string | undefined
}

/** Running machines, held by their monitors. */
export class MachineGuests implements Guests {
  readonly #options: MachineGuestsOptions
  readonly #held = new Map<string, Held>()

  constructor(options: MachineGuestsOptions) {
    this.#options = options
  }

  async begin(node: KindNode, process: GuestProcess): Promise<void> {
    await obeying(async () => {
      const { qmp } = await this.#hold(node, beginMs, process.ended)
      await this.#release(node, process, qmp)
    })
  }

  async adopt(node: KindNode, process: GuestProcess): Promise<GuestState> {
    return obeying(async () => {
      const { qmp } = await this.#hold(node, adoptMs, process.ended)
      // The service before us was killed while it started this one.
      if ((await statusOf(qmp)) === 'prelaunch') await this.#release(node, process, qmp)
      return this.state(node)
    })
  }

  async end(node: KindNode, { ended }: GuestProcess, { isClosing }: { readonly isClosing: boolean }): Promise<void> {
    const { on_close } = propertiesOf(node)
    if (on_close === 'power_off' || (on_close === 'shutdown_signal' && isClosing) || ended.aborted) return
    await obeying(async () => {
      const qmp = await this.#qmp(node)
      if (on_close === 'save_vm_state') {
        await qmp.execute('stop', {}, commandMs)
        return saveState(qmp)
      }
      // One that stands still would not hear of it.
      if ((await statusOf(qmp)) === 'paused') await qmp.execute('cont', {}, commandMs)
      await qmp.execute('system_powerdown', {}, commandMs)
      if (await hasEnded(ended, powerdownMs)) return
      throw conflict(`the guest did not shut down within ${powerdownMs / 1000} s of its power button; it was ended`)
    })
  }

  ended({ key, record }: KindNode): void {
    this.#held.get(key)?.qmp.close()
    this.#held.delete(key)
    // Left behind by an emulator that was killed.
    rmSync(monitorPath(this.#options.runDirectory, record.node_id), { force: true })
  }

  async state(node: KindNode): Promise<GuestState> {
    const status = await statusOf(await this.#qmp(node))
    switch (status) {
      case 'running':
        return { status: 'started', reason: null }
      case 'shutdown':
        return { status: 'stopped', reason: null }
      case 'io-error':
        return { status: 'suspended', reason: this.#held.get(node.key)?.blocked ?? 'A disk cannot be written' }
      case 'guest-panicked':
        return { status: 'suspended', reason: 'The guest panicked: reload the node' }
      case 'internal-error':
        return { status: 'suspended', reason: 'The processor gave up on the guest: reload the node' }
      default:
        return { status: 'suspended', reason: null }
    }
  }

  async suspend(node: KindNode): Promise<void> {
    await obeying(async () => (await this.#qmp(node)).execute('stop', {}, commandMs))
  }

  async resume(node: KindNode): Promise<void> {
    await obeying(async () => {
      const qmp = await this.#qmp(node)
      // A guest that put itself to sleep is woken as by its keyboard.
      const isAsleep = (await statusOf(qmp)) === 'suspended'
      await qmp.execute(isAsleep ? 'system_wakeup' : 'cont', {}, commandMs)
    })
  }

  async reset(node: KindNode): Promise<void> {
    await obeying(async () => {
      const qmp = await this.#qmp(node)
      const status = await statusOf(qmp)
      await qmp.execute('system_reset', {}, commandMs)
      const isDead = status === 'guest-panicked' || status === 'internal-error'
      if (isDead) await qmp.execute('cont', {}, commandMs)
    })
  }

  async setCarrier(node: KindNode, { adapter }: PortRef, isUp: boolean): Promise<void> {
    try {
      await setLink(await this.#qmp(node), adapter, isUp)
    } catch (error) {
      // An adapter that came after the start is not in the machine yet.
      if (error instanceof QmpError && error.qmpClass === 'DeviceNotFound') return
      const message = `The cable of adapter ${adapter} cannot be shown to the guest: ${(error as Error).message}`
      this.#tell(node, 'log.warning', message)
    }
  }

  async whileStill<T>(node: KindNode, run: () => Promise<T>): Promise<T> {
    const qmp = await obeying(() => this.#qmp(node))
    const isRunning = (await obeying(() => statusOf(qmp))) === 'running'
    // It writes what it has to the disks first.
    if (isRunning) await obeying(() => qmp.execute('stop', {}, commandMs))
    try {
      return await run()
    } finally {
      if (isRunning) await obeying(() => qmp.execute('cont', {}, commandMs))
    }
  }

  /** Puts an image into the CD-ROM drive of a machine that runs, or (null) takes it out; 409. */
  async changeCdrom(node: KindNode, path: string | null): Promise<void> {
    await obeying(async () => {
      const qmp = await this.#qmp(node)
      const drive = { device: cdromId, force: true }
      if (path === null) return qmp.execute('eject', drive, commandMs)
      return qmp.execute('blockdev-change-medium', { ...drive, filename: path, format: 'raw' }, commandMs)
    })
  }

  async limit(node: KindNode, percent: number): Promise<void> {
    await this.#options.limit(node.key, percent).catch((error: unknown) => {
      this.#tell(node, 'log.warning', `cpu_throttling: ${(error as Error).message}`)
    })
  }

  /** Lets a machine go that was started standing still: everything is as it shall be when it looks around. */
  async #release(node: KindNode, { pid }: GuestProcess, qmp: Qmp): Promise<void> {
    const { adapters, cpu_throttling, process_priority } = propertiesOf(node)
    const complaint = prioritise(pid, process_priority)
    if (complaint !== undefined) this.#tell(node, 'log.warning', complaint)
    const isRestored = await hasSavedState(qmp)
    for (let adapter = 0; adapter < adapters; adapter++) {
      const isUp = hasCarrier(node.record, { adapter, port: 0 })
      // A saved guest has its cables as they were then.
      if (!isUp || isRestored) await setLink(qmp, adapter, isUp)
    }
    // It must not be gone back to once the guest writes to its disks again.
    if (isRestored) await dropState(qmp)
    await qmp.execute('cont', {}, commandMs)
    if (cpu_throttling > 0) await this.limit(node, cpu_throttling)
  }

  async #qmp(node: KindNode): Promise<Qmp> {
    const held = this.#held.get(node.key)
    if (held?.qmp.isOpen === true) return held.qmp
    return (await this.#hold(node, adoptMs)).qmp
  }

  async #hold(node: KindNode, ms: number, signal?: AbortSignal): Promise<Held> {
    const path = monitorPath(this.#options.runDirectory, node.record.node_id)
    const qmp = await Qmp.connect({ path, ms, ...(signal !== undefined && { signal }) })
    const held: Held = { qmp, blocked: undefined }
    this.#held.get(node.key)?.qmp.close()
    this.#held.set(node.key, held)
    qmp.onEvent((event) => this.#heard(node, held, event))
    return held
  }

  #heard(node: KindNode, held: Held, event: QmpEvent): void {
    if (event.event === 'BLOCK_IO_ERROR') this.#diskFailed(node, held, event.data)
    else if (event.event === 'RESUME') held.blocked = undefined
    const name = event.event === 'OTHER' ? event.name : event.event
    if (telling.has(name)) this.#options.listener.changed(node.key)
  }

  #diskFailed(node: KindNode, held: Held, { device, operation, action, nospace, reason }: BlockIoError): void {
    const disk = device.replace(/^pb-/, '')
    const why = nospace === true ? 'the disk of the host is full' : reason
    const what = `${disk} cannot be ${operation === 'read' ? 'read' : 'written'}: ${why}`
    const isNews = held.blocked === undefined
    if (action === 'stop') held.blocked = `${what}; make room, then resume the node`
    if (isNews) this.#tell(node, 'log.error', action === 'stop' ? `${what}; the machine is paused` : what)
  }

  #tell(node: KindNode, type: Happening['type'] & `log.${string}`, message: string): void {
    this.#options.listener.happened(node.key, { type, message: `${node.record.name}: ${message}` })
  }
}

const statusOf = async (qmp: Qmp): Promise<string> =>
  (await qmp.execute<{ status: string }>('query-status', {}, commandMs)).status

const setLink = (qmp: Qmp, adapter: number, up: boolean): Promise<unknown> =>
  qmp.execute('set_link', { name: netdevId(adapter), up }, commandMs)

/** Runs what the monitor is asked to do; a monitor that refuses or hangs is told as 409. */
async function obeying<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof ApiError || !(error instanceof QmpError)) throw error
    throw conflict(error.message, { cause: error })
  }
}

async function hasEnded(ended: AbortSignal, ms: number): Promise<boolean> {
  if (ended.aborted) return true
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms)
    ended.addEventListener(
      'abort',
      () => {
        clearTimeout(timer)
        resolve(true)
      },
      { once: true },
    )
  })
}

interface BlockNode {
  readonly inserted?: { readonly image?: { readonly snapshots?: readonly { readonly name: string }[] } }
}

/** Whether a state is in the disks of the machine: it was started from it then. */
async function hasSavedState(qmp: Qmp): Promise<boolean> {
  const blocks = await qmp.execute<BlockNode[]>('query-block', {}, commandMs)
  return blocks.some(({ inserted }) => inserted?.image?.snapshots?.some(({ name }) => name === savedStateTag))
}
