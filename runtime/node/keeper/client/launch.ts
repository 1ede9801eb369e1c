import { closeSync, mkdirSync, openSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { withTimeout } from '../../../../src/lib/async/timeout.ts'
import { forNode } from '../../os/programs/environment.ts'
import { programArguments } from '../../os/programs/own-program.ts'
import { startProgram } from '../../os/programs/start.ts'
import { exitCode, generation, hasKeeper, keeperDirectory } from '../process/generation.ts'
import { KeeperError } from '../protocol/error.ts'
import { KeeperClient } from './client.ts'

/** Timeout of the start of a keeper, ms: that of every emulator, on a busy host. */
const launchMs = 30_000
const retryMs = 50
/** Keepers that are started before a keeper that always ends at once is an error. */
const maxLaunches = 3
const unsettled = `the keeper has been starting or ending for more than ${launchMs / 1000} s`
const largestLog = 1 << 20
const defaultIdleMs = 15_000

export interface EnsureOptions {
  /** How long a new keeper stays without a service and without units, ms. */
  readonly idleMs?: number
  /** Called when a keeper hangs; the call then waits for it. Without it a hung keeper is an error (`no_answer`). */
  readonly onLate?: () => void
}

/** Connects to the keeper of this build in a data directory; starts one if there is none (`created`). */
export async function ensureKeeper(
  dataDirectory: string,
  { idleMs, onLate }: EnsureOptions = {},
): Promise<{ client: KeeperClient; created: boolean }> {
  const deadline = Date.now() + launchMs
  let launches = 0
  let launched: Duplex | undefined
  for (;;) {
    try {
      return {
        client: await KeeperClient.open(keeperDirectory(dataDirectory), onLate),
        created: launched !== undefined,
      }
    } catch (error) {
      const isThere = error instanceof KeeperError && ['protocol', 'no_answer'].includes(error.code)
      if (isThere || launches === maxLaunches) throw error
      if (Date.now() > deadline) throw new KeeperError('no_answer', unsettled, { cause: error })
    } finally {
      launched?.destroy()
    }
    launched = await launch(dataDirectory, idleMs)
    if (launched !== undefined) launches++
    // A keeper holds the directory but does not answer: it is just starting or ending.
    else await delay(retryMs)
  }
}

/**
 * Connects to the keeper in a directory, as `KeeperClient.open`. A keeper that has the directory and no socket is just starting or ending: waits
 * until it answers or has ended, at most `launchMs`.
 */
export async function openKeeper(directory: string, onLate?: () => void): Promise<KeeperClient> {
  const deadline = Date.now() + launchMs
  for (;;) {
    try {
      return await KeeperClient.open(directory, onLate)
    } catch (error) {
      const hasEnded = error instanceof KeeperError && error.code === 'internal'
      if (!hasEnded || Date.now() > deadline || !(await hasKeeper(directory))) throw error
    }
    await delay(retryMs)
  }
}

/**
 * Starts a keeper that outlives the service. Resolves when its socket is ready, with a pipe: until it is closed, the keeper does not count as idle.
 * Undefined when another keeper has the directory.
 */
async function launch(dataDirectory: string, idleMs: number | undefined): Promise<Duplex | undefined> {
  const runDirectory = join(dataDirectory, 'run')
  mkdirSync(runDirectory, { recursive: true, mode: 0o700 })
  const log = openLog(join(runDirectory, 'keeper.log'))
  const program = programArguments(
    new URL('../process/main.ts', import.meta.url),
    new URL('./keeper.js', import.meta.url),
  )
  const args = [...program, dataDirectory, String(idleMs ?? defaultIdleMs), generation()]
  const child = startProgram(process.execPath, args, {
    variables: forNode,
    // A process group of its own, so that signals to the service's group do not reach the keeper.
    detached: true,
    cwd: '/',
    stdio: ['ignore', log, log, 'pipe'],
  })
  closeSync(log)
  const ready = child.stdio[3] as Duplex
  ready.on('error', ignore('the end of the keeper shows at its socket'))
  try {
    const started = new Promise<boolean>((resolve, reject) => {
      const fail = (message: string) => reject(new KeeperError('internal', message))
      ready.once('data', () => resolve(true))
      child.once('error', (cause) => fail(`the keeper cannot be started: ${cause.message}`))
      child.once('exit', (code) => {
        if (code === exitCode.taken) resolve(false)
        else if (code === exitCode.replaced)
          fail('the files of the program were replaced since the service started: restart it')
        else fail(`the keeper ended at its start (code ${code}), see ${runDirectory}/keeper.log`)
      })
    })
    const isStarted = await withTimeout(started, launchMs, () => {
      throw new KeeperError('internal', `the keeper did not start within ${launchMs} ms`)
    })
    if (isStarted) return ready
    ready.destroy()
    return undefined
  } catch (error) {
    ready.destroy()
    throw error
  } finally {
    child.removeAllListeners()
    child.unref()
  }
}

/** Opens the log of the keeper, and rotates it when it is too large. */
function openLog(file: string): number {
  try {
    if (statSync(file).size > largestLog) renameSync(file, `${file}.1`)
  } catch {
    // The file does not exist yet.
  }
  return openSync(file, 'a', 0o600)
}
