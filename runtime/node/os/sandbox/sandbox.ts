import { mkdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { runProgram } from '../programs/start.ts'
import { findProgram } from '../system/find-program.ts'
import { bubblewrapArguments } from './bubblewrap.ts'
import { type Cell, operationsOf } from './cell.ts'
import { findPerl, stepArguments, stepCallNumbers } from './step.ts'
import { type EmulatorUser, findUser, groupOf } from './user.ts'

export interface SandboxSettings {
  readonly sandbox: 'auto' | 'bubblewrap' | 'namespaces' | 'off'
  readonly require_sandbox: boolean
  readonly emulator_user: string
}

export interface SandboxOptions {
  readonly settings: () => SandboxSettings
  /** Whether the current request is in local mode, where programs are not confined. */
  readonly isLocal: () => boolean
  /** The directory for files that need no backup. */
  readonly runDirectory: string
}

/** The means of confinement on this host. */
export interface Protection {
  readonly by: 'bubblewrap' | 'namespaces'
  /** Version of Landlock; 0: the kernel has none, or there is no Perl. From 4 on it restricts TCP. */
  readonly landlock: number
  /** The user of confined programs; undefined: the user of the service. */
  readonly user: EmulatorUser | undefined
}

/** The protection, or the reason why there is none. */
export type FoundProtection = { readonly protection: Protection } | { readonly reason: string }

/** Programs in cells of their own. */
export interface Confinement extends Protection {
  /** The user id that a program sees itself run as. */
  readonly uidInside: number
  /** The command that runs a program in a cell, as the child of an init process, which is our child. */
  wrap(cell: Cell, command: string, args: readonly string[]): { command: string; args: string[] }
}

const probeMs = 5000
/** How long a result is cached, ms: a package may be installed while the service runs. */
const keptMs = 60_000

/** Confines emulators, their probes, and tools that read images of clients. */
export class Sandbox {
  readonly #options: SandboxOptions
  #found: { readonly key: string; readonly until: number; readonly found: Promise<FoundProtection> } | undefined

  constructor(options: SandboxOptions) {
    this.#options = options
  }

  /**
   * The confinement for programs that start now; undefined in local mode, when it is switched off, and on a host without support
   * (then `warning` gets the reason). 409 when it is required and not available.
   */
  async confinement(warning: (reason: string) => void = () => {}): Promise<Confinement | undefined> {
    if (this.#options.isLocal()) return undefined
    const { sandbox, require_sandbox } = this.#options.settings()
    const found: FoundProtection = sandbox === 'off' ? { reason: 'the setting sandbox is off' } : await this.find()
    if ('protection' in found) return confinementBy(found.protection, this.#options.runDirectory)
    if (require_sandbox) throw conflict(`Programs cannot be confined here (require_sandbox): ${found.reason}`)
    if (sandbox !== 'off') warning(`it runs without confinement: ${found.reason}`)
    return undefined
  }

  /** The protection of this host in any mode. */
  find(): Promise<FoundProtection> {
    const { sandbox, emulator_user } = this.#options.settings()
    const key = `${sandbox} ${emulator_user}`
    if (this.#found?.key === key && Date.now() < this.#found.until) return this.#found.found
    const found = findProtection(this.#options.settings(), this.#options.runDirectory)
    this.#found = { key, until: Date.now() + keptMs, found }
    return found
  }
}

/** Tests each means of confinement with a program that does nothing. */
export async function findProtection(settings: SandboxSettings, runDirectory: string): Promise<FoundProtection> {
  const { sandbox, emulator_user } = settings
  if (process.platform !== 'linux') return { reason: 'only Linux can confine programs' }
  const isRoot = process.getuid?.() === 0
  const user = isRoot ? findUser(emulator_user) : undefined
  if (isRoot && user === undefined) return { reason: `emulator_user: this host has no user ${emulator_user}` }
  const landlock = await landlockVersion()
  const reasons: string[] = []
  for (const by of ['bubblewrap', 'namespaces'] as const) {
    if (sandbox !== 'auto' && sandbox !== by) continue
    const obstacle = missing(by) ?? (await fails({ by, landlock, user }, runDirectory))
    if (obstacle === undefined) return { protection: { by, landlock, user } }
    reasons.push(`${by}: ${obstacle}`)
  }
  return { reason: reasons.join('; ') }
}

function missing(by: Protection['by']): string | undefined {
  if (by === 'bubblewrap') return findProgram('bwrap') === undefined ? 'bwrap is not installed' : undefined
  return findPerl() === undefined || stepCallNumbers() === undefined ? 'Perl is not installed' : undefined
}

async function fails(protection: Protection, runDirectory: string): Promise<string | undefined> {
  const harmless = findProgram('true') ?? '/bin/true'
  mkdirSync(runDirectory, { recursive: true, mode: 0o700 })
  const { command, args } = confinementBy(protection, runDirectory).wrap({ cwd: '/', network: 'none' }, harmless, [])
  const { error, stderr } = await runProgram(command, args, { ms: probeMs })
  if (error === null) return undefined
  return stderr.trim().split('\n').at(-1)?.slice(0, 200) || error.message.slice(0, 200)
}

/** By asking the kernel for its version: Documentation/userspace-api/landlock.rst. */
async function landlockVersion(): Promise<number> {
  const perl = findPerl()
  if (perl === undefined) return 0
  const { stdout } = await runProgram(perl, ['-e', 'print syscall(444, 0, 0, 1)'], { ms: probeMs })
  const version = Number(stdout)
  return Number.isInteger(version) && version > 0 ? version : 0
}

/** From this version on Landlock restricts TCP. */
export const landlockWithTcp = 4

function confinementBy(protection: Protection, runDirectory: string): Confinement {
  const { by, landlock, user } = protection
  const wrap: Confinement['wrap'] = (cell, command, args) => {
    const operations = operationsOf(cell, command)
    const hasNetwork = cell.network === 'host'
    const groups = (cell.devices ?? []).flatMap((device) => groupOf(device) ?? [])
    const becomes = user === undefined ? undefined : { uid: user.uid, gid: user.gid, groups }
    const step = {
      cwd: cell.cwd,
      sockets: cell.sockets ?? 0,
      ...(becomes !== undefined && { user: becomes }),
      ...(hasNetwork && landlock >= landlockWithTcp && { listens: cell.listens ?? [], connects: cell.connects }),
    }
    const perl = findPerl()
    if (by === 'namespaces') {
      if (perl === undefined) throw conflict('Programs cannot be confined: Perl was removed')
      // An empty directory that becomes the root of one program in its mount namespace.
      const root = join(runDirectory, 'root')
      mkdirSync(root, { recursive: true, mode: 0o755 })
      const namespaces = { root, operations, hasNetwork, isUser: user === undefined }
      return { command: perl, args: stepArguments({ ...step, namespaces }, command, args) }
    }
    const bwrap = findProgram('bwrap')
    if (bwrap === undefined) throw conflict('Programs cannot be confined: bwrap was removed')
    const before = bubblewrapArguments(operations, { hasNetwork, isRoot: user !== undefined })
    const after =
      perl !== undefined && stepCallNumbers() !== undefined
        ? [realpathSync(perl), ...stepArguments(step, command, args)]
        : [...(becomes === undefined ? [] : setpriv(becomes)), '/bin/sh', '-c', begins, cell.cwd, command, ...args]
    return { command: bwrap, args: [...before, ...after] }
  }
  const uidInside = user?.uid ?? (by === 'namespaces' ? 0 : (process.getuid?.() ?? 0))
  return { ...protection, uidInside, wrap }
}

/** Reports the start of the program on descriptor 3, then executes it; for hosts without Perl. */
const begins = 'cd "$0" || exit; echo >&3; exec 3>&-; exec "$@"'

const setpriv = ({ uid, gid, groups }: { uid: number; gid: number; groups: readonly number[] }): string[] => [
  ...['/usr/bin/setpriv', '--reuid', String(uid), '--regid', String(gid)],
  ...(groups.length === 0 ? ['--clear-groups'] : ['--groups', groups.join(',')]),
  ...['--no-new-privs', '--bounding-set=-all', '--inh-caps=-all', '--'],
]
