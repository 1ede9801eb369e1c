import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import type { KeeperClient } from '../../runtime/node/keeper/client.ts'
import { ensureKeeper } from '../../runtime/node/keeper/launch.ts'
import type { Exit, ProcessSpec } from '../../runtime/node/keeper-protocol/protocol.ts'
import { identify } from '../../runtime/node/system/process-identity.ts'
import { endsWithUs } from './ends-with-us.ts'

export interface TestKeeper {
  readonly data: string
  readonly client: KeeperClient
  /** The next end of a unit. */
  readonly exit: () => Promise<{ key: string; exit: Exit }>
  /** A process unit on the shell. */
  readonly shell: (key: string, script: string, more?: Partial<ProcessSpec>, port?: number) => Promise<{ pid: number }>
}

/** A keeper of its own for a test; it is shut down when the test ends. */
export async function startKeeper({ data, idleMs }: { data?: string; idleMs?: number } = {}): Promise<TestKeeper> {
  const directory = data ?? (await mkdtemp(join(tmpdir(), 'patchbay-keeper-')))
  endsWithUs(directory)
  const { client } = await ensureKeeper(directory, idleMs === undefined ? {} : { idleMs })
  onTestFinished(async () => {
    await client.call('shutdown', { grace_ms: 200 }).catch(() => {})
    await client.closed
    await rm(directory, { recursive: true, force: true })
  })
  const exits: { key: string; exit: Exit }[] = []
  let wake = () => {}
  client.onExit = (key, _, exit) => {
    exits.push({ key, exit })
    wake()
  }
  return {
    data: directory,
    client,
    async exit() {
      while (exits.length === 0) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      return exits.shift() as { key: string; exit: Exit }
    },
    shell: (key, script, more = {}, port) =>
      client.call('unit.start', {
        key,
        run: {
          type: 'process',
          command: '/bin/sh',
          args: ['-c', script],
          cwd: directory,
          log: join(directory, `${key}.log`),
          stdio: 'pipe',
          ...more,
        },
        ...(port !== undefined && { console: { host: '127.0.0.1', port } }),
      }),
  }
}

/**
 * Kills a keeper that this process has started, and waits until nothing of it is left: the connections to it end before its
 * threads have, and before its locks are free.
 */
export async function killKeeper({ pid, closed }: KeeperClient): Promise<void> {
  process.kill(pid, 'SIGKILL')
  await closed
  await expect.poll(() => existsSync(`/proc/${pid}`)).toBe(false)
}

/** Whether a process runs; one that has ended and only waits to be noticed does not. */
export const isAlive = (pid: number): boolean => identify(pid) !== undefined
