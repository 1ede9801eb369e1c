import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { GuestProcess } from '../../engine/nodes/kind.ts'
import { socketPath } from '../../os/system/socket-path.ts'
import { monitorName } from './monitor-path.ts'
import type { MachineKindNode } from './properties.ts'
import { Qmp, QmpError, type QmpEvent } from './qmp.ts'

interface MonitorsOptions {
  /** The directory of the sockets. */
  readonly runDirectory: string
  /** Timeout of a reconnect, ms. */
  readonly adoptMs: number
  readonly onEvent: (node: MachineKindNode, event: QmpEvent) => void
}

interface Running {
  readonly process: GuestProcess
  qmp: Qmp | undefined
  isOff: boolean
}

/** The monitor connections of running machines. */
export class Monitors {
  readonly #options: MonitorsOptions
  readonly #running = new Map<string, Running>()

  constructor(options: MonitorsOptions) {
    this.#options = options
  }

  /** Connects to the monitor of a process. The machine counts as running until `release`, also when this fails. */
  async hold(node: MachineKindNode, process: GuestProcess, ms: number): Promise<Qmp> {
    this.#running.get(node.key)?.qmp?.close()
    const running: Running = { process, qmp: undefined, isOff: false }
    this.#running.set(node.key, running)
    return this.#connect(node, running, ms)
  }

  /** The monitor of a machine; a lost connection is made again. */
  async of(node: MachineKindNode): Promise<Qmp> {
    const running = this.#running.get(node.key)
    if (running === undefined) throw new QmpError('closed', 'The machine is not running')
    return running.qmp?.isOpen === true ? running.qmp : this.#connect(node, running, this.#options.adoptMs)
  }

  /** Whether the process of a machine has ended. */
  hasEnded({ key }: MachineKindNode): boolean {
    return this.#running.get(key)?.process.ended.aborted ?? true
  }

  /** Whether the emulator has said that the machine is off: it ends, or is ended. */
  isOff({ key }: MachineKindNode): boolean {
    return this.#running.get(key)?.isOff ?? false
  }

  release({ key, record }: MachineKindNode): void {
    this.#running.get(key)?.qmp?.close()
    this.#running.delete(key)
    // A killed emulator leaves its socket behind.
    rmSync(join(this.#options.runDirectory, monitorName(record.node_id)), { force: true })
  }

  async #connect(node: MachineKindNode, running: Running, ms: number): Promise<Qmp> {
    const { path, release } = socketPath(this.#options.runDirectory, monitorName(node.record.node_id))
    // The signal cancels the wait for an emulator that has ended, which would delay the event of its end.
    const qmp = await Qmp.connect({ path, ms, signal: running.process.ended }).finally(release)
    running.qmp?.close()
    running.qmp = qmp
    qmp.onEvent((event) => {
      if (event.event === 'SHUTDOWN') running.isOff = true
      this.#options.onEvent(node, event)
    })
    return qmp
  }
}
