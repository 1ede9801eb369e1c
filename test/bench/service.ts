import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { createInterface } from 'node:readline'
import { tickMs } from '../../runtime/node/os/system/processor-time.ts'
import { callsAt } from '../support/calls.ts'
import { endsWithUs } from '../support/ends-with-us.ts'

/** The build that is measured: a directory with `patchbay.js` in it. */
let build = join(import.meta.dirname, '../../dist')

/** Measures another build from now on. */
export function measure(directory: string): void {
  build = directory
}

/** The program of the build that is measured. */
export const programOf = (): string => join(build, 'patchbay.js')

/** The built program, running on a data directory of its own. */
export interface Service {
  readonly url: string
  /** Its data directory. */
  readonly data: string
  /** Milliseconds from exec to the first answer. */
  readonly coldStartMs: number
  call(method: string, path: string, body?: unknown): Promise<unknown>
  /** Resident memory of the service, the keeper and everything they started, MB. */
  memoryMb(): Promise<number>
  /** What the service and the keeper take, without what runs in them. */
  usage(): Promise<Usage>
  close(): Promise<void>
}

interface Usage {
  readonly memoryMb: number
  /** Processor time so far. */
  readonly cpuMs: number
}

/** Starts `patchbay.js serve` of the build with these extra flags. It ends with this process, however that ends. */
export const startService = (...flags: string[]): Promise<Service> => startServiceWith({}, ...flags)

/** The same with these variables: secrets are no flags. */
export async function startServiceWith(env: Record<string, string>, ...flags: string[]): Promise<Service> {
  const data = await mkdtemp(join(tmpdir(), 'patchbay-bench-'))
  endsWithUs(data)
  const began = performance.now()
  const child = spawn(
    process.execPath,
    [programOf(), 'serve', '--port', '0', '--data', data, '--log-level', 'error', ...flags],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, ...env },
    },
  )
  const url = await readyUrl(child)
  const first = await fetch(`${url}/v2/compute/version`)
  await first.arrayBuffer()
  const coldStartMs = performance.now() - began
  return {
    url,
    data,
    coldStartMs,
    ...callsAt(url),
    memoryMb: async () => memoryOf(await processesOf(data)),
    async usage() {
      // Node runs what is ours.
      const ours = (await processesOf(data)).filter(({ command }) => command.startsWith(process.execPath))
      const times = await Promise.all(ours.map(({ pid }) => cpuMsOf(pid)))
      return { memoryMb: memoryOf(ours), cpuMs: times.reduce((sum, time) => sum + time, 0) }
    },
    async close() {
      child.kill('SIGTERM')
      if (child.exitCode === null) await once(child, 'exit')
      await rm(data, { recursive: true, force: true })
    },
  }
}

async function readyUrl(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error('no standard output')
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /http:\/\/\S+/.exec(line)?.[0]
    if (url !== undefined) return url
  }
  throw new Error('the service ended before it was ready; run "npm run build" first')
}

interface Process {
  readonly pid: string
  readonly parent: string
  readonly command: string
  /** Proportional set size: shared pages counted once. */
  readonly kb: number
}

const memoryOf = (processes: readonly Process[]) => processes.reduce((sum, { kb }) => sum + kb, 0) / 1024

/** Every process that names the data directory, and its descendants. */
async function processesOf(data: string): Promise<Process[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const processes = await Promise.all(
    pids.map(async (pid) => {
      const [command = '', stat = '', rollup = ''] = await Promise.all(
        ['cmdline', 'stat', 'smaps_rollup'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')),
      )
      const parent = /\) \S (\d+)/.exec(stat)?.[1] ?? ''
      return { pid, parent, command, kb: Number(/^Pss:\s+(\d+)/m.exec(rollup)?.[1] ?? 0) }
    }),
  )
  const ours = new Set(processes.filter(({ command }) => command.includes(data)).map(({ pid }) => pid))
  for (let grew = true; grew; ) {
    const before = ours.size
    for (const { pid, parent } of processes) if (ours.has(parent)) ours.add(pid)
    grew = ours.size > before
  }
  return processes.filter(({ pid }) => ours.has(pid))
}

/** With the threads that it had and has no more; in steps of 10 ms. */
async function cpuMsOf(pid: string): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * tickMs
}
