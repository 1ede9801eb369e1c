import { type ProgramEnd, type RunOptions, runProgram } from '../../os/programs/start.ts'

/** `qemu-img` without a cell, whose commands a signal ends. */
export class DirectTool {
  readonly #path: string
  readonly #signal: AbortSignal | undefined

  constructor(path: string, signal?: AbortSignal) {
    this.#path = path
    this.#signal = signal
  }

  /** Runs it with arguments. Never rejects for how it ended. */
  run(args: readonly string[], options: RunOptions): Promise<ProgramEnd> {
    return runProgram(this.#path, args, { ...options, signal: this.#signal })
  }
}
