import { existsSync } from 'node:fs'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import type { KeeperClient } from '../../runtime/node/keeper/client/client.ts'
import { ensureKeeper } from '../../runtime/node/keeper/client/launch.ts'
import { keeperDirectory } from '../../runtime/node/keeper/process/generation.ts'
import type { Exit, ProcessSpec } from '../../runtime/node/keeper/protocol/protocol.ts'
import { identify } from '../../runtime/node/os/system/process-identity.ts'
import { endsWithUs } from './ends-with-us.ts'

export interface TestKeeper {
  readonly data: string
  readonly client: KeeperClient
  /** The next end of a unit. */
  readonly exit: () => Promise<{ key: string; exit: Exit }>
  /** A process unit on the shell. */
  readonly shell: (key: string, script: string, more?: Partial<ProcessSpec>, port?: number) => Promise<{ pid: number }>
}

/** Keepers that earlier tests of this process have emptied: the start of one takes a third of a second of a processor. */
const given: { data: string; client: KeeperClient }[] = []

/** A keeper without units. It may have served an earlier test, and serves a later one when this one leaves it in order. */
export async function emptyKeeper(): Promise<TestKeeper> {
  const keeper = given.pop() ?? (await launch(await mkdtemp(join(tmpdir(), 'patchbay-keeper-'))))
  onTestFinished(async () => {
    if (await isEmptied(keeper)) given.push(keeper)
    else await shutDown(keeper)
  })
  return toTest(keeper)
}

/** Ends what runs in it, and deletes the files of the test; whether nothing else is left. */
async function isEmptied({ data, client }: { data: string; client: KeeperClient }): Promise<boolean> {
  try {
    for (const { key } of (await client.call('inventory', {})).units) {
      await client.call('unit.stop', { key, grace_ms: 0 })
      await client.call('unit.forget', { key })
    }
    for (const { key } of (await client.call('inventory', {})).ports) await client.call('port.close', { key })
    const { units, ports, links = [] } = await client.call('inventory', {})
    for (const name of await readdir(data))
      if (name !== 'run') await rm(join(data, name), { recursive: true, force: true })
    const records = await readdir(join(keeperDirectory(data), 'children')).catch(() => [])
    return [units, ports, links, records].every(({ length }) => length === 0)
  } catch {
    // It has ended.
    return false
  }
}

async function launch(data: string, idleMs?: number) {
  endsWithUs(data)
  const { client } = await ensureKeeper(data, idleMs === undefined ? {} : { idleMs })
  return { data, client }
}

async function shutDown({ data, client }: { data: string; client: KeeperClient }): Promise<void> {
  await client.call('shutdown', { grace_ms: 200 }).catch(() => {})
  await client.closed
  await rm(data, { recursive: true, force: true })
}

/** A keeper of its own for a test; it is shut down when the test ends. */
export async function startKeeper({ data, idleMs }: { data?: string; idleMs?: number } = {}): Promise<TestKeeper> {
  const keeper = await launch(data ?? (await mkdtemp(join(tmpdir(), 'patchbay-keeper-'))), idleMs)
  onTestFinished(() => shutDown(keeper))
  return toTest(keeper)
}

function toTest({ data: directory, client }: { data: string; client: KeeperClient }): TestKeeper {
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
