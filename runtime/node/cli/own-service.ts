import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, readFileSync, renameSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { isRunning, runningService, type ServiceFile } from '../engine/storage/service-file.ts'
import { selected } from '../os/programs/environment.ts'
import { startProgram } from '../os/programs/start.ts'
import { reasonOf } from '../os/system/error-reason.ts'
import { dataDirectory } from './data-directory.ts'
import { CommandError, exits } from './exits.ts'

const startMs = 30_000
const endMs = 60_000
const pollMs = 50
const maxLogBytes = 10 << 20

export const logOf = (data: string): string => join(data, 'run', 'service.log')

/** The running service of this user, or one that is started now, detached: it goes on when the command has ended. */
export async function ownService(env = process.env): Promise<{ service: ServiceFile; isNew: boolean; data: string }> {
  const data = await dataDirectory(env)
  const running = runningService(data)
  if (running !== undefined) return { service: running, isNew: false, data }
  let fault = await start(data, env, [])
  // Another program has the port of the settings.
  if (fault?.includes('is in use')) fault = await start(data, env, ['--port', '0'])
  // Two commands may start it at once: the data directory has one service.
  if (fault !== undefined && !fault.includes('Another Patchbay runs')) throw failed(fault)
  for (const limit = Date.now() + startMs; Date.now() < limit; await sleep(pollMs)) {
    const service = runningService(data)
    if (service !== undefined) return { service, isNew: fault === undefined, data }
  }
  throw failed(fault ?? `it did not report its address within ${startMs / 1000} s; see ${logOf(data)}`)
}

const failed = (fault: string): CommandError =>
  new CommandError(exits.noService, `the service could not be started: ${fault}`)

/** Starts a service; resolves when it is ready, or with the reason when it ended. */
async function start(data: string, env: NodeJS.ProcessEnv, flags: readonly string[]): Promise<string | undefined> {
  const { PATCHBAY_SERVER: _, ...inherited } = env
  const path = logOf(data)
  let child: ChildProcess
  let begin: number
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
    if (size > maxLogBytes) renameSync(path, `${path}.1`)
    begin = size > maxLogBytes ? 0 : size
    const log = openSync(path, 'a', 0o600)
    const [program = ''] = process.argv.slice(1)
    child = startProgram(
      process.execPath,
      [...process.execArgv, program, 'serve', '--data', data, '--on-exit', 'keep', ...flags],
      { detached: true, stdio: ['ignore', 'pipe', log], set: selected(['*'], inherited) },
    )
    closeSync(log)
  } catch (error) {
    return `${dirname(path)}: ${reasonOf(error)}`
  }
  const ready = new Promise<undefined>((resolve) => {
    if (child.stdout !== null) createInterface({ input: child.stdout }).once('line', () => resolve(undefined))
  })
  const ended = once(child, 'close').then(() => lastMessage(path, begin))
  const fault = await Promise.race([
    ready,
    ended,
    sleep(startMs, `it was not ready within ${startMs / 1000} s; see ${path}`, { ref: false }),
  ])
  child.stdout?.destroy()
  child.unref()
  return fault
}

/** What the service said before it ended. */
function lastMessage(path: string, begin: number): string {
  const lines = readFileSync(path).subarray(begin).toString().trim().split('\n')
  const said = lines.filter((it) => it.startsWith('patchbay: ')).at(-1)
  return said?.slice('patchbay: '.length) ?? lines.at(-1) ?? 'it ended without a message'
}

/** Ends the service politely; resolves when its process has ended. */
export async function stopService(service: ServiceFile): Promise<void> {
  const { pid } = service.process
  process.kill(pid, 'SIGTERM')
  for (const limit = Date.now() + endMs; Date.now() < limit; await sleep(pollMs)) if (!isRunning(service)) return
  throw new CommandError(exits.failed, `the service (process ${pid}) did not end within ${endMs / 1000} s`)
}
