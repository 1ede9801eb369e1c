import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { endOfChildLog } from '../../keeper/process/child-log.ts'
import { logName } from './files.ts'
import { Hypervisor } from './hypervisor.ts'
import { HypervisorError } from './replies.ts'

const retryMs = 20
const maxLogBytes = 1 << 20

/**
 * Connects to the dynamips of a directory, and to no other program on that port. `ms` is the timeout of all steps; `signal` cancels
 * the wait.
 */
export async function reach(options: {
  readonly directory: string
  readonly port: number
  readonly ms: number
  readonly signal: AbortSignal
}): Promise<Hypervisor> {
  const { directory, port, ms, signal } = options
  const deadline = Date.now() + ms
  const host = await listeningAddress(join(directory, logName), port, deadline, signal)
  const remaining = () => Math.max(1, deadline - Date.now())
  const client = await Hypervisor.connect({ host, port, ms: remaining() })
  try {
    await client.run('hypervisor version', [], { ms: remaining(), signal })
    return client
  } catch (error) {
    client.close()
    throw error
  }
}

/**
 * A loopback address for the control port. Dynamips asks for no credentials and skips lines that it does not understand, so a form
 * of a web page could send commands to 127.0.0.1. It cannot guess one address of 16 million. Only Linux has these addresses.
 */
export function controlAddress(): string {
  if (process.platform !== 'linux') return '127.0.0.1'
  return `127.${randomInt(1, 255)}.${randomInt(0, 256)}.${randomInt(1, 255)}`
}

/** The address on which dynamips listens. Dynamips writes it to its log at its start; the log is polled. */
async function listeningAddress(log: string, port: number, deadline: number, signal: AbortSignal): Promise<string> {
  const listening = new RegExp(`IP = (127(?:\\.\\d{1,3}){3}), TCP port = ${port}\\.`)
  for (;;) {
    const [, host] = listening.exec((await endOfChildLog(log, 0, maxLogBytes)).toString('latin1')) ?? []
    if (host !== undefined) return host
    if (signal.aborted) throw new HypervisorError('aborted', 'Dynamips ended before it took commands')
    if (Date.now() >= deadline) throw new HypervisorError('unreachable', 'Dynamips does not accept commands')
    await pause(retryMs, undefined, { signal }).catch(ignore('the loop checks the signal'))
  }
}
