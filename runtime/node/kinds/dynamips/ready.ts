import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { endOfChildLog } from '../../keeper/child-log.ts'
import { logName } from './files.ts'
import { Hypervisor } from './hypervisor.ts'
import { HypervisorError } from './hypervisor-error.ts'

const retryMs = 20
/** It is said at the beginning of the log, of which little is there then. */
const mostLogBytes = 1 << 20

export interface Reach {
  /** Where the program was started. */
  readonly directory: string
  readonly port: number
  /** Bound of all of it. */
  readonly ms: number
  /** Ends the wait early, such as when the process is known to have ended. */
  readonly signal: AbortSignal
}

/** A connection to the dynamips of a directory, and to no other program that may have its port. */
export async function reach({ directory, port, ms, signal }: Reach): Promise<Hypervisor> {
  const deadline = Date.now() + ms
  await said(join(directory, logName), `TCP port = ${port}.`, deadline, signal)
  const left = () => Math.max(1, deadline - Date.now())
  const client = await Hypervisor.connect({ port, ms: left() })
  try {
    await client.run('hypervisor version', [], { ms: left(), signal })
    return client
  } catch (error) {
    client.close()
    throw error
  }
}

/** Waits until dynamips says in its log that it has the port; it does so at once, and no event tells of it. */
async function said(log: string, text: string, deadline: number, signal: AbortSignal): Promise<void> {
  while (!(await endOfChildLog(log, 0, mostLogBytes)).includes(text, 0, 'latin1')) {
    if (signal.aborted) throw new HypervisorError('aborted', 'Dynamips ended before it took commands')
    if (Date.now() >= deadline) throw new HypervisorError('unreachable', 'Dynamips does not begin to take commands')
    await pause(retryMs, undefined, { signal }).catch(() => {})
  }
}
