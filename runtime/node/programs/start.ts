import { type ChildProcess, type ExecFileException, execFile, type SpawnOptions, spawn } from 'node:child_process'
import { environmentFor } from './environment.ts'

/**
 * The one place where programs are started. What they learn of our environment is a list (environment.ts): the settings and
 * secrets of the service reach no program.
 */
export interface StartOptions extends Omit<SpawnOptions, 'env' | 'shell'> {
  /** Names of further variables of ours that the program needs. */
  readonly variables?: readonly string[]
  /** Variables that are set for it. */
  readonly set?: Readonly<Record<string, string>>
}

/** Starts a program without a shell. */
export function startProgram(
  command: string,
  args: readonly string[],
  { variables, set, ...options }: StartOptions = {},
): ChildProcess {
  return spawn(command, args, { ...options, env: environmentFor(variables, set) })
}

export interface RunOptions {
  readonly variables?: readonly string[]
  readonly set?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** It is killed after so long, ms; 0: it may take as long as it does. */
  readonly ms: number
  /** It is killed when it says more than this. */
  readonly maxBytes?: number
  readonly signal?: AbortSignal
}

/** How a program ended, and what it said. `error.code` is a number when it ended by itself. */
export interface ProgramEnd {
  readonly error: ExecFileException | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program without a shell and without input to its end. Never rejects. */
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
      // Some failures of the kernel are thrown at once.
      resolve({ error: error as ExecFileException, stdout: '', stderr: '' })
    }
  })
}
