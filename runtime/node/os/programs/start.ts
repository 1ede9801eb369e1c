import { type ChildProcess, type ExecFileException, type SpawnOptions, spawn } from 'node:child_process'
import { signalGroup } from '../system/signal-group.ts'
import { environmentFor } from './environment.ts'

/**
 * The only module that starts programs. Programs get the listed variables of our environment (environment.ts), never the settings
 * and secrets of the service.
 */
export interface StartOptions extends Omit<SpawnOptions, 'env' | 'shell'> {
  /** Names of further variables to inherit. */
  readonly variables?: readonly string[]
  /** Variables to set. */
  readonly set?: Readonly<Record<string, string>>
}

/** Starts a program without a shell. */
export const startProgram = (
  command: string,
  args: readonly string[],
  { variables, set, ...options }: StartOptions = {},
): ChildProcess => spawn(command, args, { ...options, env: environmentFor(variables, set) })

/**
 * Kills a program that was started as `detached`, with its process group. A cell consists of two processes at first. The inner one
 * asks the kernel to die with the outer one, but if only the outer one were killed before that, it would go on.
 */
export function killWithGroup(child: ChildProcess): void {
  if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) signalGroup(child.pid, 'SIGKILL')
}

/** What a program has started and left may write for this time after its end, ms. */
const graceMs = 1000

export interface RunOptions {
  readonly variables?: readonly string[]
  readonly set?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** Timeout, ms, after which the program is killed; 0: none. */
  readonly ms: number
  /** Limit of the output, bytes, above which the program is killed. */
  readonly maxBytes?: number
  /** Limit of its data (RLIMIT_DATA), KiB: it cannot allocate more. */
  readonly memoryKb?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** Descriptors of files that are its input, in place of none, and its output, in place of `stdout`. */
  readonly input?: number
  readonly output?: number
}

/** A command line for sh(1) that limits the memory of the program that its positional parameters name. */
const withMemory = (kb: number): string => `ulimit -d ${kb} 2>/dev/null; exec "$@"`

/** The result and the output of a program. `error.code` is the exit code when the program exited by itself. */
export type ProgramEnd = { readonly error: ExecFileException | null; readonly stdout: string; readonly stderr: string }

/**
 * Runs a program to its end, without a shell, in a process group of its own. What it has left running, and still holds
 * its output a second later, is killed. Never rejects.
 */
export function runProgram(command: string, args: readonly string[], options: RunOptions): Promise<ProgramEnd> {
  const { ms, maxBytes = 1 << 20, memoryKb, signal, input = 'ignore', output = 'pipe', ...inherited } = options
  const [program, words] =
    memoryKb === undefined ? [command, args] : ['/bin/sh', ['-c', withMemory(memoryKb), 'sh', command, ...args]]
  return new Promise((resolve) => {
    const said = { stdout: '', stderr: '' }
    let obstacle: ExecFileException | undefined
    let child: ChildProcess
    try {
      child = startProgram(program, words, { ...inherited, detached: true, stdio: [input, output, 'pipe'] })
    } catch (error) {
      // spawn throws some errors of the kernel synchronously.
      resolve({ error: error as ExecFileException, ...said })
      return
    }
    const end = (error: ExecFileException | null) => {
      clearTimeout(timer)
      clearTimeout(grace)
      signal?.removeEventListener('abort', onAbort)
      resolve({ error, ...said })
    }
    const kill = (message: string, more: Partial<ExecFileException>) => {
      obstacle ??= Object.assign(new Error(message), more)
      cut()
    }
    const cut = () => {
      // The group has the number of its leader as long as it has a process.
      if (isOver && child.pid !== undefined) signalGroup(child.pid, 'SIGKILL')
      else killWithGroup(child)
      // A process that left the group may hold them open.
      child.stdout?.destroy()
      child.stderr?.destroy()
    }
    let isOver = false
    let grace: NodeJS.Timeout | undefined
    child.once('exit', () => {
      isOver = true
      // After what is in the pipes was read, also where this process was held up.
      grace = setTimeout(() => setImmediate(cut), graceMs)
    })
    const onAbort = () => kill('it was aborted', { code: 'ABORT_ERR' })
    const timer = ms > 0 ? setTimeout(() => kill(`it took longer than ${ms} ms`, { killed: true }), ms) : undefined
    for (const name of ['stdout', 'stderr'] as const) {
      child[name]?.setEncoding('utf8').on('data', (text: string) => {
        said[name] += text
        if (said[name].length <= maxBytes) return
        said[name] = said[name].slice(0, maxBytes)
        kill(`it printed more than ${maxBytes} bytes`, { code: 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER' })
      })
    }
    child.once('error', (error) => end(obstacle ?? error))
    child.once('close', (code, name) => {
      if (obstacle !== undefined || code === 0) end(obstacle ?? null)
      else if (name !== null) end(Object.assign(new Error(`it was ended by ${name}`), { signal: name }))
      else end(Object.assign(new Error(`it ended with code ${code}`), { code }))
    })
    if (signal?.aborted) onAbort()
    else signal?.addEventListener('abort', onAbort, { once: true })
  })
}
