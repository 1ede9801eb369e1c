import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { createInterface } from 'node:readline'

const program = join(import.meta.dirname, '../../dist/patchbay.js')

/** The built program, running on a data directory of its own. */
export interface Service {
  readonly url: string
  /** Milliseconds from exec to the first answer. */
  readonly coldStartMs: number
  call(method: string, path: string, body?: unknown): Promise<unknown>
  /** Resident memory of the service, the keeper and everything they started, MB. */
  memoryMb(): Promise<number>
  close(): Promise<void>
}

/** Starts `dist/patchbay.js serve` with these extra flags. */
export async function startService(...flags: string[]): Promise<Service> {
  const data = await mkdtemp(join(tmpdir(), 'patchbay-bench-'))
  const began = performance.now()
  const child = spawn(
    process.execPath,
    [program, 'serve', '--port', '0', '--data', data, '--log-level', 'error', ...flags],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const url = await readyUrl(child)
  const first = await fetch(`${url}/v2/compute/version`)
  await first.arrayBuffer()
  const coldStartMs = performance.now() - began
  return {
    url,
    coldStartMs,
    async call(method, path, body) {
      const answer = await fetch(url + path, { method, ...(body !== undefined && { body: JSON.stringify(body) }) })
      const text = await answer.text()
      if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
      return text === '' ? undefined : JSON.parse(text)
    },
    memoryMb: () => memoryOf(data),
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

/** Proportional set size (shared pages counted once) of every process that names the data directory, and of its descendants. */
async function memoryOf(data: string): Promise<number> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const processes = await Promise.all(
    pids.map(async (pid) => {
      const [command, stat, rollup] = await Promise.all(
        ['cmdline', 'stat', 'smaps_rollup'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')),
      )
      const parent = /\) \S (\d+)/.exec(stat ?? '')?.[1] ?? ''
      return {
        pid,
        parent,
        named: command?.includes(data) ?? false,
        kb: Number(/^Pss:\s+(\d+)/m.exec(rollup ?? '')?.[1] ?? 0),
      }
    }),
  )
  const ours = new Set(processes.filter(({ named }) => named).map(({ pid }) => pid))
  for (let grew = true; grew; ) {
    const before = ours.size
    for (const { pid, parent } of processes) if (ours.has(parent)) ours.add(pid)
    grew = ours.size > before
  }
  return processes.reduce((sum, { pid, kb }) => sum + (ours.has(pid) ? kb : 0), 0) / 1024
}
