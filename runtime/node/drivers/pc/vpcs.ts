import { FileProbes } from '../../engine/storage/file-probes.ts'
import { runProgram } from '../../os/programs/start.ts'
import { findProgram } from '../../os/system/find-program.ts'
import { vpcsNameBytes } from './startup-script.ts'

export interface Vpcs {
  readonly path: string
  /** The version that the program prints, such as 0.5b2 or 0.8.3. */
  readonly version: string
  /** Whether the program knows -R, which switches its relay off. */
  readonly hasRelaySwitch: boolean
  /** Whether `pc.engine = "auto"` takes it. Versions before 0.6.1 lack commands. */
  readonly isPreferred: boolean
  /** The longest name that `set pcname` takes, bytes (MAX_NAMES_LEN). */
  readonly nameBytes: number
}

const probes = new FileProbes<Vpcs | undefined>()

/** The VPCS program of that path or name; undefined when it is missing or too old. */
export async function findVpcs(pathOrName: string): Promise<Vpcs | undefined> {
  const path = findProgram(pathOrName)
  // One that was killed, or took too long on a busy host, is asked again the next time.
  return path === undefined ? undefined : probes.get(path, () => probe(path)).catch(() => undefined)
}

async function probe(path: string): Promise<Vpcs | undefined> {
  // The exit code is 0 or 1, depending on the version.
  const { error, stdout } = await runProgram(path, ['-v'], { ms: 5000 })
  if (error !== null && typeof error.code !== 'number') throw error
  const version = /Virtual PC Simulator, version (\S+)/.exec(stdout)?.[1]
  // Versions before 0.5b1 have other options. The relay came with 0.8b.
  if (version === undefined || compareVersions(version, '0.5b1') < 0) return undefined
  const isFrom = (other: string) => compareVersions(version, other) >= 0
  const [short, long] = vpcsNameBytes
  const nameBytes = isFrom('0.6.2') && !version.startsWith('0.8b') ? long : short
  return { path, version, hasRelaySwitch: isFrom('0.8b'), isPreferred: isFrom('0.6.1'), nameBytes }
}

/** Compares versions such as 0.5b2 and 0.6. A number sorts after a letter, and both after nothing: 0.8, 0.8b, 0.8.3. */
export function compareVersions(a: string, b: string): number {
  const [x = [], y = []] = [a, b].map((version) => version.match(/\d+|[a-z]+/g) ?? [])
  const index = Array.from({ length: Math.max(x.length, y.length) }).findIndex((_, at) => x[at] !== y[at])
  const [left = '', right = ''] = [x[index], y[index]]
  const rank = (part: string) => (part === '' ? 0 : /\d/.test(part) ? 2 : 1)
  if (rank(left) !== rank(right)) return rank(left) - rank(right)
  return rank(left) === 2 ? Number(left) - Number(right) : Number(left > right) - Number(left < right)
}
