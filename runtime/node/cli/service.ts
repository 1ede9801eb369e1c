import { closeSync, createReadStream, openSync, readSync, statSync, watch } from 'node:fs'
import { counted } from '../../../src/lib/text/counted.ts'
import { escapeUnsafeText } from '../../../src/lib/text/escape.ts'
import { runningService, type ServiceFile } from '../engine/storage/service-file.ts'
import { reasonOf } from '../os/system/error-reason.ts'
import { version } from '../os/system/version.ts'
import { clientAt } from './client.ts'
import type { CommandInput, logging, outputFlags } from './command.ts'
import { countOf } from './counts.ts'
import { dataDirectory } from './data-directory.ts'
import { CommandError, exits } from './exits.ts'
import type { CommandOutcome } from './outcome.ts'
import { logOf, ownService, stopService } from './own-service.ts'

/** `patchbay service status`: the service of this user: where it is, and what runs on it. */
export async function serviceStatus({ signal }: CommandInput<typeof outputFlags>): Promise<CommandOutcome> {
  const data = await dataDirectory(process.env)
  const service = runningService(data)
  if (service === undefined)
    return { exit: exits.noService, json: { running: false, data }, text: () => 'No service is running' }
  const { url, process: it } = service
  const labs = (await clientAt({ url, token: service.token }).call('GET /v2/projects', { signal })).length
  const found = { running: true, url, version: service.version, pid: it.pid, data, labs }
  const other = service.version === version ? '' : ` (this program is ${version})`
  return {
    json: found,
    text: () =>
      [
        `Running on ${url}`,
        `  version    ${service.version}${other}`,
        `  process    ${it.pid}`,
        `  data       ${data}`,
        `  log        ${logOf(data)}`,
        `  labs       ${labs}`,
      ].join('\n'),
  }
}

/** `patchbay service start`: starts the service of this user in the background, if none runs. */
export async function serviceStart(_: CommandInput<typeof outputFlags>): Promise<CommandOutcome> {
  const { service, isNew } = await ownService()
  const { url } = service
  return {
    json: { started: isNew, url },
    text: () => (isNew ? `Started a service on ${url}` : `A service is already running on ${url}`),
  }
}

/** `patchbay service stop`: ends the service, and says which nodes go on. */
export async function serviceStop({ signal }: CommandInput<typeof outputFlags>): Promise<CommandOutcome> {
  const service: ServiceFile | undefined = runningService(await dataDirectory(process.env))
  if (service === undefined) return { json: { stopped: false }, text: () => 'No service is running' }
  const { url, on_exit = 'keep' } = service
  const running = await runningLabs(service, signal)
  await stopService(service)
  const kept = on_exit === 'keep' ? running : []
  return {
    json: { stopped: true, url, still_running: kept },
    async text() {
      const { shown } = await import('./table.ts')
      if (kept.length === 0) return `Stopped the service on ${url}`
      return [
        `Stopped the service on ${url}. These nodes keep running:`,
        ...kept.map(({ lab, nodes }) => `  ${shown(lab)}: ${counted(nodes, 'node')}`),
        '"patchbay service start" takes them over; then "patchbay down LAB" stops them',
      ].join('\n')
    },
  }
}

/** Longest wait for the labs of a service that is to be stopped, ms. */
const labsMs = 5000

/** The labs with running nodes, and their number; none where the service does not say: it is stopped in any case. */
async function runningLabs(
  { url, token }: ServiceFile,
  signal: AbortSignal,
): Promise<{ lab: string; nodes: number }[]> {
  const labs = await clientAt({ url, token })
    .call('GET /v2/projects', { signal, timeoutMs: labsMs })
    .catch(() => [])
  return labs.flatMap(({ name, counts }) => (counts?.running ? [{ lab: name, nodes: counts.running }] : []))
}

const tailBytes = 1 << 20

/** `patchbay service logs [-f]`: the last lines of its log. */
export async function serviceLogs({ flags, signal }: CommandInput<typeof logging>): Promise<number | CommandOutcome> {
  const path = logOf(await dataDirectory(process.env))
  const count = countOf(flags)
  let size: number
  try {
    size = statSync(path).size
    const begin = Math.max(0, size - tailBytes)
    const bytes = Buffer.alloc(size - begin)
    const file = openSync(path, 'r')
    readSync(file, bytes, 0, bytes.length, begin)
    closeSync(file)
    const lines = bytes.toString().split('\n').slice(0, -1).slice(-count)
    if (flags.json) return { json: { path, lines }, text: () => lines.join('\n') }
    process.stdout.write(lines.map((it) => `${escapeUnsafeText(it)}\n`).join(''))
  } catch (error) {
    throw new CommandError(exits.failed, [
      { message: `${path}: ${reasonOf(error)}`, hint: 'only a service that runs in the background has a log' },
    ])
  }
  if (!flags.follow) return exits.done
  const decoder = new TextDecoder()
  let isBusy = false
  const more = async () => {
    if (isBusy) return
    isBusy = true
    const now = statSync(path, { throwIfNoEntry: false })?.size ?? 0
    if (now < size) size = 0
    for await (const piece of createReadStream(path, { start: size, end: Math.max(size, now - 1) })) {
      size += (piece as Buffer).length
      process.stdout.write(escapeUnsafeText(decoder.decode(piece as Buffer, { stream: true })))
    }
    isBusy = false
  }
  const watcher = watch(path, () => void more().catch(() => undefined))
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
  watcher.close()
  return exits.interrupted
}
