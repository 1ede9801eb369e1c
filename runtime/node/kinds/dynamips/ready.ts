import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { ignore } from '../../../../src/async/ignore.ts'
import { endOfChildLog } from '../../keeper/child-log.ts'
import { logName } from './files.ts'
import { Hypervisor } from './hypervisor.ts'
import { HypervisorError } from './hypervisor-error.ts'

const retryMs = 20
/** It is said at the beginning of the log, of which little is there then. */
const maxLogBytes = 1 << 20

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
  const host = await said(join(directory, logName), port, deadline, signal)
  const left = () => Math.max(1, deadline - Date.now())
  const client = await Hypervisor.connect({ host, port, ms: left() })
  try {
    await client.run('hypervisor version', [], { ms: left(), signal })
    return client
  } catch (error) {
    client.close()
    throw error
  }
}

/**
 * A loopback address for the port on which dynamips takes commands. It asks for no credentials and skips what it does not understand, so
 * a web page could give commands by a form to a port of 127.0.0.1: it cannot guess one address of 16 million. Elsewhere than on Linux
 * there is only that one.
 */
export function controlAddress(): string {
  if (process.platform !== 'linux') return '127.0.0.1'
  return `127.${randomInt(1, 255)}.${randomInt(0, 256)}.${randomInt(1, 255)}`
}

/** Waits until dynamips says in its log that it has the port, and at which address; it does so at once, and no event tells of it. */
async function said(log: string, port: number, deadline: number, signal: AbortSignal): Promise<string> {
  const begun = new RegExp(`IP = (127(?:\\.\\d{1,3}){3}), TCP port = ${port}\\.`)
  for (;;) {
    const [, host] = begun.exec((await endOfChildLog(log, 0, maxLogBytes)).toString('latin1')) ?? []
    if (host !== undefined) return host
    if (signal.aborted) throw new HypervisorError('aborted', 'Dynamips ended before it took commands')
    if (Date.now() >= deadline) throw new HypervisorError('unreachable', 'Dynamips does not begin to take commands')
    await pause(retryMs, undefined, { signal }).catch(ignore('it was aborted, as the next round sees'))
  }
}
