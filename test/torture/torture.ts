import { execFileSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { readdirSync } from 'node:fs'
import { mkdir, open, readdir, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { endsWithUs } from '../support/ends-with-us.ts'
import { leasePorts } from '../support/port-leases.ts'
import { Conflicts } from './conflicts.ts'
import { Lab } from './lab.ts'
import { Oracle } from './oracle.ts'
import { processesOf, usageOf } from './processes.ts'
import { Random } from './random.ts'
import { Victim } from './service.ts'
import { Tally } from './tally.ts'
import { Torn } from './torn.ts'

const { first: firstPort } = leasePorts(1400)
const ranges = {
  console_port_range: [firstPort, firstPort + 299],
  vnc_port_range: [firstPort + 300, firstPort + 399],
  udp_port_range: [firstPort + 400, firstPort + 1399],
} as const
const diskMb = 256
/** Of the time nothing is killed in: memory and descriptors must be level then. */
const levelShare = 0.25
/** What the memory of the service and of the keeper may grow by then: garbage that is not collected yet. */
const levelMb = 96
/** Without load before memory is looked at, ms. */
const restMs = 5000
const levelDescriptors = 12
/** All that was started must have ended so long after the service was asked to end, ms. */
const endMs = 15_000

export interface TortureOptions {
  readonly minutes: number
  readonly seed: number
  readonly build: string
  /** Of its own; the data of the service is on a disk of its own in it, where that can be mounted. */
  readonly directory: string
}

/** Tortures a service for a time; prints what was tried and lost, and gives the number of losses. */
export async function torture({ minutes, seed, build, directory }: TortureOptions): Promise<number> {
  const random = new Random(seed)
  const tally = new Tally(join(directory, 'events.log'))
  const data = join(directory, 'data')
  await mkdir(data)
  endsWithUs(data)
  const hasDisk = mount(data)
  console.log(`${minutes} minutes, seed ${seed}${hasDisk ? '' : '; no disk can be mounted here: it is never full'}`)
  const victim = new Victim({ build, data, log: join(directory, 'service.log'), ranges })
  const lab = new Lab(victim, tally)
  const oracle = new Oracle(victim, random.fork(), tally)
  const conflicts = new Conflicts(victim, random.fork(), tally)
  const torn = new Torn(victim, random.fork(), tally)
  const engines = hasProgram('vpcs') ? ['embedded', 'vpcs'] : ['embedded']
  const chaos = new Chaos({ victim, lab, tally, random: random.fork(), engines, hasDisk })
  try {
    await victim.start('embedded')
    await lab.make(3, hasProgram('qemu-system-x86_64') ? 1 : 0)
    await lab.up()
    const load = (signal: AbortSignal) =>
      Promise.all([
        oracle.run(signal),
        conflicts.run(signal),
        torn.run(signal, () => lab.nodes.map((node) => node.split('/').slice(0, 5).join('/'))),
      ])
    const totalMs = minutes * 60_000
    await during(totalMs * (1 - levelShare), load, (until) => chaos.run(until))
    await oracle.verifyAll()
    await lab.expectStarted('after all that')
    await isLevel(victim, tally, totalMs * levelShare, load)
    lab.count()
    await oracle.verifyAll()
    await clear(victim, lab, oracle, conflicts, tally)
    await victim.end('SIGTERM')
    await nothingIsLeft(data, tally)
  } catch (error) {
    tally.lost(`the torture could not go on: ${(error as Error).stack}`)
    await victim.end('SIGKILL')
  } finally {
    for (const { pid } of await processesOf(data)) kill(pid)
    if (hasDisk) execFileSync('umount', ['-l', data])
  }
  tally.print()
  return tally.losses.length
}

/** Runs the load while something else happens to the service, for a time. */
async function during(
  ms: number,
  load: (signal: AbortSignal) => Promise<unknown>,
  happens: (until: number) => Promise<void>,
): Promise<void> {
  const over = new AbortController()
  const running = load(over.signal)
  // An error of the load ends the rest, too.
  await Promise.race([happens(performance.now() + ms), running])
  over.abort()
  await running
}

interface ChaosOptions {
  readonly victim: Victim
  readonly lab: Lab
  readonly tally: Tally
  readonly random: Random
  readonly engines: readonly string[]
  readonly hasDisk: boolean
}

/** What is done to the service, its keeper and its programs, one after the other. */
class Chaos {
  readonly #o: ChaosOptions

  constructor(options: ChaosOptions) {
    this.#o = options
  }

  async run(until: number): Promise<void> {
    const { random, tally, hasDisk } = this.#o
    const all: [string, number, () => Promise<void>][] = [
      ['kill -9 of the service', 6, () => this.#killService()],
      ['kill -9 of the keeper, with its packet worker', 2, () => this.#killKeeper()],
      ['kill -9 of service and keeper', 1, () => this.#killBoth()],
      ['kill -9 of a program in the keeper', 3, () => this.#killProgram()],
      ['polite end of the service', 1, () => this.#endService()],
      ...(hasDisk ? [['full disk', 2, () => this.#fillDisk()] as [string, number, () => Promise<void>]] : []),
    ]
    while (performance.now() < until) {
      await delay(random.between(200, 2500))
      let roll = random.next() * all.reduce((sum, [, weight]) => sum + weight, 0)
      const [what, , run] =
        all.find(([, weight]) => {
          roll -= weight
          return roll < 0
        }) ?? (all[0] as (typeof all)[0])
      tally.tried(what)
      tally.happened(what)
      await run()
      tally.happened(`${what}: done`)
    }
  }

  /** Nodes, links and consoles do not notice. */
  async #killService(): Promise<void> {
    const { victim, random, lab } = this.#o
    await victim.end('SIGKILL')
    await delay(random.between(0, 1000))
    await this.#begin()
    await lab.expectStarted('though only the service was killed')
  }

  async #killKeeper(): Promise<void> {
    const { victim, lab } = this.#o
    lab.quiet()
    const { keepers } = await victim.running()
    for (const { pid } of keepers) kill(pid)
    await this.#areStopped(lab.nodes, 'its keeper was killed')
    await lab.up()
  }

  async #killBoth(): Promise<void> {
    const { victim, lab, random } = this.#o
    lab.quiet()
    const { keepers, programs } = await victim.running()
    await victim.end('SIGKILL')
    for (const { pid } of keepers) kill(pid)
    await delay(random.between(0, 300))
    await this.#begin()
    await this.#haveEnded(programs.map(({ pid }) => pid))
    await lab.up()
  }

  async #killProgram(): Promise<void> {
    const { victim, lab, random } = this.#o
    const { programs } = await victim.running()
    if (programs.length === 0) return
    lab.quiet()
    const { pid, command, cwd } = random.one(programs)
    // The process of the embedded pcs has all of them in it.
    const isTheirs = (node: string, engine: string | undefined) =>
      /pc-host\.js/.test(command) ? engine === 'embedded' : `${command} ${cwd}`.includes(node.split('/').at(-1) ?? '')
    const nodes: string[] = []
    for (const node of lab.nodes) {
      const { status, body } = await victim.ask('GET', node)
      const shown = status === 200 ? (JSON.parse(body.toString()) as { engine?: string }) : {}
      if (isTheirs(node, shown.engine)) nodes.push(node)
    }
    kill(pid)
    await this.#areStopped(nodes, 'its program was killed')
    await lab.up()
  }

  async #endService(): Promise<void> {
    const { victim, lab } = this.#o
    lab.quiet()
    await victim.end('SIGTERM')
    await this.#noneRuns()
    await this.#begin()
    await lab.up()
  }

  async #fillDisk(): Promise<void> {
    const { victim, random, lab } = this.#o
    const file = join(victim.data, 'filler')
    const handle = await open(file, 'w')
    try {
      for (let written = 0; written < diskMb * 2; written++) await handle.write(Buffer.alloc(1 << 20))
    } catch {
      // Full.
    }
    await delay(random.between(500, 3000))
    await handle.close()
    await rm(file, { force: true })
    await lab.expectStarted('though only the disk was full')
  }

  async #begin(): Promise<void> {
    const { victim, random, engines, tally } = this.#o
    for (let tries = 0; ; tries++) {
      try {
        return await victim.start(random.one(engines))
      } catch (error) {
        tally.lost((error as Error).message)
        if (tries > 2) throw error
      }
    }
  }

  /** The service has noticed what was killed. */
  async #areStopped(nodes: readonly string[], why: string): Promise<void> {
    const { victim, tally } = this.#o
    const until = performance.now() + endMs
    for (const node of nodes) {
      for (;;) {
        const { status, body } = await victim.ask('GET', node)
        const shown = status === 200 ? (JSON.parse(body.toString()) as { status: string }).status : status
        if (shown === 'stopped') break
        if (performance.now() > until) {
          tally.lost(`${node} is ${shown} though ${why}`)
          break
        }
        await delay(50)
      }
    }
  }

  async #noneRuns(): Promise<void> {
    const { victim, tally } = this.#o
    const left = await untilNone(() => processesOf(victim.data), endMs)
    for (const { pid, command } of left) tally.lost(`still there after a polite end: ${pid} ${command}`)
    for (const { pid } of left) kill(pid)
  }

  async #haveEnded(pids: readonly number[]): Promise<void> {
    const { victim, tally } = this.#o
    const find = async () => (await processesOf(victim.data)).filter(({ pid }) => pids.includes(pid))
    for (const { pid, command } of await untilNone(find, endMs))
      tally.lost(`left by a killed keeper: ${pid} ${command}`)
  }
}

