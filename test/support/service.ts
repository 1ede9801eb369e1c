import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { inject, onTestFinished } from 'vitest'
import { succeeded } from './calls.ts'
import { endsWithUs } from './ends-with-us.ts'
import { oneRequestEach } from './one-request-each.ts'
import { type Lease, leasePorts } from './port-leases.ts'
import { rangesFrom, usualPorts } from './ports.ts'
import { processesWith } from './processes.ts'

const sources = join(import.meta.dirname, '../../runtime/node/main.ts')

/** The program that tests start. */
export const bundledProgram = (): string => join(inject('bundled'), 'patchbay.js')

/** A start fills the first space for what is new, of a megabyte, many times: to look through it each time is a third of its processor time. */
const fewCollections = ['--min-semi-space-size=16', '--max-semi-space-size=32']

/** Services without anything in them that tests of this process gave back, by their settings. A start takes a second of a processor. */
const given: { settings: string; service: TestService }[] = []
const maxGiven = 3

/** What a service deletes by requests, with the member that names one. */
const deletable = [
  ['/v2/projects', 'project_id'],
  ['/v2/compute/projects', 'project_id'],
  ['/v2/templates', 'template_id'],
  ['/v2/computes', 'compute_id'],
] as const
/** Files that stay when all that was in them is deleted. */
const emptied = ['labs/templates.jsonl', 'computes.json', 'computes.json.bak']

/** A `patchbay serve` in a process of its own, as a user would run it. */
export class TestService {
  readonly data: string
  #child: ChildProcess | undefined
  #url = ''
  #ranges: Record<string, unknown> = {}
  /** Its ports are its own for as long as it runs, which may be longer than the test that started it. */
  #lease: Lease | undefined
  /** What it can be given back as; undefined once it is not what a start would give any more. */
  #settings: string | undefined
  #files: readonly string[] = []

  readonly #launcher: readonly string[]
  #program: string

  private constructor(data: string, launcher: readonly string[] = [], program = bundledProgram()) {
    this.data = data
    endsWithUs(data)
    this.#launcher = launcher
    this.#program = program
  }

  /**
   * One with nothing in it, and with ports of its own, until the test ends. It may have served an earlier test, which left nothing.
   * `launcher`: a command that becomes the program it is given.
   */
  static async start(settings: Record<string, unknown> = {}, launcher: readonly string[] = []): Promise<TestService> {
    if (launcher.length > 0) return (await TestService.#new(launcher)).#begin(settings)
    const service = await TestService.startForAll(settings)
    onTestFinished(() => service.close())
    return service
  }

  /** The same, in a process that nobody has asked for anything: for tests of counters, memory, and what a start does. */
  static async startAlone(settings: Record<string, unknown> = {}): Promise<TestService> {
    return (await TestService.#new()).#begin(settings)
  }

  static async #new(launcher: readonly string[] = []): Promise<TestService> {
    return new TestService(await mkdtemp(join(tmpdir(), 'patchbay-')), launcher)
  }

  /** The same, from the sources instead of the bundle. */
  static async startFromSources(settings: Record<string, unknown> = {}): Promise<TestService> {
    return new TestService(await mkdtemp(join(tmpdir(), 'patchbay-')), [], sources).#begin(settings)
  }

  /** The same, of a program that is not the present one. */
  static async startProgram(program: string, settings: Record<string, unknown> = {}): Promise<TestService> {
    return new TestService(await mkdtemp(join(tmpdir(), 'patchbay-')), [], program).#begin(settings)
  }

  /** From its next start on it is another program, on the same data. */
  become(program: string): void {
    this.#settings = undefined
    this.#program = program
  }

  async #begin(settings: Record<string, unknown>): Promise<TestService> {
    this.#leasePorts(settings)
    onTestFinished(() => this.close())
    await this.configure(settings)
    await this.restart()
    return this
  }

