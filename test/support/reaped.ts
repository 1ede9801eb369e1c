import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { python3 } from './python.ts'

/** Becomes the parent of all that the program leaves behind (PR_SET_CHILD_SUBREAPER), and takes note of their ends. */
const reaper = `import ctypes, os, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
child = os.fork()
if child == 0:
    os.dup2(os.open('/dev/null', os.O_WRONLY), 1)
    os.execvp(sys.argv[1], sys.argv[1:])
print(child, flush=True)
while True:
    try:
        if os.wait()[0] == child:
            os.close(1)
    except ChildProcessError:
        break
`

/**
 * A program whose orphans are gone as soon as they have ended. Left to the first process of the system they may stay as zombies
 * for seconds: that of a container has seldom anything better to do than to look for them now and then.
 */
export class Reaped {
  readonly #pid: number
  readonly #gone: Promise<unknown>
  #hasEnded = false

  private constructor(pid: number, gone: Promise<unknown>) {
    this.#pid = pid
    this.#gone = gone.then(() => {
      this.#hasEnded = true
    })
  }

  static async start(command: readonly string[], env: NodeJS.ProcessEnv): Promise<Reaped> {
    const child = spawn(python3, ['-c', reaper, ...command], { env, stdio: ['ignore', 'pipe', 'ignore'], cwd: '/' })
    const lines = createInterface({ input: child.stdout })
    const gone = once(lines, 'close')
    const [pid] = await Promise.race([once(lines, 'line'), gone])
    if (pid === undefined) throw new Error(`python3 did not start ${command[0]}`)
    return new Reaped(Number(pid), gone)
  }

  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** Resolves when the program has ended; what it left behind goes on. */
  async kill(signal: NodeJS.Signals): Promise<void> {
    if (this.#hasEnded) return
    process.kill(this.#pid, signal)
    await this.#gone
  }
}
