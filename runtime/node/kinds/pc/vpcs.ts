import { statSync } from 'node:fs'
import { runProgram } from '../../programs/start.ts'
import { findProgram } from '../../system/find-program.ts'

export interface Vpcs {
  readonly path: string
  /** As it says itself, such as 0.5b2 or 0.8.3. */
  readonly version: string
  /** Whether it knows -R, which switches its relay off. */
  readonly hasRelaySwitch: boolean
}

const probeMs = 5000
const known = new Map<string, Promise<Vpcs | undefined>>()

/** The VPCS program of that path or name; undefined when there is none that can be used. Probed once a file. */
export async function findVpcs(pathOrName: string): Promise<Vpcs | undefined> {
  const path = findProgram(pathOrName)
  if (path === undefined) return undefined
  const { size, mtimeMs, ino } = statSync(path)
  const key = `${path}:${ino}:${size}:${mtimeMs}`
  const probe = known.get(key) ?? probeVersion(path)
  known.set(key, probe)
  return probe
}

async function probeVersion(path: string): Promise<Vpcs | undefined> {
  // It prints its version and then ends with code 1 or 0, depending on the version.
  const { stdout } = await runProgram(path, ['-v'], { ms: probeMs })
  const version = /Virtual PC Simulator, version (\S+)/.exec(stdout)?.[1]
  return version === undefined || !isUsable(version)
    ? undefined
    : { path, version, hasRelaySwitch: hasRelaySwitch(version) }
}

/** 0.5b1 and later: what was before knows other switches. */
const isUsable = (version: string): boolean => compareVersions(version, '0.5b1') >= 0

/** The relay came with 0.8b. */
const hasRelaySwitch = (version: string): boolean => compareVersions(version, '0.8b') >= 0

/** Versions are like 0.5b2, 0.6, 0.6.1, 0.8, 0.8b, 0.8c, 0.8.3; a letter comes after the number it follows. */
export function compareVersions(a: string, b: string): number {
  const [x, y] = [a, b].map((version) => version.match(/\d+|[a-z]+/g) ?? [])
  for (let index = 0; index < Math.max(x?.length ?? 0, y?.length ?? 0); index++) {
    const [left, right] = [x?.[index] ?? '', y?.[index] ?? '']
    if (left === right) continue
    const numbers = [left, right].map(Number)
    // 0.8.3 is later than 0.8b: a further number beats a letter, and either beats nothing.
    if (left === '' || right === '') return left === '' ? -1 : 1
    if (numbers.some(Number.isNaN))
      return Number.isNaN(numbers[0]) && Number.isNaN(numbers[1])
        ? left < right
          ? -1
          : 1
        : Number.isNaN(numbers[0])
          ? -1
          : 1
    return (numbers[0] ?? 0) - (numbers[1] ?? 0)
  }
  return 0
}
