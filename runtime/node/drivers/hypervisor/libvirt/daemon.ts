import { delimiter } from 'node:path'
import { forSession } from '../../../os/programs/environment.ts'
import { runProgram } from '../../../os/programs/start.ts'
import { findProgram } from '../../../os/system/find-program.ts'
import { LibvirtError } from './libvirt-error.ts'

const startMs = 20_000
export const installCommand = 'sudo apt-get install libvirt-daemon-system'
/** Users often lack the sbin directories in PATH. */
const searchPath = () => [process.env.PATH ?? '', '/usr/sbin', '/usr/local/sbin'].join(delimiter)

/** The daemon for QEMU: virtqemud, else libvirtd. */
export const findDaemon = (): string | undefined =>
  findProgram('virtqemud', searchPath()) ?? findProgram('libvirtd', searchPath())

/** Starts the daemon of the user's session. It ends after two minutes without clients. */
export async function startSessionDaemon(): Promise<void> {
  const program = findDaemon()
  if (program === undefined) throw new LibvirtError('unreachable', `libvirt is not installed (${installCommand})`)
  // With -d the program returns when the daemon takes connections.
  const options = { ms: startMs, variables: forSession }
  const { error: cause, stderr } = await runProgram(program, ['--timeout=120', '-d'], options)
  if (cause === null) return
  const reason = stderr.trim() || cause.message
  throw new LibvirtError('unreachable', `${program} could not be started: ${reason}`, { cause })
}
