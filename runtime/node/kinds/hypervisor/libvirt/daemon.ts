import { delimiter } from 'node:path'
import { forSession } from '../../../programs/environment.ts'
import { runProgram } from '../../../programs/start.ts'
import { findProgram } from '../../../system/find-program.ts'
import { LibvirtError } from './libvirt-error.ts'

const startMs = 20_000
export const installCommand = 'sudo apt-get install libvirt-daemon-system'
/** Daemons are where users do not look. */
const place = () => [process.env.PATH ?? '', '/usr/sbin', '/usr/local/sbin'].join(delimiter)

/** The daemon for QEMU: the modular one, else the one for all. */
export function findDaemon(): string | undefined {
  return findProgram('virtqemud', place()) ?? findProgram('libvirtd', place())
}

/** Starts the user's own libvirt as its tools do: it ends by itself when nobody needs it for two minutes. */
export async function startSessionDaemon(): Promise<void> {
  const program = findDaemon()
  if (program === undefined) {
    throw new LibvirtError('unreachable', `libvirt is not installed (${installCommand})`)
  }
  // It answers when the program that was started has left it in the background.
  const options = { ms: startMs, variables: forSession }
  const { error: cause, stderr } = await runProgram(program, ['--timeout=120', '-d'], options)
  if (cause === null) return
  const words = stderr.trim() || cause.message
  throw new LibvirtError('unreachable', `${program} could not be started: ${words}`, { cause })
}
