import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { identify, isSame, type ProcessIdentity } from '../../os/system/process-identity.ts'

/** Where commands find the running service of their user, in `{data}/run/service.json` (mode 0600). */
export interface ServiceFile {
  readonly process: ProcessIdentity
  /** Origin at which commands on this machine reach it. */
  readonly url: string
  readonly version: string
  /** What happens to the nodes when it ends; absent: a service before this member. */
  readonly on_exit?: 'stop' | 'keep'
  /** Lets commands in; absent: the service wants no token. */
  readonly token?: string
}

const pathIn = (data: string): string => join(data, 'run', 'service.json')

/** Writes the file of this process. Throws the system's error. */
export function writeServiceFile(data: string, { url, ...more }: Omit<ServiceFile, 'process'>): void {
  const path = pathIn(data)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const file = { process: identify(process.pid) ?? { pid: process.pid }, url: reachable(url), ...more }
  writeFileSync(`${path}.new`, JSON.stringify(file), { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

/** Removes the file of this process. */
export function removeServiceFile(data: string): void {
  if (fileIn(data)?.process.pid === process.pid) rmSync(pathIn(data), { force: true })
}

/** The running service of a data directory; undefined when none runs. */
export function runningService(data: string): ServiceFile | undefined {
  const file = fileIn(data)
  return file !== undefined && isRunning(file) ? file : undefined
}

/** Whether the process of the file still runs. Without /proc, a process of the same number counts. */
export function isRunning({ process: recorded }: ServiceFile): boolean {
  if (recorded.boot_id !== undefined) return isSame(recorded, identify(recorded.pid))
  try {
    return process.kill(recorded.pid, 0)
  } catch {
    return false
  }
}

function fileIn(data: string): ServiceFile | undefined {
  try {
    return JSON.parse(readFileSync(pathIn(data), 'utf8')) as ServiceFile
  } catch {
    // No service has been started, or a disk was full.
    return undefined
  }
}

/** The addresses that mean "any" are those of this machine. */
function reachable(url: string): string {
  const it = new URL(url)
  if (it.hostname === '0.0.0.0') it.hostname = '127.0.0.1'
  if (it.hostname === '[::]') it.hostname = '[::1]'
  return it.origin
}
