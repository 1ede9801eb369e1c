import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Output } from './output.ts'

const blockMs = 300_000
const endMs = 30_000

export interface ShellPlace {
  /** For its scripts. */
  readonly directory: string
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
}

/** A program that a block of a document left running. */
export interface Background {
  readonly output: Output
  /** Ends it politely, and its group. */
  end(): Promise<void>
}

/** The shell of one document: what a block sets, later blocks have. The first command that fails ends it. */
export class Shell {
  readonly #process: ChildProcess
  readonly #output = new Output()
  readonly #place: ShellPlace
  #scripts = 0

  constructor(place: ShellPlace) {
    const { cwd, env } = place
    this.#place = place
    this.#process = spawn('bash', ['--norc', '--noprofile'], { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] })
    for (const stream of [this.#process.stdout, this.#process.stderr]) stream?.on('data', (it) => this.#output.add(it))
    this.#process.once('exit', () => this.#output.end())
    this.#process.stdin?.on('error', () => {})
    this.#type('set -eo pipefail; exec 2>&1')
  }

  /** Runs commands; what they print. */
  async run(commands: string): Promise<string> {
    const script = await this.#script(commands)
    const mark = `--- end of ${script} ---`
    this.#output.forget()
    this.#type(`source ${script} </dev/null; echo "${mark}"`)
    const shown = await this.#output.until((text) => text.includes(mark), blockMs)
    return shown.slice(0, shown.indexOf(mark))
  }

  /** Leaves commands running. */
  async background(commands: string): Promise<Background> {
    const script = await this.#script(commands)
    const pipe = `${script}.out`
    execFileSync('mkfifo', [pipe])
    const output = new Output()
    const reader = createReadStream(pipe)
    reader.on('data', (bytes) => output.add(bytes as Buffer))
    reader.once('close', () => output.end())
    // A group of its own, which a signal reaches with all that it has started.
    await this.run(`set -m\n(set +m; source ${script}) </dev/null >${pipe} 2>&1 &\necho $! >${script}.pid\nset +m`)
    const leader = Number(await readFile(`${script}.pid`, 'utf8'))
    return {
      output,
      async end() {
        signalGroup(leader, 'SIGTERM')
        await output.ended(endMs).catch(() => signalGroup(leader, 'SIGKILL'))
        reader.destroy()
      },
    }
  }

  async close(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const gone = once(this.#process, 'exit')
    // It may be in the middle of a command that does not end.
    this.#process.kill('SIGKILL')
    await gone
  }

  async #script(commands: string): Promise<string> {
    const path = join(this.#place.directory, `block-${++this.#scripts}.sh`)
    await writeFile(path, `${commands}\n`)
    return path
  }

  #type(line: string): void {
    this.#process.stdin?.write(`${line}\n`)
  }
}

/** Does nothing when the group has ended. */
export function signalGroup(leader: number | undefined, name: NodeJS.Signals): void {
  // 0 would be our own group.
  if (leader === undefined || !(leader > 1)) return
  try {
    process.kill(-leader, name)
  } catch {
    // It has ended.
  }
}
