import { once } from 'node:events'
import { chmod, copyFile, open, readFile, stat } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { findProgram } from '../../find-program.ts'
import { ChildProcessRunner } from '../../keeper/child-process.ts'

export interface ChildSpec {
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string
  /** Receives what it writes. */
  readonly log: string
}

/** A dynamips that runs. */
export interface DynamipsChild {
  /** On this host. */
  readonly pid: number
  /** Settles when it has ended, whoever ended it; never rejects. */
  readonly ended: Promise<unknown>
  /** SIGTERM to its process group, SIGKILL after `graceMs`; resolves when all of it has ended. Safe to call twice; never rejects. */
  stop(graceMs: number): Promise<unknown>
}

export type StartChild = (spec: ChildSpec) => Promise<DynamipsChild>

/** As a child of this process. */
export const startChild: StartChild = (spec) =>
  ChildProcessRunner.start({ type: 'process', stdio: 'none', ...spec }, () => {})

/**
 * The program to run: a copy in the directory. Debian gives dynamips capabilities for network devices, of which a router
 * that is measured has none. With them it cannot be run at all where they are taken from everybody, as in most containers
 * (EPERM of execve(2)), and it does not hear of its parent's death (PR_SET_PDEATHSIG is cleared). A copy has none.
 */
export async function unprivileged(program: string, directory: string): Promise<string> {
  // A script may look for its program beside itself.
  if (!(await isElf(program))) return program
  const copy = join(directory, 'dynamips')
  await copyFile(program, copy)
  await chmod(copy, 0o700)
  // Not where the file system does not let anything run.
  return findProgram(copy) ?? program
}

async function isElf(file: string): Promise<boolean> {
  const handle = await open(file).catch(() => undefined)
  if (handle === undefined) return false
  try {
    const { buffer } = await handle.read(Buffer.alloc(4), 0, 4, 0)
    return buffer.equals(Buffer.from('\x7fELF', 'latin1'))
  } finally {
    await handle.close()
  }
}

/** A TCP port of 127.0.0.1 that was free a moment ago: dynamips cannot be told to choose one. */
export async function freePort(): Promise<number> {
  const server = createServer()
  const listening = once(server, 'listening')
  server.listen({ port: 0, host: '127.0.0.1' })
  await listening
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

const mostWordBytes = 64 << 10

/** The end of what a program wrote, as it may be shown: printable, and without the path of its directory. */
export async function lastWords(log: string, directory: string): Promise<string> {
  const { size } = await stat(log).catch(() => ({ size: 0 }))
  if (size === 0 || size > mostWordBytes) return ''
  const text = await readFile(log, 'latin1').catch(() => '')
  const lines = text.replaceAll(`${directory}/`, '').replaceAll(directory, '').split(/\r?\n/)
  const said = lines.map((line) => line.replace(/[^\x20-\x7e]/g, ' ').trim()).filter((line) => line !== '')
  return said.slice(-2).join('; ').slice(-300)
}
