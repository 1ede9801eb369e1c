import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import { findProgram } from '../../runtime/node/os/system/find-program.ts'

/** The one of the system, if any: another one in PATH may be a script that looks for its interpreter first, for half a second. */
export const python3 = findProgram('/usr/bin/python3') ?? 'python3'

/**
 * A program in python that says a line when it has done its work, and waits; `end` kills it, and so does the end of the test.
 * Undefined when it ended before.
 */
export async function python(script: string, ...args: string[]): Promise<(() => Promise<void>) | undefined> {
  const child = spawn(python3, ['-c', `${script}\nprint(flush=True)\ninput()`, ...args])
  const exited = once(child, 'exit')
  const end = async () => {
    child.kill('SIGKILL')
    await exited
  }
  onTestFinished(end)
  const isReady = await Promise.race([once(child.stdout, 'data').then(() => true), exited.then(() => false)])
  return isReady ? end : undefined
}

/** Has another program hold the record lock of a file; the function that comes back ends it. Undefined when one does already. */
export const holdLock = (path: string): Promise<(() => Promise<void>) | undefined> =>
  python(
    `import fcntl, os, sys
fcntl.lockf(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX | fcntl.LOCK_NB)`,
    path,
  )
