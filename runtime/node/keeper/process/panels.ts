import { once } from 'node:events'
import { closeSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { Panel } from '../../dataplane/cable/panel.ts'
import { startProgram } from '../../os/programs/start.ts'
import { loadLibc } from '../../os/system/libc.ts'
import { signalGroup } from '../../os/system/signal-group.ts'
import type { ProcessSpec } from '../protocol/protocol.ts'
import { DescriptorChannel } from './handed-descriptors.ts'

type PanelSpec = NonNullable<ProcessSpec['panel']>

/** Time that a program has to make a panel, and time after which one that failed is tried again, ms. */
const [longestMs, againMs] = [10_000, 60_000]

/** The panels of the keeper: one for each program that makes one, usually one in all. They are gone when the keeper ends. */
export class Panels {
  readonly #panels = new Map<string, Promise<Panel | undefined>>()
  readonly #log: (message: string) => void

  constructor(log: (message: string) => void) {
    this.#log = log
  }

  /** The panel of the program; undefined if this host cannot have one at present: the switch has the frames then. */
  async open(spec: PanelSpec): Promise<Panel | undefined> {
    // For measurements, and for kernels with faults in it.
    if (process.env.PATCHBAY_CABLES === 'off') return undefined
    const key = JSON.stringify(spec)
    const known = this.#panels.get(key)
    if (known !== undefined) return known
    const made = make(spec).catch((error: Error) => {
      this.#log(`no patch cables at present, the switch has the frames: ${error.message}`)
      // It may have been for a moment: the limit of namespaces, or no memory.
      setTimeout(() => this.#panels.delete(key), againMs).unref()
      return undefined
    })
    this.#panels.set(key, made)
    return made
  }
}

async function make({ command, args }: PanelSpec): Promise<Panel> {
  const channel = DescriptorChannel.open()
  let handed = new Map<string, number>()
  try {
    const stdio = ['ignore' as const, 'ignore' as const, 'pipe' as const, 'ignore' as const, channel.theirs]
    const child = startProgram(command, args, { detached: true, stdio })
    let isLate = false
    // With newuidmap and what else it has started, which would hold its output open.
    const late = setTimeout(() => {
      isLate = true
      if (child.pid !== undefined) signalGroup(child.pid, 'SIGKILL')
    }, longestMs)
    const ended = Promise.all([child.stderr === null ? '' : text(child.stderr), once(child, 'close')])
    const [said] = await ended.finally(() => clearTimeout(late))
    if (isLate) throw new Error(`its program took longer than ${longestMs / 1000} s`)
    handed = channel.take()
    const [user, net, netlink] = ['user', 'net', 'netlink'].map((name) => handed.get(name))
    if (user === undefined || net === undefined || netlink === undefined)
      throw new Error(said.trim().slice(-500) || 'its program ended early')
    handed = new Map()
    return new Panel(loadLibc(), { user, net, netlink })
  } finally {
    for (const descriptor of handed.values()) closeSync(descriptor)
    closeSync(channel.theirs)
    channel.close()
  }
}
