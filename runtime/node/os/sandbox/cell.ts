import { existsSync, lstatSync, readlinkSync, realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Operation } from './step.ts'

/** The files and network of a confined program, beside the programs and libraries of the system. Paths are absolute. */
export interface Cell {
  readonly cwd: string
  /** Files and directories it may write to, and such that it may only read, at the places where they are. */
  readonly writable?: readonly string[]
  readonly readable?: readonly string[]
  /** Files and directories at another path. */
  readonly mounts?: readonly { readonly from: string; readonly at: string; readonly isWritable: boolean }[]
  readonly devices?: readonly string[]
  /**
   * Which files of the system it sees, because each mount takes time. `bare`: those that a program needs which only reads and writes
   * files; `nameless`: all but the names of users, hosts and services; absent: all.
   */
  readonly sees?: 'bare' | 'nameless'
  /** `none`: an empty network namespace. */
  readonly network: 'none' | 'host'
  /** With the network of the host: the TCP ports it may listen on, where the kernel can restrict that (Landlock). */
  readonly listens?: readonly number[]
  /** Open sockets that it is handed over, from descriptor `firstSocket` on. Default: none. */
  readonly sockets?: number
  /** Whether it may also connect to TCP ports. Default: no. */
  readonly connects?: boolean
}

/** Directories of the system. `/opt` and the like are there only for a program that is in them. */
const system = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/nix/store', '/gnu/store']
/** The files in /etc that programs and the C library read; none is secret. */
const inEtc = (names: string) => names.split(' ').map((name) => join('/etc', name))
const bareEtc = inEtc('ld.so.cache alternatives')
const namelessEtc = [...bareEtc, ...inEtc('localtime qemu')]
const names = inEtc('hostid hosts host.conf hostname nsswitch.conf passwd group services protocols')
const devices = ['null', 'zero', 'full', 'random', 'urandom'].map((name) => join('/dev', name))
const mounts: readonly Operation[] = [
  ['proc', '', '/proc'],
  ['tmp', '', '/tmp'],
]
const all = { etc: [...namelessEtc, ...names], devices, mounts }
const nameless = { ...all, etc: namelessEtc }
const bare = { etc: bareEtc, devices: ['/dev/null', '/dev/urandom'], mounts: [] }

/** The mounts of the root directory in the cell, parents first. */
export function operationsOf(cell: Cell, program: string): Operation[] {
  const there = (paths: readonly string[] = []) => paths.filter((path) => existsSync(path))
  const mounted = cell.mounts ?? []
  const shown = [...(cell.readable ?? []), ...(cell.writable ?? [])]
  const isShown = (path: string) => shown.some((at) => path === at || path.startsWith(`${at}/`))
  const base = cell.sees === undefined ? all : { bare, nameless }[cell.sees]
  return [
    ...system.flatMap(systemDirectory),
    ...there(base.etc).map((path): Operation => ['ro', path, path]),
    ...base.mounts,
    ...there([...base.devices, ...(cell.devices ?? [])]).map((path): Operation => ['dev', path, path]),
    ...directoriesOf(program).flatMap((path): Operation[] => (isShown(path) ? [] : [['ro', path, path]])),
    // Deeper paths come later: a mount above them would hide them.
    ...[
      ...there(cell.readable).map((path): Operation => ['ro', path, path]),
      ...there(cell.writable).map((path): Operation => ['rw', path, path]),
    ].sort(([, a], [, b]) => a.length - b.length),
    ...mounted.map(({ from, at, isWritable }): Operation => [isWritable ? 'rw' : 'ro', from, at]),
  ]
}

function systemDirectory(path: string): Operation[] {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return []
  return stats.isSymbolicLink() ? [['link', readlinkSync(path), path]] : [['ro', path, path]]
}

/** The directories of a program outside the system directories, with those that are usually installed beside it. */
export function directoriesOf(program: string): string[] {
  const isOfSystem = (path: string) => system.some((directory) => path.startsWith(`${directory}/`))
  const found = new Set<string>()
  for (const path of new Set([program, realpathSync(program)])) {
    if (isOfSystem(path)) continue
    found.add(path)
    if (basename(dirname(path)) !== 'bin') continue
    for (const name of ['lib', 'lib64', 'libexec', 'share']) {
      const beside = join(dirname(dirname(path)), name)
      if (dirname(dirname(path)) !== '/' && existsSync(beside)) found.add(beside)
    }
  }
  return [...found]
}
