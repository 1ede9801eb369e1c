import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bundleWorker } from '../../scripts/bundle-worker.ts'
import { type RunningWorker, runWorker } from '../../scripts/run-worker.ts'
import { mapLimit } from '../../src/lib/async/map-limit.ts'
import type { Compute } from '../../src/model/compute.ts'
import { asAdmin, bindings } from './admin.ts'
import { load } from './load.ts'
import { median, ms, precise, ratio, target } from './medians.ts'
import type { Front } from './near-and-far.ts'
import { type SimulatedCompute, SimulatedComputes } from './simulated-computes.ts'
import type { Row } from './table.ts'
import { timed } from './times.ts'
import type { BenchOrder } from './workerd/worker.ts'
import { Workerd } from './workerd-process.ts'

const computes = 1000
const projectsEach = 20
const tokens = 10_000
/** What all have joined again in, s. */
const longestS = 30
/** What the directory may take, MB. */
const maxMb = 64
/** Objects sleep by then; see the hibernation of docs/edge.md. */
const asleepMs = 15_000
const connections = 16
const rounds = 7
const seconds = 1.5
const warmUpSeconds = 0.3

/** The gateway's Worker with a thousand computes that join it, each by a tunnel of its own, beside one with one compute. */
export async function manyComputes(): Promise<Row[]> {
  const script = await bundleWorker({ entry: 'test/bench/workerd/worker.ts' })
  await using few = await BenchGateway.start(script)
  const emptyMb = await few.memoryOfDirectory()
  await few.join(1)
  await using many = await BenchGateway.start(script)
  const joined = await many.join(computes)
  await many.makeTokens(tokens - computes)
  await new Promise((resolve) => setTimeout(resolve, asleepMs))
  const cpu = { few: [] as number[], many: [] as number[] }
  for (let round = 0; round < rounds; round++) {
    cpu.few.push(await few.cpuOfGet())
    cpu.many.push(await many.cpuOfGet())
  }
  const wholeMb = await many.memoryMb()
  const again = await timed(async () => {
    await many.restart()
    await many.untilConnected(computes)
  })
  await many.leave()
  await many.restart()
  const directoryMb = (await many.memoryOfDirectory()) - emptyMb
  const growth = median(cpu.many.map((value, round) => value / (cpu.few[round] ?? Number.NaN)))
  const [ofComputes, ofAll] = [
    `${computes} computes`,
    `${computes} computes, ${computes * projectsEach} projects, ${tokens} tokens`,
  ]
  return [
    [`Worker: ${ofComputes} join again after a restart`, ms(again), target(again < longestS * 1000, `${longestS} s`)],
    [`Worker: ${ofComputes} join for the first time`, ms(joined), 'each makes an object and a table'],
    [
      `Worker: memory of the directory with ${ofAll}`,
      `${directoryMb.toFixed(0)} MB`,
      `workerd with the tunnels ${wholeMb.toFixed(0)} MB; ${target(directoryMb <= maxMb, `${maxMb} MB`)}`,
    ],
    [
      `Worker: CPU of a GET by tunnel with ${ofAll}`,
      precise(median(cpu.many)),
      `one compute and its token best ${precise(median(cpu.few))}, ${ratio(growth, 1)}`,
    ],
  ]
}

/** A gateway's Worker and computes that have joined it. */
class BenchGateway implements AsyncDisposable {
  readonly #script: string
  readonly #data: string
  readonly #crowds: SimulatedComputes[] = []
  /** Their projects. */
  readonly #projects: string[] = []
  #gateway: RunningWorker
  #workerd: Workerd

  private constructor(script: string, data: string, gateway: RunningWorker, workerd: Workerd) {
    this.#script = script
    this.#data = data
    this.#gateway = gateway
    this.#workerd = workerd
  }

  static async start(script: string): Promise<BenchGateway> {
    const data = await mkdtemp(join(tmpdir(), 'patchbay-bench-'))
    return new BenchGateway(script, data, ...(await started(script, data, 0)))
  }

  get #front(): Front {
    return asAdmin(this.#gateway.url)
  }

  /** So many computes join; how long that takes when their tokens are made, ms. */
  async join(count: number): Promise<number> {
    const { version } = (await this.#front.call('GET', '/v2/compute/version')) as { version: string }
    const joining = await mapLimit(Array(count).fill(0), async (_, index): Promise<SimulatedCompute> => {
      const fields = { name: `compute ${index}`, purpose: 'join' }
      const { token } = (await this.#front.call('POST', '/v2/tokens', fields)) as { token: string }
      const projects = Array.from({ length: projectsEach }, () => randomUUID())
      this.#projects.push(...projects)
      return { id: `c${index}`, projects, token }
    })
    const tookMs = await timed(async () => {
      this.#crowds.push(new SimulatedComputes(this.#gateway.url, version, joining))
      await this.untilConnected(count)
    })
    // The computes tell of them when they connect.
    for (const project of [this.#projects[0], this.#projects.at(-1)]) await this.#front.call('GET', pathOf(project))
    return tookMs
  }

  async makeTokens(count: number): Promise<void> {
    await this.#front.call('POST', '/bench', { tokens: count } satisfies BenchOrder)
  }

  async leave(): Promise<void> {
    for (const crowd of this.#crowds.splice(0)) await crowd.close()
  }

  /** Resolves when so many are shown as connected. */
  async untilConnected(count: number): Promise<void> {
    for (;;) {
      // workerd closes connections on which it did not read for 5 s, also because it was busy.
      const all = await this.#computes().catch(() => [])
      if (all.filter(({ connected }) => connected).length === count) return
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }

  /** What workerd takes for a GET of a project by the tunnel, ms. */
  async cpuOfGet(): Promise<number> {
    const url = this.#gateway.url + pathOf(this.#projects[0])
    const bearer = bindings.ADMIN_TOKEN
    const cpu = () => this.#workerd.cpuMs()
    return (await load(url, connections, seconds, warmUpSeconds, { bearer, cpu })).cpuMs
  }

  memoryMb(): Promise<number> {
    return this.#workerd.memoryMb()
  }

  /** Of workerd when only the directory has been asked, MB. */
  async memoryOfDirectory(): Promise<number> {
    await this.#computes()
    return this.memoryMb()
  }

  /** workerd ends at once, with all tunnels, and begins again. */
  async restart(): Promise<void> {
    const { port } = new URL(this.#gateway.url)
    await this.#end()
    ;[this.#gateway, this.#workerd] = await started(this.#script, this.#data, Number(port))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.leave()
    await this.#end()
    await rm(this.#data, { recursive: true, force: true })
  }

  async #computes(): Promise<Compute[]> {
    return (await this.#front.call('GET', '/v2/computes')) as Compute[]
  }

  async #end(): Promise<void> {
    await this.#gateway.close()
  }
}

const pathOf = (project = ''): string => `/v2/compute/projects/${project}`

async function started(script: string, data: string, port: number): Promise<[RunningWorker, Workerd]> {
  const gateway = await runWorker({ host: '127.0.0.1', port, data, bindings, script })
  return [gateway, await Workerd.newest()]
}
