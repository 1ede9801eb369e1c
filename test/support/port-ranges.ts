import { mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'

/**
 * Blocks of ports, below those that the system gives out by itself (from 32,768): another test's connection might have one of
 * those. From 30,000 on are those of the handlers' tests.
 */
const firstPort = 10_500
const blockSize = 150
const blocks = 130

const directory = join(tmpdir(), `patchbay-test-ports-${process.getuid?.() ?? 0}`)
const lock = join(directory, 'lock')
const lockWaitMs = 10_000

/** What this process holds for the test file that it runs: the file's own number of a block -> the block. */
const held = new Map<number, number>()
let heldFor: string | undefined

/**
 * A port range that no other test has: the same one for the same number in a test file, until another file begins. It is the block
 * of that number where no other process has it.
 */
export function portRanges(number: number): Record<string, [number, number]> {
  const first = firstPort + blockOf(number) * blockSize
  return {
    console_port_range: [first, first + 59],
    udp_port_range: [first + 60, first + 139],
    vnc_port_range: [first + 140, first + 149],
  }
}

function blockOf(number: number): number {
  const file = expect.getState().testPath
  if (file !== heldFor) {
    for (const block of held.values()) rmSync(join(directory, String(block)), { force: true })
    held.clear()
    heldFor = file
  }
  const known = held.get(number)
  if (known !== undefined) return known
  const block = exclusively(() => claim(number))
  held.set(number, block)
  return block
}

/** A block that no process has which is still there: the wanted one, or else another. */
function claim(wanted: number): number {
  const taken = new Set(readdirSync(directory).filter((name) => name !== 'lock' && isOfLiving(join(directory, name))))
  for (const block of [wanted, ...Array(blocks).keys()]) {
    if (taken.has(String(block))) continue
    writeFileSync(join(directory, String(block)), String(process.pid))
    return block
  }
  throw new Error(`all ${blocks} blocks of test ports are taken; see ${directory}`)
}

function isOfLiving(file: string): boolean {
  try {
    process.kill(Number(readFileSync(file, 'utf8')), 0)
    return true
  } catch (error) {
    // EPERM: it is there. Else the process, or the file, has gone.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** One process after the other: what is taken is looked at and changed together. */
function exclusively<T>(work: () => T): T {
  mkdirSync(directory, { recursive: true })
  const sleeper = new Int32Array(new SharedArrayBuffer(4))
  for (;;) {
    try {
      mkdirSync(lock)
      break
    } catch {
      // Who had it was killed.
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
