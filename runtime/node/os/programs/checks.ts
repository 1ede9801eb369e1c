import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DoctorCheck } from '../../../../src/model/host.ts'
import { findProgram } from '../system/find-program.ts'
import { runProgram } from './start.ts'

const probeMs = 5000

export const ok = (name: string, found: string): DoctorCheck => ({ name, status: 'ok', found, fix: null })
const problem =
  (status: 'warning' | 'error') =>
  (name: string, found: string, fix: string | null): DoctorCheck => ({ name, status, found, fix })
export const warning = problem('warning')
export const error = problem('error')

/** A finding without which no node of these kinds runs. */
export const preventing = (check: DoctorCheck, ...kinds: readonly string[]): DoctorCheck =>
  check.status === 'ok' ? check : { ...check, prevents: [...kinds] }

/** Whether a program exists under one of its names. A missing one is a warning, because not all labs need it. */
export async function programCheck(
  name: string,
  programs: readonly string[],
  { use, install }: { readonly use: string; readonly install: string },
  signal?: AbortSignal,
): Promise<DoctorCheck> {
  const path = programs.map((it) => findProgram(it)).find((it) => it !== undefined)
  if (path === undefined) return warning(name, `not found; ${use}`, install)
  const version = await firstLine(path, signal)
  return ok(name, version === '' ? path : `${version}, ${path}`)
}

/** The first line of the version output of a program. */
async function firstLine(path: string, signal: AbortSignal | undefined): Promise<string> {
  // dynamips writes a log into its working directory, even with an option that only shows the version.
  const cwd = await mkdtemp(join(tmpdir(), 'patchbay-doctor-'))
  try {
    const run = { cwd, ms: probeMs, ...(signal !== undefined && { signal }) }
    const { stdout } = await runProgram(path, ['--version'], run)
    return stdout.trim().split('\n')[0]?.slice(0, 100) ?? ''
  } finally {
    await rm(cwd, { recursive: true, force: true })
  }
}
