import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { Qmp } from '../../../../runtime/node/drivers/qemu/qmp.ts'
import { hangMs } from '../../../support/limits.ts'

export const qemuName = 'qemu-system-x86_64'

/** A directory that is gone when the test has finished. */
export async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-qemu-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  return directory
}

export interface RunningQemu {
  readonly child: ChildProcess
  readonly socket: string
  /** What it wrote on standard error. */
  readonly complaints: () => string
  /** The exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals | null>
}

/** A real QEMU that does not outlive the test, whatever state it is in. */
export function startQemu(socket: string, args: readonly string[], command = qemuName): RunningQemu {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'] })
  let complaints = ''
  child.stderr.on('data', (bytes) => {
    complaints += String(bytes)
  })
  const ended = once(child, 'exit').then(([code, signal]) => (signal ?? code) as number | NodeJS.Signals | null)
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await ended
  })
  return { child, socket, ended, complaints: () => complaints }
}

/** A stopped QEMU without anything but a monitor. */
export async function bareQemu(...args: readonly string[]): Promise<RunningQemu> {
  const socket = join(await temporaryDirectory(), 'qmp.sock')
  return startQemu(socket, [
    ...['-S', '-display', 'none', '-nodefaults', '-qmp', `unix:${socket},server=on,wait=off`],
    ...args,
  ])
}

/** A monitor connection that does not outlive the test. */
export async function monitor(socket: string, ms = hangMs): Promise<Qmp> {
  const qmp = await Qmp.connect({ path: socket, ms })
  onTestFinished(() => qmp.close())
  return qmp
}
