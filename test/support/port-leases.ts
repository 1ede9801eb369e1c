import { mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Ports for everything that runs below `test/`. All test processes of a user share one directory: a file in it is a lease, named
 * after its first and its last port, and has the pid of its holder. The lease of a process that has ended is free again.
 */
const directory = join(tmpdir(), `patchbay-test-ports-${process.getuid?.() ?? 0}`)
const lock = join(directory, 'lock')
const cursor = join(directory, 'next')
const lockWaitMs = 10_000

/** From 32,768 on the system gives out ports by itself: a connection of another test might have one of those. */
export const [firstPort, lastPort] = [10_240, 32_767]

export interface Lease {
  readonly first: number
  release(): void
}

/** Leases `count` ports in a row that no other test has, and that no other program uses. */
export function leasePorts(count: number): Lease {
  const first = locked(() => claim(count))
  const file = leaseFile(first, count)
  return { first, release: () => rmSync(file, { force: true }) }
}

const leaseFile = (first: number, count: number): string => join(directory, `${first}-${first + count - 1}`)

/** It begins behind the lease before: ports that have just become free rest for a while. */
function claim(count: number): number {
  const taken = portsInUse()
  for (const name of readdirSync(directory)) {
    const [, first, last] = /^(\d+)-(\d+)$/.exec(name) ?? []
    if (first === undefined) continue
    if (isOfLiving(join(directory, name))) for (let port = Number(first); port <= Number(last); port++) taken.add(port)
    else rmSync(join(directory, name), { force: true })
  }
  const start = Number(readIfThere(cursor)) || firstPort
  const first = freeRun(start, lastPort, count, taken) ?? freeRun(firstPort, lastPort, count, taken)
  if (first === undefined) throw new Error(`no ${count} test ports in a row are free; see ${directory}`)
  writeFileSync(leaseFile(first, count), String(process.pid))
  writeFileSync(cursor, String(first + count))
  return first
}

/** The first port of `count` free ones in a row. */
function freeRun(from: number, to: number, count: number, taken: ReadonlySet<number>): number | undefined {
  let first = from
  for (let port = from; port <= to; port++) {
    if (taken.has(port)) first = port + 1
    else if (port - first + 1 === count) return first
  }
  return undefined
}

/** Local ports of sockets, except of TCP connections in TIME-WAIT (state 06, see proc_net(5)), which hinder no listener. */
function portsInUse(): Set<number> {
  const found = new Set<number>()
  for (const table of ['tcp', 'tcp6', 'udp', 'udp6']) {
    for (const [, port = '', state] of readIfThere(`/proc/net/${table}`).matchAll(socketLine)) {
      if (state !== '06') found.add(Number.parseInt(port, 16))
    }
  }
  return found
}

const socketLine = /^ *\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} ([0-9A-F]{2})/gm

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return ''
  }
}

function isOfLiving(file: string): boolean {
  try {
    process.kill(Number(readFileSync(file, 'utf8')), 0)
    return true
  } catch (error) {
    // EPERM: the process is there. Otherwise the process, or the file, has gone.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** One process after the other: leases are read and changed together. */
function locked<T>(work: () => T): T {
  mkdirSync(directory, { recursive: true })
  const sleeper = new Int32Array(new SharedArrayBuffer(4))
  for (;;) {
    try {
      mkdirSync(lock)
      break
    } catch {
      // A process that was killed leaves its lock.
      const age = Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now())
      if (age > lockWaitMs) rmSync(lock, { recursive: true, force: true })
      Atomics.wait(sleeper, 0, 0, 5)
    }
  }
  try {
    return work()
  } finally {
    rmdirSync(lock)
  }
}
