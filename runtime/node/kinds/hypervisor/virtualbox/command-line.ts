import type { ChildProcess } from 'node:child_process'
import { conflict, tooMany } from '../../../../../src/errors/api-error.ts'
import { startProgram } from '../../../programs/start.ts'
import { CommandFailure, complaintOf } from './failure.ts'
import { type FoundManager, findManager, locale, variables } from './program.ts'

/** Of one command; the description of a machine has some 10 KB. */
const maxOutputBytes = 4 << 20
/** How long what it has written is waited for when it has ended; a server that it started may still have its output open, ms. */
const drainMs = 500

export interface CommandLineOptions {
  /** The setting: a path, or a name in PATH; empty: VBoxManage in PATH. */
  readonly path: () => string
  readonly searchPath?: () => string
  /** Bound of one command, ms. */
  readonly commandMs?: number
  /** Bound of the wait for its turn, ms. */
  readonly turnMs?: number
  readonly maxWaiting?: number
}

interface Waiting {
  readonly args: readonly string[]
  readonly resolve: (output: string) => void
  readonly reject: (error: unknown) => void
  readonly timer: NodeJS.Timeout
}

/** VBoxManage, one command at a time: several at once make each other fail. */
export class CommandLine {
  readonly #options: Required<CommandLineOptions>
  readonly #waiting: Waiting[] = []
  #running: Promise<void> | undefined
  #isClosed = false

  constructor(options: CommandLineOptions) {
    this.#options = {
      searchPath: () => process.env.PATH ?? '',
      commandMs: 60_000,
      turnMs: 300_000,
      maxWaiting: 256,
      ...options,
    }
  }

  /** The program as it is now; 409 when there is none. */
  program(): FoundManager {
    return findManager(this.#options.path(), this.#options.searchPath())
  }

  /** What the command says, when it is its turn; 409 with its own words when it fails, 429 when too many wait. */
  run(...args: readonly string[]): Promise<string> {
    if (args.some((arg) => arg.includes('\0'))) return Promise.reject(conflict('VirtualBox: a name cannot hold a NUL'))
    if (this.#isClosed) return Promise.reject(closed())
    const { maxWaiting, turnMs } = this.#options
    if (this.#waiting.length >= maxWaiting) {
      return Promise.reject(tooMany(`VirtualBox is busy: ${maxWaiting} commands wait for their turn`))
    }
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(entry), 1)
        reject(conflict(`VirtualBox is busy: ${args[0]} did not get its turn within ${turnMs} ms`))
      }, turnMs)
      const entry = { args, resolve, reject, timer }
      this.#waiting.push(entry)
      this.#next()
    })
  }

  /** No further commands; what waits is refused, what runs ends (it is bounded). */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const { reject, timer } of this.#waiting.splice(0)) {
      clearTimeout(timer)
      reject(closed())
    }
    await this.#running
  }

  #next(): void {
    if (this.#running !== undefined) return
    const next = this.#waiting.shift()
    if (next === undefined) return
    clearTimeout(next.timer)
    this.#running = this.#execute(next.args)
      .then(next.resolve, next.reject)
      .finally(() => {
        this.#running = undefined
        this.#next()
      })
  }

  async #execute(args: readonly string[]): Promise<string> {
    const { path } = this.program()
    const { commandMs } = this.#options
    const end = await execute(path, ['--nologo', ...args], commandMs)
    if (end.type === 'late') {
      const cause = new CommandFailure(end.stderr, { timedOut: true })
      throw conflict(`VirtualBox: ${args[0]} did not end within ${commandMs} ms`, { cause })
    }
    if (end.type === 'too much') throw conflict(`VirtualBox: the answer to ${args[0]} does not end`)
    if (end.code === 0) return end.stdout
    const words = complaintOf(end.stderr) || `${args[0]} failed (${end.signal ?? `exit code ${end.code}`})`
    throw conflict(`VirtualBox: ${words}`, { cause: new CommandFailure(end.stderr) })
  }
}

const closed = () => conflict('VirtualBox: this service ends')

interface End {
  readonly type: 'exit' | 'late' | 'too much'
  readonly code?: number | null
  readonly signal?: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

function execute(path: string, args: readonly string[], ms: number): Promise<End> {
  return new Promise((resolve, reject) => {
    const child = start(path, args)
    let drained: NodeJS.Timeout | undefined
    const finish = (type: End['type'], how: Pick<End, 'code' | 'signal'> = {}) => {
      clearTimeout(late)
      clearTimeout(drained)
      child.kill('SIGKILL')
      child.stdout?.destroy()
      child.stderr?.destroy()
      resolve({ type, ...how, stdout: stdout(), stderr: stderr() })
    }
    const late = setTimeout(() => finish('late'), ms)
    const stdout = collect(child.stdout, () => finish('too much'))
    const stderr = collect(child.stderr, () => finish('too much'))
    child.once('error', (cause) => {
      clearTimeout(late)
      reject(conflict(`VirtualBox: ${path} could not be run: ${(cause as NodeJS.ErrnoException).code}`, { cause }))
    })
    child.once('exit', (code, signal) => {
      drained = setTimeout(() => finish('exit', { code, signal }), drainMs)
    })
    child.once('close', (code, signal) => finish('exit', { code, signal }))
  })
}

function start(path: string, args: readonly string[]): ChildProcess {
  // In its own session: the first command starts VirtualBox's server, which a Ctrl-C meant for this service would end.
  return startProgram(path, args, { variables, set: locale, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
}

/** What has come so far, UTF-8 with what is none replaced. */
function collect(stream: ChildProcess['stdout'], overflow: () => void): () => string {
  const pieces: Buffer[] = []
  let bytes = 0
  stream?.on('data', (piece: Buffer) => {
    bytes += piece.length
    if (bytes > maxOutputBytes) return overflow()
    pieces.push(piece)
  })
  return () => Buffer.concat(pieces).toString('utf8')
}
