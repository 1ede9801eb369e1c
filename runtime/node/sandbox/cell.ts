import { existsSync, lstatSync, readlinkSync, realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Operation } from './step.ts'

/** What a confined program sees and may use, beside the programs and libraries of the system. Paths are absolute. */
export interface Cell {
  readonly cwd: string
  /** Files and directories it may write to, and such that it may only read, at the places where they are. */
  readonly writable?: readonly string[]
  readonly readable?: readonly string[]
  /** What it has at another place. */
  readonly placed?: readonly { readonly from: string; readonly at: string; readonly isWritable: boolean }[]
  readonly devices?: readonly string[]
  /** `none`: a network of its own, without anything in it. */
  readonly network: 'none' | 'host'
  /** With the network of the host: the TCP ports it may listen on, where the kernel can restrict that (Landlock). */
  readonly listens?: readonly number[]
}

/** Directories of the system. `/opt` and the like are there only for a program that is in them. */
const system = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/nix/store', '/gnu/store']
/** What programs and the C library read in /etc; nothing there is secret. */
const etc = [
  ...['ld.so.cache', 'ld.so.conf', 'ld.so.conf.d', 'alternatives', 'localtime', 'hostid', 'hosts', 'host.conf'],
  ...['hostname', 'nsswitch.conf', 'passwd', 'group', 'services', 'protocols', 'qemu'],
].map((name) => join('/etc', name))
const devices = ['null', 'zero', 'full', 'random', 'urandom'].map((name) => join('/dev', name))

/** The root directory that a program in the cell sees, first what is above. */
export function operationsOf(cell: Cell, program: string): Operation[] {
  const there = (paths: readonly string[] = []) => paths.filter((path) => existsSync(path))
  const placed = cell.placed ?? []
  const shown = [...(cell.readable ?? []), ...(cell.writable ?? [])]
  const isShown = (path: string) => shown.some((place) => path === place || path.startsWith(`${place}/`))
  return [
    ...system.flatMap(systemDirectory),
    ...there(etc).map((path): Operation => ['ro', path, path]),
    ['proc', '', '/proc'],
    ['tmp', '', '/tmp'],
    ...there([...devices, ...(cell.devices ?? [])]).map((path): Operation => ['dev', path, path]),
    ...placesOf(program).flatMap((path): Operation[] => (isShown(path) ? [] : [['ro', path, path]])),
    // What is deeper comes later, as it would be hidden by what is above.
    ...[
      ...there(cell.readable).map((path): Operation => ['ro', path, path]),
      ...there(cell.writable).map((path): Operation => ['rw', path, path]),
    ].sort(([, a], [, b]) => a.length - b.length),
    ...placed.map(({ from, at, isWritable }): Operation => [isWritable ? 'rw' : 'ro', from, at]),
  ]
}

function systemDirectory(path: string): Operation[] {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return []
  return stats.isSymbolicLink() ? [['link', readlinkSync(path), path]] : [['ro', path, path]]
}

/** Where a program is that is not among those of the system, with what is usually installed beside it. */
function placesOf(program: string): string[] {
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
