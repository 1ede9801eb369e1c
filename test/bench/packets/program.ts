import { spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { KeeperClient } from '../../../runtime/node/keeper/client/client.ts'
import { KeeperError } from '../../../runtime/node/keeper/protocol/error.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { endsWithUs } from '../../support/ends-with-us.ts'
import { programOf } from '../service.ts'
import type { Relay } from './bed.ts'
import type { Setup } from './relay.ts'
import { linkTypeEthernet, type Ports, type Targets, wire } from './wiring.ts'

/**
 * The packet paths of the build that is measured: each is a keeper, whose ports are opened by its protocol, as a service does. The
 * keeper has no service, which in its first seconds compiles and collects garbage: 0.15 s of processor time that the frames would lack.
 */
export class Program implements AsyncDisposable {
  readonly #keepers: KeeperClient[] = []

  /** A keeper of its own for every setup, so that the keys and the processor time of each are its own. */
  async relay(setup: Omit<Setup, 'kind'>): Promise<Targets & { relay: Relay }> {
    const { relay, ports } = await this.start()
    return { relay, ...(await wire(ports, { ...setup, kind: 'fast' })) }
  }

  /** A keeper without ports. */
  async start(): Promise<{ relay: Relay; ports: Ports }> {
    const keeper = await startKeeper()
    this.#keepers.push(keeper)
    return { relay: { usage: () => usageOf(keeper.pid), close: () => end(keeper) }, ports: portsOf(keeper) }
  }

  /** Ends what a failed suite has left. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#keepers.map(end))
  }
}

async function startKeeper(): Promise<KeeperClient> {
  const data = await mkdtemp(join(tmpdir(), 'patchbay-bench-'))
  endsWithUs(data)
  const program = join(dirname(programOf()), 'keeper.js')
  const child = spawn(process.execPath, [program, data], { stdio: ['ignore', 'ignore', 'inherit'] })
  for (const keepers = join(data, 'run/keepers'); child.exitCode === null; await pause(20)) {
    try {
      // The directory of the keeper has the name of its build.
      const [generation = ''] = await readdir(keepers)
      return await KeeperClient.open(join(keepers, generation))
    } catch (error) {
      if (error instanceof KeeperError && error.code === 'protocol') throw error
    }
  }
  throw new Error(`${program} has ended (${child.exitCode})`)
}

/** The processor time is that of its threads, which is exact: /proc/PID/stat has it in steps of 10 ms. */
async function usageOf(pid: number): Promise<Awaited<ReturnType<Relay['usage']>>> {
  const threads = await readdir(`/proc/${pid}/task`)
  const files = threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/schedstat`, 'utf8'))
  const ns = (await Promise.all(files)).reduce((sum, text) => sum + Number.parseInt(text, 10), 0)
  const kb = /^VmRSS:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]
  return { cpu: ns / 1000, memory: Number(kb) / 1024 }
}

async function end(keeper: KeeperClient): Promise<void> {
  await keeper.call('shutdown', { grace_ms: 0 }).catch(ignore('it has ended'))
  await keeper.closed
}

const portsOf = (keeper: KeeperClient): Ports => ({
  async open(key, guest) {
    return (await keeper.call('port.open', { key, ...guest })).switch_port
  },
  async attach(key, nio) {
    await keeper.call('nio.attach', { key, nio })
  },
  async capture(key, file) {
    await keeper.call('capture.start', { key, file, link_type: linkTypeEthernet, floor_mb: 0 })
  },
  async bridge(key, run) {
    await keeper.call('unit.start', { key, run })
  },
  async join(links) {
    await keeper.call('link.join', { links })
  },
})
