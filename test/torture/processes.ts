import { readdir, readFile, readlink } from 'node:fs/promises'

export interface Process {
  readonly pid: number
  readonly parent: number
  /** As in proc(5): Z has ended and waits to be noticed. */
  readonly state: string
  readonly command: string
  readonly cwd: string
}

async function processes(): Promise<Process[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  return Promise.all(
    pids.map(async (pid) => {
      const [command, stat, cwd] = await Promise.all([
        readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''),
        readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ''),
        readlink(`/proc/${pid}/cwd`).catch(() => ''),
      ])
      const [, state = '', parent] = /\) (\S) (\d+)/.exec(stat) ?? []
      return { pid: Number(pid), parent: Number(parent), state, command: command.replaceAll('\0', ' ').trim(), cwd }
    }),
  )
}

/** What runs on a data directory: whatever names it, or works in it, and all below that. */
export async function processesOf(data: string): Promise<Process[]> {
  const all = (await processes()).filter(({ pid, state }) => state !== 'Z' && state !== '' && pid !== process.pid)
  const isIn = (text: string) => text.includes(data)
  const ours = new Set(all.filter(({ command, cwd }) => isIn(command) || isIn(cwd)).map(({ pid }) => pid))
  for (let before = -1; before !== ours.size; ) {
    before = ours.size
    for (const { pid, parent } of all) if (ours.has(parent)) ours.add(pid)
  }
  // The shell that would end all of this with us.
  return all.filter(({ pid, command }) => ours.has(pid) && !command.startsWith('/bin/sh -c directories='))
}

/** Resident memory in MB, and open descriptors. */
export async function usageOf(pid: number): Promise<{ mb: number; descriptors: number }> {
  const [status, descriptors] = await Promise.all([
    readFile(`/proc/${pid}/status`, 'utf8').catch(() => ''),
    readdir(`/proc/${pid}/fd`).catch(() => []),
  ])
  return { mb: Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1024, descriptors: descriptors.length }
}
