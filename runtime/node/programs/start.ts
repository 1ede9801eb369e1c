import { type ChildProcess, type ExecFileException, execFile, type SpawnOptions, spawn } from 'node:child_process'
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

export interface RunOptions {
  readonly variables?: readonly string[]
  readonly set?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** Timeout, ms, after which the program is killed; 0: none. */
  readonly ms: number
  /** Limit of the output, bytes, above which the program is killed. */
  readonly maxBytes?: number
  readonly signal?: AbortSignal
}

/** The result and the output of a program. `error.code` is the exit code when the program exited by itself. */
export type ProgramEnd = { readonly error: ExecFileException | null; readonly stdout: string; readonly stderr: string }

/** Runs a program to its end, without a shell and without input. Never rejects. */
export function runProgram(command: string, args: readonly string[], options: RunOptions): Promise<ProgramEnd> {
  const { variables, set, cwd, ms, maxBytes = 1 << 20, signal } = options
  const settings = {
    env: environmentFor(variables, set),
    timeout: ms,
    killSignal: 'SIGKILL' as const,
    maxBuffer: maxBytes,
    ...(cwd !== undefined && { cwd }),
    ...(signal !== undefined && { signal }),
  }
  return new Promise((resolve) => {
    try {
      const child = execFile(command, args, settings, (error, stdout, stderr) => resolve({ error, stdout, stderr }))
      child.stdin?.on('error', () => {})
      child.stdin?.end()
    } catch (error) {
      // spawn throws some errors of the kernel synchronously.
      resolve({ error: error as ExecFileException, stdout: '', stderr: '' })
    }
  })
}
