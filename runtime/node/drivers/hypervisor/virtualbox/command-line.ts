import type { ChildProcess } from 'node:child_process'
import { conflict, tooMany } from '../../../../../src/lib/errors/api-error.ts'
import { startProgram } from '../../../os/programs/start.ts'
import { CommandFailure, errorText } from './failure.ts'
import { findManager, locale, variables } from './program.ts'

/** Limit of the output of one command; the description of a VM has some 10 KB. */
const maxOutputBytes = 4 << 20
/** Wait for the rest of the output after the exit, ms. The server that VBoxManage starts may keep the pipe open. */
const drainMs = 500

export interface CommandLineOptions {
  /** A path, or a name in PATH; empty: VBoxManage in PATH. */
  readonly path: () => string
  readonly searchPath?: () => string
  /** Timeout of one command, ms. */
  readonly commandMs?: number
  /** Timeout of the wait in the queue, ms. */
  readonly turnMs?: number
  readonly maxWaiting?: number
}

interface Waiting {
  readonly args: readonly string[]
  readonly resolve: (output: string) => void
  readonly reject: (error: unknown) => void
  readonly timer: NodeJS.Timeout
}

/** Runs VBoxManage, one command at a time, because concurrent commands fail. */
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

  /** The path of the program; 409 when there is none. */
  program(): string {
    return findManager(this.#options.path(), this.#options.searchPath())
  }

  /** Queues a command and returns its output. 409 with its error text when it fails, 429 when the queue is full. */
  run(...args: readonly string[]): Promise<string> {
    if (args.some((arg) => arg.includes('\0')))
      return Promise.reject(conflict('VirtualBox: a name cannot contain a NUL'))
    if (this.#isClosed) return Promise.reject(closed())
    const { maxWaiting, turnMs } = this.#options
    if (this.#waiting.length >= maxWaiting)
      return Promise.reject(tooMany(`VirtualBox is busy: ${maxWaiting} commands are waiting`))
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

  /** Refuses waiting and further commands, and waits for the running one. */
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
    const { commandMs } = this.#options
    const end = await execute(this.program(), ['--nologo', ...args], commandMs)
    if (end.type === 'late') {
      const cause = new CommandFailure(end.stderr, { timedOut: true })
      throw conflict(`VirtualBox: ${args[0]} did not end within ${commandMs} ms`, { cause })
    }
    if (end.type === 'too much')
      throw conflict(`VirtualBox: the output of ${args[0]} is longer than ${maxOutputBytes} bytes`)
    if (end.code === 0) return end.stdout
    const reason = errorText(end.stderr) || `${args[0]} failed (${end.signal ?? `exit code ${end.code}`})`
    throw conflict(`VirtualBox: ${reason}`, { cause: new CommandFailure(end.stderr) })
  }
}

const closed = () => conflict('VirtualBox: the service is stopping')

interface End {
  readonly type: 'exit' | 'late' | 'too much'
  readonly code?: number | null
  readonly signal?: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

const execute = (path: string, args: readonly string[], ms: number): Promise<End> =>
  new Promise((resolve, reject) => {
    // Its own session: the first command starts the server of VirtualBox, which a Ctrl-C for the service would end.
    const session = { variables, set: locale, detached: true }
    const child = startProgram(path, args, { ...session, stdio: ['ignore', 'pipe', 'pipe'] })
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

/** Collects a stream; the result returns its text so far. */
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
