import { closeSync, mkdirSync, openSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { forNode } from '../programs/environment.ts'
import { startProgram } from '../programs/start.ts'
import { KeeperClient } from './client.ts'
import { KeeperError } from './error.ts'
import { programArguments } from './program.ts'

const launchMs = 10_000
const retryMs = 50
const largestLog = 1 << 20
/** Exit code of a keeper that found another one: then that one is ours. */
const taken = 3

/** Connects to the keeper of a data directory, and starts one when there is none. `created` tells which. */
export async function ensureKeeper(
  dataDirectory: string,
  idleMs?: number,
): Promise<{ client: KeeperClient; created: boolean }> {
  const deadline = Date.now() + launchMs
  let created = false
  for (;;) {
    try {
      return { client: await KeeperClient.connect(dataDirectory), created }
    } catch (error) {
      const isOther = error instanceof KeeperError && error.code === 'protocol'
      if (isOther || created || Date.now() > deadline) throw error
    }
    created = await launch(dataDirectory, idleMs)
    // The directory has a keeper that does not answer: it has just begun, or is just ending.
    if (!created) await delay(retryMs)
  }
}

/** Starts a keeper that outlives us and resolves when its socket is there; false when another one was quicker. */
async function launch(dataDirectory: string, idleMs: number | undefined): Promise<boolean> {
  const runDirectory = join(dataDirectory, 'run')
  mkdirSync(runDirectory, { recursive: true, mode: 0o700 })
  const log = openLog(join(runDirectory, 'keeper.log'))
  const program = programArguments(new URL('./main.ts', import.meta.url), new URL('./keeper.js', import.meta.url))
  const child = startProgram(
    process.execPath,
    [...program, dataDirectory, ...(idleMs === undefined ? [] : [String(idleMs)])],
    {
      variables: forNode,
      // Out of our process group and away from our working directory, so that neither holds or ends it.
      detached: true,
      cwd: '/',
      stdio: ['ignore', log, log, 'pipe'],
    },
  )
  closeSync(log)
  const ready = child.stdio[3]
  try {
    return await new Promise<boolean>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new KeeperError('internal', `the keeper did not start within ${launchMs} ms`)),
        launchMs,
      )
      const settle = (finish: () => void) => {
        clearTimeout(timer)
        finish()
      }
      ready?.once('data', () => settle(() => resolve(true)))
      child.once('error', (cause) =>
        settle(() => reject(new KeeperError('internal', `the keeper cannot be started: ${cause.message}`))),
      )
      child.once('exit', (code) => {
        if (code === taken) settle(() => resolve(false))
        else
          settle(() =>
            reject(
              new KeeperError(
                'internal',
                `the keeper ended at its start (code ${code}), see ${runDirectory}/keeper.log`,
              ),
            ),
          )
      })
    })
  } finally {
    ready?.destroy()
    child.removeAllListeners()
    child.unref()
  }
}

/** The log of the keeper, which is set aside when it has grown. */
function openLog(file: string): number {
  try {
    if (statSync(file).size > largestLog) renameSync(file, `${file}.1`)
  } catch {
    // There is none yet.
  }
  return openSync(file, 'a', 0o600)
}
