import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { onTestFinished } from 'vitest'

/** What a program may try to reach, beside what it always tries. */
export interface Targets {
  /** Files to read, and directories to write a file into. */
  readonly files?: readonly string[]
  readonly directories?: readonly string[]
  /** UNIX sockets by path, and TCP ports of 127.0.0.1. */
  readonly sockets?: readonly string[]
  readonly ports?: readonly number[]
  /** Processes to signal. */
  readonly pids?: readonly number[]
}

/** Tests are made one after the other, so the sum of the bits tells which of them reached what. */
export const reachBits = {
  secret: 1,
  shadow: 2,
  file: 4,
  directory: 8,
  socket: 16,
  port: 32,
  signal: 64,
  keeper: 128,
} as const

/**
 * A program that is taken for an IOU image and tries to reach what it must not. To `-h` it answers with the sum of `reachBits`
 * of what it reached as its default memory; else it writes `NAME reached` or `NAME refused` lines, then `done`, and stays.
 */
export async function report(targets: Targets = {}): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-report-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const list = (items: readonly (string | number)[] = []) =>
    `{${[...items.map((it) => JSON.stringify(String(it))), '0'].join(',')}}`
  const { files, directories, sockets, ports, pids } = targets
  const defines = { FILES: files, DIRECTORIES: directories, SOCKETS: sockets, PORTS: ports, PIDS: pids }
  const program = join(directory, 'i86bi-report.bin')
  const args = Object.entries(defines).map(([name, items]) => `-D${name}=${list(items)}`)
  await promisify(execFile)('gcc', ['-Wall', '-Werror', ...args, '-o', program, join(import.meta.dirname, 'report.c')])
  return program
}
