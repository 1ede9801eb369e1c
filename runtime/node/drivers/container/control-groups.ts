import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, readdir, rmdir, writeFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join, relative } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { findProgram } from '../../os/system/find-program.ts'

/** How much of its host a container may have; 0: all. */
export interface Limits {
  /** Memory, MB. */
  readonly ram: number
  /** Processors, also parts of one. */
  readonly cpus: number
}

/** How a program is limited when it starts. */
export interface Limited {
  /** A command that runs the program within its limits, without the program. */
  readonly prefix: readonly string[]
  /** Files `cgroup.procs` of the groups that it enters by itself. */
  readonly groups: readonly string[]
}

/** What this host limits programs with (cgroups(7)): groups that root makes, or the manager of systemd of the user. */
export type Limiter =
  | { readonly by: 'root'; readonly version: 1 | 2; readonly memory: string; readonly cpu: string }
  | { readonly by: 'systemd'; readonly systemdRun: string; readonly uid: number }

type FoundLimiter = Limiter | { readonly reason: string }

export const notLimited: Limited = { prefix: [], groups: [] }

/** Period in which processor time is counted, and the least that the kernel takes, microseconds. */
const [periodUs, leastUs] = [100_000, 1000]
/** Tries to remove a group whose processes are still ending, and the pause between them, ms. */
const [removeTries, removeEveryMs] = [50, 20]

/** Groups of the containers of one service. The kernel removes those of systemd by itself. */
export class ControlGroups {
  /** The beginning of the names of its groups, by which services of one host know theirs. */
  readonly #prefix: string
  readonly #find: () => FoundLimiter

  /** `find`: what this host limits them with; tests have other hosts. */
  constructor(runDirectory: string, find: () => FoundLimiter = findLimiter) {
    this.#find = find
    this.#prefix = `patchbay-${createHash('sha256').update(runDirectory).digest('hex').slice(0, 12)}-`
  }

  /** Makes the groups of a node. 409 with the reason when this host cannot limit it. */
  async limit(id: string, limits: Limits): Promise<Limited> {
    const wanted = (['ram', 'cpus'] as const).filter((name) => limits[name] > 0)
    if (wanted.length === 0) return notLimited
    const cannot = (reason: string) =>
      conflict(`${wanted.join(', ')}: this host cannot limit a container: ${reason}; set ${wanted.join(' and ')} to 0`)
    const found = this.#find()
    if ('reason' in found) throw cannot(found.reason)
    if (found.by === 'systemd') return { prefix: scopeCommand(found, limits), groups: [] }
    // One of an earlier start has other limits.
    await this.remove(id)
    try {
      return { prefix: [], groups: await this.#make(found, id, limits) }
    } catch (error) {
      await this.remove(id)
      throw cannot((error as Error).message)
    }
  }

  async #make(found: Limiter & { by: 'root' }, id: string, { ram, cpus }: Limits): Promise<string[]> {
    const [memory, cpu] = [found.memory, found.cpu].map((top) => join(top, `${this.#prefix}${id}`)) as [string, string]
    const quota = Math.max(leastUs, Math.round(cpus * periodUs))
    const bytes = String(ram * 2 ** 20)
    if (found.version === 2) {
      await writeFile(join(found.memory, 'cgroup.subtree_control'), '+memory +cpu')
      await makeGroup(memory)
      await writeFile(join(memory, 'memory.max'), ram > 0 ? bytes : 'max')
      // A kernel without swap accounting has no such file.
      if (ram > 0) await writeFile(join(memory, 'memory.swap.max'), '0').catch(ignore('nothing is swapped'))
      await writeFile(join(memory, 'cpu.max'), cpus > 0 ? `${quota} ${periodUs}` : `max ${periodUs}`)
      return [join(memory, 'cgroup.procs')]
    }
    const groups: string[] = []
    if (ram > 0) {
      await makeGroup(memory)
      await writeFile(join(memory, 'memory.limit_in_bytes'), bytes)
      const withSwap = join(memory, 'memory.memsw.limit_in_bytes')
      if (existsSync(withSwap)) await writeFile(withSwap, bytes)
      groups.push(memory)
    }
    if (cpus > 0) {
      await makeGroup(cpu)
      await writeFile(join(cpu, 'cpu.cfs_period_us'), String(periodUs))
      await writeFile(join(cpu, 'cpu.cfs_quota_us'), String(quota))
      groups.push(cpu)
    }
    return groups.map((it) => join(it, 'cgroup.procs'))
  }

