import { mkdirSync } from 'node:fs'
import { Socket } from 'node:net'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { Switch } from '../../dataplane/switch/switch.ts'
import { takeLock } from '../../os/system/process-lock.ts'
import { version } from '../../os/system/version.ts'
import { ChildRecords } from './child-records.ts'
import { EmbeddedPcs } from './embedded-pcs.ts'
import { exitCode, generation, keeperDirectory, lockOf } from './generation.ts'
import { Panels } from './panels.ts'
import { KeeperServer } from './server.ts'
import { Units } from './units.ts'

/** Descriptor of the pipe to the launcher. */
const launcherDescriptor = 3

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
const packetSwitch = await Switch.start({
  captureFailed: (key, file, message) => server.emit('capture.failed', { key, file, message }),
  looped: (key, loop) => server.emit('bridge.looped', { key, ...loop }),
  log,
  // For measurements, and for hosts where the native library fails.
  ...(process.env.PATCHBAY_PACKET_PATH === 'portable' && { path: 'portable' as const }),
})
const units: Units = new Units(records, pcs, packetSwitch, new Panels(log), (key, run, exit) => {
  server.emit('unit.exit', { key, run, exit })
  endWhenIdle()
})
let services = 0
/** Whether the service that started this keeper has yet to connect. */
let isAwaited = false
let idle: NodeJS.Timeout | undefined
const server: KeeperServer = new KeeperServer({
  runDirectory,
  version,
  units,
  switch: packetSwitch,
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

// Removes the socket before the kernel frees the lock: after that the socket may be that of the next keeper.
process.on('exit', () => server.refuse())

await server.listen()
// Started by hand there is no launcher, and the descriptor is one of Node.
if (wanted !== undefined) greetLauncher()
endWhenIdle()

/** Ends the keeper when no service is connected or about to connect, and no unit is left. */
function endWhenIdle(): void {
  clearTimeout(idle)
  if (isBusy()) return
  idle = setTimeout(() => {
    if (!isBusy()) void shutdown(0)
  }, idleMs)
}

function isBusy(): boolean {
  return isAwaited || services > 0 || units.running > 0
}

async function shutdown(graceMs: number): Promise<void> {
  // A service that connects from now on waits for the end of this keeper, and starts the next one.
  server.refuse()
  try {
    await units.stopAll(graceMs)
    pcs.close()
    await packetSwitch.closeAll()
  } catch (error) {
    // It ends nevertheless: it is out of reach, and the next keeper ends what is left.
    log(`shutdown: ${error instanceof Error ? error.stack : String(error)}`)
  }
  // Lets the answer to the request go out first.
  setImmediate(() => {
    server.close()
    setTimeout(() => process.exit(0), 50)
  })
}

/** Locks the directory, or ends this process when another keeper has it. */
async function lock(directory: string): Promise<void> {
  if ((await takeLock(lockOf(directory))) === undefined) process.exit(exitCode.taken)
}

/** Tells the launcher that the socket is ready. It closes the pipe when it has connected, or has ended. */
function greetLauncher(): void {
  const launcher = new Socket({ fd: launcherDescriptor })
  isAwaited = true
  launcher.on('error', ignore('the pipe closes'))
  launcher.on('close', () => {
    isAwaited = false
    endWhenIdle()
  })
  launcher.resume()
  launcher.write('ready\n')
}
