import type { ChildProcess, ExecFileException } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { onAbort } from '../../../../src/lib/async/abort.ts'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { killWithGroup, type ProgramEnd, startProgram } from '../programs/start.ts'
import type { Cell } from './cell.ts'
import type { Confinement } from './sandbox.ts'

export interface ShellLimits {
  /** Timeout of the program, ms; 0: none. */
  readonly ms: number
  /** Limit of the output, characters. */
  readonly maxBytes: number
  /** Limit of its data (RLIMIT_DATA), KiB. */
  readonly memoryKb?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/**
 * A cell whose shell runs programs one after the other: the start of a cell takes longer than most of them. A program that an
 * image has taken over can forge the output of later programs in its cell, so a cell serves one purpose of one node.
 */
export class CellShell {
  readonly #child: ChildProcess
  #isClosed = false

  /** Starts the cell. The first program reports a failure. */
  constructor(confinement: Confinement, cell: Cell) {
    const { command, args } = confinement.wrap(cell, '/bin/sh', ['-s'])
    this.#child = startProgram(command, args, { set: { LC_ALL: 'C' }, detached: true })
    this.#child.on('error', ignore('run reports it'))
    this.#child.stdin?.on('error', ignore('the cell has ended, which run reports'))
    for (const stream of [this.#child.stdout, this.#child.stderr]) stream?.setEncoding('utf8')
  }

  /** Whether it takes programs. */
  get isOpen(): boolean {
    return !this.#isClosed && this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Runs one program, given by its path, without input. The cell ends with a program that exceeds a limit. Never rejects. */
  run(command: string, args: readonly string[], limits: ShellLimits): Promise<ProgramEnd> {
    const { ms, maxBytes, memoryKb, signal } = limits
    const child = this.#child
    if (!this.isOpen) return Promise.resolve({ error: new Error('its cell has ended'), stdout: '', stderr: '' })
    if (signal?.aborted) return Promise.resolve({ error: abortError(), stdout: '', stderr: '' })
    // Random for each program, so that a name or a message that a program repeats cannot end its output.
    const mark = randomUUID()
    const said = { stdout: '', stderr: '' }
    return new Promise((resolve) => {
      const end = (error: ProgramEnd['error']) => {
        clearTimeout(timer)
        forget()
        for (const emitter of [child.stdout, child.stderr]) emitter?.removeAllListeners('data')
        child.off('close', onClose).off('error', onClose)
        resolve({ error, ...said })
      }
      const fail = (message: string, more: Partial<ExecFileException> = {}) => {
        this.close()
        end(Object.assign(new Error(message), more))
      }
      const onClose = (cause: unknown) =>
        fail(cause instanceof Error ? cause.message : said.stderr.trim().split('\n').at(-1) || 'its cell ended')
      const timer = ms > 0 ? setTimeout(() => fail(`it took longer than ${ms} ms`, { killed: true }), ms) : undefined
      for (const name of ['stdout', 'stderr'] as const) {
        child[name]?.on('data', (text: string) => {
          said[name] += text
          if (said[name].length > maxBytes) return fail('it does not stop talking')
          if (!said.stdout.endsWith(` ${mark}\n`) || !said.stderr.endsWith(`\n${mark}\n`)) return
          const last = said.stdout.lastIndexOf('\n', said.stdout.length - mark.length - 3)
          const code = Number.parseInt(said.stdout.slice(last + 1), 10)
          said.stdout = said.stdout.slice(0, last)
          said.stderr = said.stderr.slice(0, -mark.length - 2)
          end(code === 0 ? null : Object.assign(new Error(`it ended with code ${code}`), { code }))
        })
      }
      child.once('close', onClose).once('error', onClose)
      const forget = onAbort(signal, () => {
        this.close()
        end(abortError())
      })
      const words = [command, ...args].map(quoted).join(' ')
      const limited = memoryKb === undefined ? words : `(ulimit -d ${memoryKb} 2>/dev/null; exec ${words})`
      child.stdin?.write(`${limited} </dev/null; printf '\\n%d %s\\n' $? ${mark}; printf '\\n%s\\n' ${mark} >&2\n`)
    })
  }

  /** Ends the cell with all that runs in it: the kernel ends the processes of a PID namespace with its first one. */
  close(): void {
    this.#isClosed = true
    killWithGroup(this.#child)
  }
}

const abortError = (): ExecFileException => Object.assign(new Error('it was aborted'), { code: 'ABORT_ERR' })

/** A word for a shell: between single quotes only the quote itself has a meaning (POSIX, Shell Command Language, 2.2.2). */
export const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`