/** Memory and descriptors of the service and the keeper must not grow under load. */
async function isLevel(
  victim: Victim,
  tally: Tally,
  ms: number,
  load: (signal: AbortSignal) => Promise<unknown>,
): Promise<void> {
  const pids = async () => [victim.pid, ...(await victim.running()).keepers.map(({ pid }) => pid)]
  await during(ms / 3, load, (until) => delay(until - performance.now()))
  await delay(restMs)
  const before = await Promise.all((await pids()).map(usageOf))
  await during((ms * 2) / 3, load, (until) => delay(until - performance.now()))
  await delay(restMs)
  const after = await Promise.all((await pids()).map(usageOf))
  for (const [index, name] of (['service', 'keeper'] as const).entries()) {
    const [first, last] = [before[index], after[index]]
    if (first === undefined || last === undefined) {
      tally.lost(`there is no ${name}`)
      continue
    }
    const figures = `${name}: ${first.mb.toFixed(0)} MB, then ${last.mb.toFixed(0)} MB; ${first.descriptors} descriptors, then ${last.descriptors}`
    console.log(figures)
    if (last.mb > first.mb + levelMb) tally.lost(`memory grows, ${figures}`)
    if (last.descriptors > first.descriptors + levelDescriptors) tally.lost(`descriptors are left, ${figures}`)
  }
}