  /** Removes the groups of a node that has ended. */
  async remove(id: string): Promise<void> {
    for (const top of topsOf(this.#find())) await removeGroup(join(top, `${this.#prefix}${id}`), removeTries)
  }

  /** Removes groups that were left behind, but for those in which something runs. */
  async tidy(): Promise<void> {
    for (const top of topsOf(this.#find()))
      for (const name of await readdir(top).catch(() => []))
        if (name.startsWith(this.#prefix)) await removeGroup(join(top, name), 1)
  }
}

const topsOf = (found: FoundLimiter): Set<string> =>
  new Set('by' in found && found.by === 'root' ? [found.memory, found.cpu] : [])

const makeGroup = (path: string) => mkdir(path, { recursive: true })

/** Tries it again while its last processes end. */
async function removeGroup(path: string, tries: number): Promise<void> {
  for (let left = tries; left > 0; left--) {
    const code = await rmdir(path).then(
      () => undefined,
      (error: NodeJS.ErrnoException) => error.code,
    )
    if (code !== 'EBUSY') return
    if (left > 1) await pause(removeEveryMs)
  }
}

/** A scope is a group that systemd makes for a program that it does not start itself (systemd-run(1), systemd.resource-control(5)). */
const scopeCommand = ({ systemdRun, uid }: Limiter & { by: 'systemd' }, { ram, cpus }: Limits): string[] => [
  '/usr/bin/env',
  ...[`XDG_RUNTIME_DIR=/run/user/${uid}`, `DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/${uid}/bus`],
  ...[systemdRun, ...(uid === 0 ? [] : ['--user']), '--scope', '--quiet', '--collect'],
  ...(ram > 0 ? ['--property', `MemoryMax=${ram}M`, '--property', 'MemorySwapMax=0'] : []),
  ...(cpus > 0 ? ['--property', `CPUQuota=${Math.max(1, Math.round(cpus * 100))}%`] : []),
  '--',
]

/** Where the host has what; tests have other places. */
interface HostFiles {
  readonly uid: number
  readonly proc: string
  /** Where systemd says that it runs (sd_booted(3)). */
  readonly systemd: string
}

const thisHost = (): HostFiles => ({ uid: userInfo().uid, proc: '/proc/self', systemd: '/run/systemd/system' })

/** What limits containers on this host, or the reason why nothing does. */
export function findLimiter({ uid, proc, systemd } = thisHost()): FoundLimiter {
  let mounts: Mount[]
  let own: Map<string, string>
  try {
    mounts = mountsIn(readFileSync(join(proc, 'mountinfo'), 'utf8'))
    own = groupsIn(readFileSync(join(proc, 'cgroup'), 'utf8'))
  } catch {
    return { reason: 'it has no control groups' }
  }
  const [memory, cpu] = ['memory', 'cpu'].map((name) => mounts.find((it) => it.controllers.includes(name)))
  if (memory !== undefined && cpu !== undefined) {
    if (uid !== 0) return { reason: 'its control groups are of version 1, which only root uses' }
    const at = (mount: Mount, name: string) => join(mount.path, relative(mount.root, own.get(name) ?? mount.root))
    return { by: 'root', version: 1, memory: at(memory, 'memory'), cpu: at(cpu, 'cpu') }
  }
  const unified = mounts.find(({ type }) => type === 'cgroup2')
  if (unified === undefined) return { reason: 'it has no control groups of memory and processors' }
  if (existsSync(systemd)) {
    const systemdRun = findProgram('systemd-run')
    if (systemdRun === undefined) return { reason: 'systemd-run is not installed' }
    const manager = uid === 0 ? '' : `user.slice/user-${uid}.slice/user@${uid}.service`
    const missing = missingIn(join(unified.path, manager))
    if (missing.length > 0) return { reason: `systemd does not give its user the control of ${missing.join(' and ')}` }
    return { by: 'systemd', systemdRun, uid }
  }
  if (uid !== 0) return { reason: 'only root makes control groups where systemd does not run' }
  const top = join(unified.path, relative(unified.root, own.get('') ?? unified.root))
  const missing = missingIn(top)
  if (missing.length > 0) return { reason: `its control group has no controller of ${missing.join(' and ')}` }
  return { by: 'root', version: 2, memory: top, cpu: top }
}

function missingIn(group: string): string[] {
  let found: string[] = []
  try {
    found = readFileSync(join(group, 'cgroup.controllers'), 'utf8').trim().split(' ')
  } catch {
    // There is no such group: nobody has logged in as the user.
  }
  return ['memory', 'cpu'].filter((it) => !found.includes(it))
}

interface Mount {
  readonly root: string
  readonly path: string
  readonly type: string
  /** Controllers of a hierarchy of version 1. */
  readonly controllers: readonly string[]
}

/** Control groups among the mounts (proc(5), mountinfo). */
const mountsIn = (text: string): Mount[] =>
  text.split('\n').flatMap((line) => {
    const [front = '', back = ''] = line.split(' - ')
    const [, , , root = '', path = ''] = front.split(' ')
    const [type = '', , options = ''] = back.split(' ')
    if (type !== 'cgroup' && type !== 'cgroup2') return []
    return [{ root, path, type, controllers: type === 'cgroup' ? options.split(',') : [] }]
  })

/** The groups of a process by their controllers; '' is that of version 2 (cgroups(7)). */
const groupsIn = (text: string): Map<string, string> =>
  new Map(
    text.split('\n').flatMap((line) => {
      const [, names, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? []
      return names === undefined || path === undefined
        ? []
        : names.split(',').map((name) => [name, path] as [string, string])
    }),
  )
