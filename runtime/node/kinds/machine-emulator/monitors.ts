import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { socketPath } from '../../system/socket-path.ts'
import type { GuestProcess } from '../kind.ts'
import { monitorName } from './monitor-path.ts'
import type { MachineKindNode } from './properties.ts'
import { Qmp, QmpError, type QmpEvent } from './qmp.ts'

export interface MonitorsOptions {
  /** Where the sockets are. */
  readonly runDirectory: string
  /** How long a monitor that was lost may take to answer again, ms. */
  readonly adoptMs: number
  readonly heard: (node: MachineKindNode, event: QmpEvent) => void
}

interface Held {
  readonly process: GuestProcess
  qmp: Qmp | undefined
}

/** The monitors of the machines that run. */
export class Monitors {
  readonly #options: MonitorsOptions
  readonly #held = new Map<string, Held>()

  constructor(options: MonitorsOptions) {
    this.#options = options
  }

  /** Takes the monitor of a process; the hold on it stays until `release`, also when it does not answer now. */
  async hold(node: MachineKindNode, process: GuestProcess, ms: number): Promise<Qmp> {
    this.#held.get(node.key)?.qmp?.close()
    const held: Held = { process, qmp: undefined }
    this.#held.set(node.key, held)
    return this.#connect(node, held, ms)
  }

  /** The monitor of a machine, taken again when it was lost. */
  async of(node: MachineKindNode): Promise<Qmp> {
    const held = this.#held.get(node.key)
    if (held === undefined) throw new QmpError('closed', 'The machine does not run')
    return held.qmp?.isOpen === true ? held.qmp : this.#connect(node, held, this.#options.adoptMs)
  }

  /** Whether the process of a machine is known to have ended, so that nothing can be expected of it. */
  hasEnded({ key }: MachineKindNode): boolean {
    return this.#held.get(key)?.process.ended.aborted ?? true
  }

  release({ key, record }: MachineKindNode): void {
    this.#held.get(key)?.qmp?.close()
    this.#held.delete(key)
    // Left behind by an emulator that was killed.
    rmSync(join(this.#options.runDirectory, monitorName(record.node_id)), { force: true })
  }

  async #connect(node: MachineKindNode, held: Held, ms: number): Promise<Qmp> {
    const { path, release } = socketPath(this.#options.runDirectory, monitorName(node.record.node_id))
    // An emulator that has ended is not waited for: whoever holds its node would keep the news from being told.
    const qmp = await Qmp.connect({ path, ms, signal: held.process.ended }).finally(release)
    held.qmp?.close()
    held.qmp = qmp
    qmp.onEvent((event) => this.#options.heard(node, event))
    return qmp
  }
}
