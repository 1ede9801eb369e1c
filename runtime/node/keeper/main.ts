import { mkdirSync, writeSync } from 'node:fs'
import { Switch } from '../switch/switch.ts'
import { takeLock } from '../system/process-lock.ts'
import { version } from '../system/version.ts'
import { ChildRecords } from './child-records.ts'
import { EmbeddedPcs } from './embedded-pcs.ts'
import { exitCode, generation, keeperDirectory, lockName } from './generation.ts'
import { KeeperServer } from './server.ts'
import { Units } from './units.ts'

/** Descriptor on which the launcher waits for a line: the socket is ready. */
const readyDescriptor = 3

const [data, idleText, wanted] = process.argv.slice(2)
if (data === undefined) throw new Error('usage: keeper DATA_DIRECTORY [IDLE_MS] [GENERATION]')
const idleMs = Number(idleText ?? 15_000)
if (wanted !== undefined && wanted !== generation()) process.exit(exitCode.replaced)

const runDirectory = keeperDirectory(data)
mkdirSync(runDirectory, { recursive: true, mode: 0o700 })
await lock(runDirectory)

const log = (message: string) => process.stderr.write(`${new Date().toISOString()} ${message}\n`)
const records = new ChildRecords(runDirectory)
const pcs = new EmbeddedPcs(records, log)
const lan = await Switch.start({
  captureFailed: (key, file, message) => server.emit('capture.failed', { key, file, message }),
  looped: (key, loop) => server.emit('bridge.looped', { key, ...loop }),
  log,
  // For measurements, and for hosts where the native library fails.
  ...(process.env.PATCHBAY_PACKET_PATH === 'portable' && { path: 'portable' as const }),
})
const units: Units = new Units(records, pcs, lan, (key, run, exit) => {
  server.emit('unit.exit', { key, run, exit })
  endWhenIdle()
})
let services = 0
let idle: NodeJS.Timeout | undefined
const server: KeeperServer = new KeeperServer({
  runDirectory,
  version,
  units,
  switch: lan,
  onServices(count) {
    services = count
    endWhenIdle()
  },
  shutdown,
})

process.on('SIGTERM', () => void shutdown(3000))
// Ctrl-C and a closed terminal must end the service only, not the lab.
for (const signal of ['SIGINT', 'SIGHUP', 'SIGQUIT'] as const) process.on(signal, () => {})
for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
  process.on(event, (error: unknown) => {
    log(`${event}: ${error instanceof Error ? error.stack : String(error)}`)
    process.exit(1)
  })
}

await server.listen()
endWhenIdle()
ready()

/** Ends the keeper when no service is connected and no unit is left. */
function endWhenIdle(): void {
  clearTimeout(idle)
  if (services > 0 || units.running > 0) return
  idle = setTimeout(() => {
    if (services === 0 && units.running === 0) void shutdown(0)
  }, idleMs)
}

async function shutdown(graceMs: number): Promise<void> {
  await units.stopAll(graceMs)
  pcs.close()
  await lan.closeAll()
  // Lets the answer to the request go out first.
  setImmediate(() => {
    server.close()
    setTimeout(() => process.exit(0), 50)
  })
}

/** Locks the directory, or ends this process when another keeper has it. */
async function lock(directory: string): Promise<void> {
  if ((await takeLock(lockName(directory))) === undefined) process.exit(exitCode.taken)
}

function ready(): void {
  try {
    writeSync(readyDescriptor, 'ready\n')
  } catch {
    // Started by hand: no launcher waits.
  }
}
