import { ignore } from '../../../../src/lib/async/ignore.ts'
import { SerialQueue } from '../../../../src/lib/async/serial-queue.ts'
import { NetlinkError } from '../cable/netlink.ts'
import { type Panel, type Plug, priorities } from '../cable/panel.ts'
import { at, type Counters } from './core/counters.ts'
import type { PacketPath } from './core/path.ts'
import type { OpenPort } from './open-port.ts'

/** How long a link does not need the switch before the kernel takes its frames, ms: who changes several settings at once changes the way once. */
const quietMs = 100
/** The Ethernet header, which the kernel does not count. */
const headerBytes = 14
/** ENOENT, EEXIST and ENODEV: what is to be done is done, or the adapter is gone with its namespace. */
const doneErrors = [2, 17, 19]

/** A port whose adapter is plugged into a panel. */
interface Plugged extends Plug {
  readonly port: OpenPort
  /** The adapter that the kernel redirects to, whether it does so at present (`isOn`) or not; it is mutual. */
  other: Plugged | null
  isOn: boolean
  /** What was counted of the redirected frames. */
  seen: { frames: number; bytes: number }
  /** Whether no more of them can come. */
  isSettled: boolean
}

/**
 * The patch cables: links between adapters of one panel whose frames the kernel redirects from one to the other, past the packet path. It does so
 * while nothing is to be done with them: no impairment and no capture. `consider` is called after each change of that.
 */
export class Cables {
  readonly #plugged = new Map<OpenPort, Plugged>()
  readonly #waiting = new Map<OpenPort, NodeJS.Timeout>()
  readonly #serial = new SerialQueue()
  readonly #path: () => PacketPath
  readonly #counters: Counters
  readonly #log: (message: string) => void

  constructor(path: () => PacketPath, counters: Counters, log: (message: string) => void) {
    this.#path = path
    this.#counters = counters
    this.#log = log
  }

  /** The guest of the port has an adapter with this descriptor, perhaps in the panel. */
  plug(port: OpenPort, panel: Panel, descriptor: number): void {
    const plug = panel.plugOf(descriptor)
    if (plug === undefined) return
    const seen = { frames: 0, bytes: 0 }
    this.#plugged.set(port, { ...plug, port, other: null, isOn: false, seen, isSettled: true })
  }

  /** The guest ends, or has ended. Does not reject: whatever the kernel says, the adapter is forgotten. */
  unplug(port: OpenPort): Promise<void> {
    return this.#serial.run(async () => {
      const it = this.#plugged.get(port)
      if (it === undefined) return
      await this.#part(it)
      this.#plugged.delete(port)
    })
  }

  /** Who has the frames of the port. */
  wayOf(port: OpenPort): 'kernel' | 'relay' {
    return this.#plugged.get(port)?.isOn === true ? 'kernel' : 'relay'
  }

  /** Has the switch take the frames of the port at once if it has to; otherwise the kernel, soon. */
  consider(port: OpenPort): Promise<void> {
    if (!this.#plugged.has(port)) return Promise.resolve()
    return this.#serial.run(async () => {
      const it = this.#plugged.get(port)
      if (it === undefined) return
      if (it.isOn && (!isFree(port) || port.joined !== it.other?.port)) await this.#turnOff(it)
      if (!it.isOn && isFree(port)) this.#wait(port)
    })
  }

  /** Counts what the kernel has redirected from and to the ports. */
  read(ports: Iterable<OpenPort>): Promise<void> | undefined {
    const all = new Set<Plugged>()
    for (const port of ports) {
      const it = this.#plugged.get(port)
      for (const end of [it, it?.other]) if (end != null && !end.isSettled) all.add(end)
    }
    if (all.size === 0) return undefined
    return this.#serial.run(async () => {
      for (const it of all) await this.#count(it)
    })
  }

  #wait(port: OpenPort): void {
    clearTimeout(this.#waiting.get(port))
    const begin = () => {
      this.#waiting.delete(port)
      void this.#serial.run(() => this.#turnOn(port)).catch(ignore('the switch goes on with its frames'))
    }
    this.#waiting.set(port, setTimeout(begin, quietMs).unref())
  }

  async #turnOn(port: OpenPort): Promise<void> {
    const [it, other] = [this.#plugged.get(port), port.joined && this.#plugged.get(port.joined)]
    if (it === undefined || other == null || it.isOn || it.panel !== other.panel || !isFree(port)) return
    // Frames that are delayed come first.
    if (!(await this.#path().isPlain([port.row, other.port.row]))) return this.#wait(port)
    try {
      if (it.other !== other) {
        for (const end of [it, other]) await this.#part(end)
        for (const [from, to] of [
          [it, other],
          [other, it],
        ] as const) {
          // One that could not be ended: the kernel would keep both, and take the older one.
          await unlessDone(from.panel.leave(from.outer, priorities.throughKernel))
          await from.panel.redirect(from.outer, priorities.throughKernel, to.outer)
          Object.assign(from, { other: to, seen: { frames: 0, bytes: 0 } })
        }
      }
      // The kernel takes each frame by one of its two redirections.
      for (const end of [it, other]) {
        Object.assign(end, { isOn: true, isSettled: false })
        await unlessDone(end.panel.leave(end.outer, priorities.throughSwitch))
      }
    } catch (error) {
      this.#log(`a link stays with the switch: ${(error as Error).message}`)
      await this.#part(it)
    }
  }

  async #turnOff(it: Plugged): Promise<void> {
    for (const end of [it, it.other]) if (end !== null) await this.#giveBack(end)
  }

  /** Gives the frames of an adapter back to the switch. */
  async #giveBack(end: Plugged): Promise<void> {
    if (!end.isOn) return
    await unlessDone(end.panel.redirect(end.outer, priorities.throughSwitch, end.tap))
    end.isOn = false
  }

  /** Ends the redirections between an adapter and the other one, as far as they are made. A failure is logged, and the rest done. */
  async #part(it: Plugged): Promise<void> {
    const { other } = it
    if (other === null) return
    const failed = (error: Error) => this.#log(`a redirection between adapters stays: ${error.message}`)
    for (const end of [it, other]) await this.#giveBack(end).catch(failed)
    for (const end of [it, other]) {
      await this.#count(end)
      await unlessDone(end.panel.leave(end.outer, priorities.throughKernel)).catch(failed)
      end.other = null
    }
  }

  async #count(it: Plugged): Promise<void> {
    const { port, other, isOn, seen } = it
    if (other === null || it.isSettled) return
    const now = await it.panel.redirected(it.outer, priorities.throughKernel).catch(ignore('the adapter is gone'))
    it.isSettled = !isOn
    if (now == null) return
    const frames = now.frames - seen.frames
    const bytes = now.bytes - seen.bytes + headerBytes * frames
    it.seen = now
    this.#counters.add(port.row, at.kernelOutFrames, frames)
    this.#counters.add(port.row, at.kernelOutBytes, bytes)
    this.#counters.add(other.port.row, at.kernelInFrames, frames)
    this.#counters.add(other.port.row, at.kernelInBytes, bytes)
  }
}

/** Whether nothing is to be done with the frames of a port and of the one that it is joined to. */
const isFree = (port: OpenPort): boolean =>
  port.joined !== null && [port, port.joined].every(({ isImpaired, isCaptured }) => !isImpaired && !isCaptured)

const unlessDone = (change: Promise<void>): Promise<void> =>
  change.catch((error: unknown) => {
    if (!(error instanceof NetlinkError) || !doneErrors.includes(error.errno)) throw error
  })