  /** The same for the tests of a file together, which call `close` themselves. */
  static async startForAll(settings: Record<string, unknown> = {}): Promise<TestService> {
    const text = JSON.stringify(settings)
    const at = given.findIndex((it) => it.settings === text)
    if (at >= 0) {
      const [{ service } = { service: undefined }] = given.splice(at, 1)
      if (service?.isRunning) return service
    }
    const service = await TestService.#new()
    service.#leasePorts(settings)
    await service.configure(settings)
    await service.restart()
    // One whose ports the settings name has them for as long as its test lasts.
    if (service.#lease !== undefined) service.#settings = text
    service.#files = await service.#listed()
    return service
  }

  /** Gives it back when it is as it was started, or else ends it and its keeper, and removes its data. */
  async close(): Promise<void> {
    // A service that was killed left its keeper; the next one takes it over and ends it politely.
    if (!this.isRunning && processesWith(this.data).length > 0) await this.restart()
    const settings = this.#settings
    if (settings !== undefined && this.isRunning && (await this.#isEmptied())) {
      given.unshift({ settings, service: this })
      for (const { service } of given.splice(maxGiven)) await service.#remove()
    } else await this.#remove()
  }

  async #remove(): Promise<void> {
    await this.end()
    await rm(this.data, { recursive: true, force: true })
    this.#lease?.release()
    this.#lease = undefined
  }

  /** Takes ports that no other test has, unless the settings name all that it needs. */
  #leasePorts(settings: Record<string, unknown>): void {
    const named = Object.entries(settings).filter(([name]) => name.endsWith('_port_range'))
    if (named.length < 3) this.#lease = leasePorts(usualPorts.console + usualPorts.udp + usualPorts.vnc)
    this.#ranges = { ...(this.#lease && rangesFrom(this.#lease.first)), ...Object.fromEntries(named) }
  }

  /** Deletes labs, projects, templates and computes; whether nothing else is left of what was done with it. */
  async #isEmptied(): Promise<boolean> {
    try {
      for (const [path, id] of deletable) {
        for (const it of await this.call<Record<string, unknown>[]>('GET', path)) {
          if (it.builtin === true || it[id] === 'local') continue
          const { status } = await this.fetch(`${path}/${it[id]}`, { method: 'DELETE' })
          if (status !== 204 && status !== 404) return false
        }
      }
      const files = await this.#listed()
      return files.join() === this.#files.join()
    } catch {
      // It wants to know who asks, or is no compute.
      return false
    }
  }

  /** The names of all files in its directory, but for those that say which processes it has. */
  async #listed(): Promise<readonly string[]> {
    const names = await readdir(this.data, { recursive: true })
    return names.filter((name) => !name.startsWith('run/') && !emptied.includes(name)).sort()
  }

  get url(): string {
    return this.#url
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  /** Writes the configuration file. The port ranges stay where the settings name none. */
  async configure(settings: Record<string, unknown>): Promise<void> {
    this.#settings = undefined
    const acceleration = { 'machine_emulator.acceleration': inject('acceleration') }
    const lines = Object.entries({ ...acceleration, ...this.#ranges, ...settings }).map(
      ([key, value]) => `${key} = ${JSON.stringify(value)}`,
    )
    await writeFile(join(this.data, 'config.toml'), lines.join('\n'))
  }

  /** `port`: where others know it; else a free one. */
  async restart(port = 0): Promise<void> {
    const flags = ['serve', '--port', String(port), '--data', this.data, '--config', join(this.data, 'config.toml')]
    const [command = '', ...args] = [
      ...this.#launcher,
      process.execPath,
      ...fewCollections,
      this.#program,
      ...flags,
      '--log-level',
      'error',
    ]
    const child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.#child = child
    for await (const line of createInterface({ input: child.stdout })) {
      const url = /https?:\/\/\S+/.exec(line)?.[0]
      if (url === undefined) continue
      this.#url = url
      return
    }
    throw new Error('the service ended before it was ready')
  }

  /** Ends the service as Ctrl-C does. */
  async end(): Promise<void> {
    await this.kill('SIGTERM')
  }

  /** What a reboot of the computer is for it: it ends with all nodes, and finds another boot id. */
  async reboot(): Promise<void> {
    await this.end()
    await this.forgetBoot('local')
    await this.restart()
  }

  /** Has its labs remember another boot of a compute, while it does not run. */
  async forgetBoot(computeId: string): Promise<void> {
    const labs = join(this.data, 'labs')
    for (const name of await readdir(labs)) {
      if (!/^[0-9a-f-]{36}\.jsonl$/.test(name)) continue
      const lines = (await readFile(join(labs, name), 'utf8')).trimEnd().split('\n')
      const { boots = [] } = Object.assign({}, ...lines.map((line) => JSON.parse(line))) as { boots?: string[][] }
      const others = boots.filter(([id]) => id !== computeId)
      if (others.length === boots.length) continue
      await appendFile(join(labs, name), `${JSON.stringify({ boots: [...others, [computeId, 'another boot']] })}\n`)
    }
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child
    if (child === undefined || !this.isRunning) return
    const gone = once(child, 'exit')
    child.kill(signal)
    await gone
  }

  /** By a connection of its own: the service ends one that was idle for seconds, perhaps just when a request is sent by it. */
  fetch(path: string, init?: RequestInit): Promise<Response> {
    return fetch(this.#url + path, { ...init, ...{ dispatcher: oneRequestEach } })
  }

  /** A request that must succeed; its JSON answer. */
  async call<T = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await this.fetch(path, { method, ...(body !== undefined && { body: JSON.stringify(body) }) })
    return succeeded(method, path, answer)
  }
}