/** Deletes everything; nothing of it may stay. */
async function clear(victim: Victim, lab: Lab, oracle: Oracle, conflicts: Conflicts, tally: Tally): Promise<void> {
  await conflicts.clear()
  const [first = ''] = lab.nodes
  const { status, body } = await victim.ask('DELETE', first.split('/').slice(0, 5).join('/'))
  if (status !== 204) tally.lost(`the lab cannot be deleted: ${status} ${body}`)
  await oracle.clear()
  const ports = await victim.json<{ console_ports: number[]; udp_ports: number[] }>('GET', '/v2/compute/network/ports')
  const reserved = [...ports.console_ports, ...ports.udp_ports]
  if (reserved.length > 0) tally.lost(`ports are still reserved: ${reserved.join(', ')}`)
  const projects = await readdir(join(victim.data, 'projects')).catch(() => [])
  for (const project of projects) {
    const files = readdirSync(join(victim.data, 'projects', project), { recursive: true })
    tally.lost(
      `a directory is left: ${project} with ${files.join(', ') || 'nothing in it'}; ${oracle.historyOf(project)}`,
    )
  }
  const { programs } = await victim.running()
  for (const { command } of programs.filter((it) => !/pc-host\.js/.test(it.command)))
    tally.lost(`still runs though everything was deleted: ${command}`)
  const files = (readdirSync(victim.data, { recursive: true }) as string[]).filter((name) =>
    /torn|\.writing|\.partial|\.tmp$/.test(name),
  )
  if (files.length > 0) tally.lost(`files are left: ${files.join(', ')}`)
}

async function nothingIsLeft(data: string, tally: Tally): Promise<void> {
  for (const { pid, command } of await untilNone(() => processesOf(data), endMs))
    tally.lost(`still there at the end: ${pid} ${command}`)
  const children = await readdir(join(data, 'run', 'children')).catch(() => [])
  if (children.length > 0) tally.lost(`records of ${children.length} programs are left`)
  for (const [first, last] of [ranges.console_port_range, ranges.vnc_port_range])
    for (let port = first; port <= last; port++)
      if (!(await isTcpFree(port))) tally.lost(`TCP port ${port} is still bound`)
  const [first, last] = ranges.udp_port_range
  for (let port = first; port <= last; port++)
    if (!(await isUdpFree(port))) tally.lost(`UDP port ${port} is still bound`)
}

async function untilNone<T>(find: () => Promise<T[]>, ms: number): Promise<T[]> {
  const until = performance.now() + ms
  for (;;) {
    const found = await find()
    if (found.length === 0 || performance.now() > until) return found
    await delay(100)
  }
}

function isTcpFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)))
  })
}

function isUdpFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createSocket('udp4')
    socket.once('error', () => {
      socket.close()
      resolve(false)
    })
    socket.bind({ port, exclusive: true }, () => socket.close(() => resolve(true)))
  })
}

/** A small disk of its own, in memory. */
function mount(directory: string): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${diskMb}m`, 'tmpfs', directory], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

function hasProgram(name: string): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${name}`], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has just ended.
  }
}
