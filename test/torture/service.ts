import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import type { Process } from './processes.ts'
import { processesOf } from './processes.ts'

/** A start that takes longer has failed, ms. */
const readyMs = 30_000
/** No answer takes longer, ms. */
const answerMs = 60_000

/** An answer; 0: there is none, and nobody knows whether the request was carried out; -1: there was nobody to send it to. */
export interface Answer {
  readonly status: number
  readonly body: Buffer
}

export interface Options {
  readonly build: string
  readonly data: string
  readonly log: string
  readonly ranges: Readonly<Record<string, readonly [number, number]>>
}

/** The service that is tortured. It may be away at any time. */
export class Victim {
  readonly data: string
  readonly #options: Options
  #child: ChildProcess | undefined
  #url = ''
  /** How often it was killed or ended: an answer that is missing means something only when this has not changed. */
  ends = 0

  constructor(options: Options) {
    this.#options = options
    this.data = options.data
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  get isUp(): boolean {
    return this.#url !== ''
  }

  get url(): URL {
    return new URL(this.#url === '' ? 'http://127.0.0.1:9' : this.#url)
  }

  /** Starts it with that engine for pcs; rejects when it does not come up. */
  async start(engine: string): Promise<void> {
    const { build, data, log, ranges } = this.#options
    const config = `${log}.toml`
    const lines = Object.entries({ ...ranges, 'pc.engine': engine, min_free_space_mb: 4 })
    await writeFile(config, lines.map(([key, value]) => `${key} = ${JSON.stringify(value)}\n`).join(''))
    const flags = ['serve', '--port', '0', '--data', data, '--config', config, '--log-level', 'warn']
    const child = spawn(process.execPath, [join(build, 'patchbay.js'), ...flags], { stdio: ['ignore', 'pipe', 'pipe'] })
    child.stderr.pipe(createWriteStream(log, { flags: 'a' }))
    this.#child = child
    const timer = setTimeout(() => child.kill('SIGKILL'), readyMs)
    try {
      for await (const line of createInterface({ input: child.stdout })) {
        const url = /http:\/\/[^\s/]+/.exec(line)?.[0]
        if (url === undefined) continue
        this.#url = url
        child.stdout.resume()
        return
      }
    } finally {
      clearTimeout(timer)
    }
    throw new Error(`the service did not come up; see ${log}`)
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    this.ends++
    this.#url = ''
    const gone = once(child, 'exit')
    child.kill(signal)
    await gone
  }

  /** Keepers, and what runs in them. */
  async running(): Promise<{ keepers: Process[]; programs: Process[] }> {
    const all = (await processesOf(this.data)).filter(({ pid }) => pid !== this.pid)
    const keepers = all.filter(({ command }) => /keeper\.js/.test(command))
    return { keepers, programs: all.filter((it) => !keepers.includes(it)) }
  }

  async ask(method: string, path: string, body?: object | Buffer, ms = answerMs): Promise<Answer> {
    if (!this.isUp) {
      await delay(50)
      return { status: -1, body: Buffer.alloc(0) }
    }
    const isRaw = Buffer.isBuffer(body)
    try {
      const answer = await fetch(this.#url + path, {
        method,
        signal: AbortSignal.timeout(ms),
        ...(body !== undefined && { body: isRaw ? new Uint8Array(body) : JSON.stringify(body) }),
        headers: isRaw ? { 'Content-Type': 'application/octet-stream' } : {},
      })
      return { status: answer.status, body: Buffer.from(await answer.arrayBuffer()) }
    } catch (error) {
      const { cause } = error as { cause?: unknown }
      return { status: 0, body: Buffer.from(String(cause ?? error)) }
    }
  }

  async json<T = Record<string, unknown>>(method: string, path: string, body?: object): Promise<T> {
    const answer = await this.ask(method, path, body)
    if (answer.status < 200 || answer.status > 299)
      throw new Error(`${method} ${path}: ${answer.status} ${answer.body}`)
    return (answer.body.length === 0 ? undefined : JSON.parse(answer.body.toString())) as T
  }
}
