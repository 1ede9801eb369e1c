import { execFile } from 'node:child_process'
import { delimiter } from 'node:path'
import { findProgram } from '../../../find-program.ts'
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
export function startSessionDaemon(): Promise<void> {
  const program = findDaemon()
  if (program === undefined) {
    throw new LibvirtError('unreachable', `libvirt is not installed (${installCommand})`)
  }
  return new Promise((resolve, reject) => {
    const settings = { timeout: startMs, killSignal: 'SIGKILL' } as const
    // It answers when the program that was started has left it in the background.
    const child = execFile(program, ['--timeout=120', '-d'], settings, (cause, _, stderr) => {
      if (cause === null) return resolve()
      const words = stderr.trim() || cause.message
      reject(new LibvirtError('unreachable', `${program} could not be started: ${words}`, { cause }))
    })
    child.stdin?.end()
  })
}
