import { closeSync, constants, openSync, readdirSync, realpathSync } from 'node:fs'
import { basename, delimiter, dirname, join, resolve } from 'node:path'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { compareText } from '../../../../src/lib/text/compare-text.ts'
import type { MachineEmulatorNode } from '../../../../src/model/kinds/machine-emulator.ts'
import { FileProbes } from '../../engine/storage/file-probes.ts'
import type { Confinement, Sandbox } from '../../os/sandbox/sandbox.ts'
import { findProgram } from '../../os/system/find-program.ts'
import { installHint, isEmulatorName, nativePlatforms, type Platform, platformAsked, programOf } from './platforms.ts'
import { type BinaryFacts, probe } from './probe.ts'

export type Accelerator = 'kvm' | 'tcg'

const probes = new FileProbes<BinaryFacts>()

/** The capabilities of the program at that path; cached until the file changes. */
export const factsOf = (path: string, confinement?: Confinement): Promise<BinaryFacts> =>
  probes.get(path, () => probe(path, confinement))

/** The emulator programs in PATH, by name; a program in several directories of PATH is listed once. */
export function findEmulators(path = process.env.PATH ?? ''): readonly string[] {
  const found = new Map<string, string>()
  for (const directory of directoriesIn(path)) {
    for (const name of namesIn(directory)) {
      const file = isEmulatorName(name) ? findProgram(join(directory, name)) : undefined
      if (file === undefined) continue
      const key = `${name}:${realpathSync(file)}`
      if (!found.has(key)) found.set(key, file)
    }
  }
  return [...found.values()].sort((a, b) => compareText(basename(a), basename(b)))
}

const directoriesIn = (path: string): string[] =>
  path.split(delimiter).flatMap((part) => (part.startsWith('/') ? [resolve(part)] : []))

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}

/** The emulators in PATH that can be probed, of the given platforms if any. */
export async function usableEmulators(
  platforms?: readonly string[],
  confinement?: Confinement,
): Promise<readonly BinaryFacts[]> {
  const answers = await Promise.allSettled(findEmulators().map((path) => factsOf(path, confinement)))
  return answers
    .flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []))
    .filter(({ platform }) => platforms === undefined || platforms.includes(platform))
}

export interface WantedEmulator {
  /** A path, or a name to look for in PATH. */
  readonly qemu_path?: string | null
  /** "", "null" and null: that of the program. */
  readonly platform?: MachineEmulatorNode['platform'] | null
}

/** 409 for a machine without an emulator. */
export const missingPlatform = () =>
  conflict('platform: missing, expected what the machine emulates, such as "x86_64"; or give qemu_path, an emulator')

/**
 * The program for a node: `qemu_path` when it can be used, else that of the platform. 409 with the missing program and its package.
 * Outside local mode only programs in PATH are run.
 */
export async function resolveEmulator(
  wanted: WantedEmulator,
  isLocal: boolean,
  sandbox?: Sandbox,
): Promise<BinaryFacts> {
  const confinement = await sandbox?.confinement()
  const { qemu_path } = wanted
  const platform = platformAsked(wanted.platform)
  if (qemu_path) {
    const path = allowedPath(qemu_path, isLocal)
    if (typeof path === 'string') return factsOf(path, confinement)
    if (platform === undefined) throw conflict(path.refusal)
  }
  if (platform === undefined) throw missingPlatform()
  const program = findProgram(programOf(platform))
  if (program === undefined) {
    throw conflict(`${programOf(platform)} is not installed; install it (${installHint(platform)})`)
  }
  return factsOf(program, confinement)
}

/** The path of an emulator; no other program, because clients choose the path. */
function allowedPath(wanted: string, isLocal: boolean): string | { refusal: string } {
  const name = basename(wanted)
  if (!isEmulatorName(name))
    return { refusal: `qemu_path: ${name} is not the name of an emulator; expected one such as qemu-system-x86_64` }
  const path = findProgram(wanted)
  if (path === undefined) {
    const program = /^qemu-system-(\w+)$/.exec(name)?.[1] ?? 'x86_64'
    return { refusal: `qemu_path: ${wanted} does not exist or cannot be run; install it (${installHintOf(program)})` }
  }
  if (!isLocal && !directoriesIn(process.env.PATH ?? '').includes(dirname(path))) {
    return { refusal: `qemu_path: ${wanted} is not in PATH; outside local mode only emulators in PATH can be used` }
  }
  return path
}

// An unknown word gets the package of the rare platforms.
const installHintOf = (word: string): string => installHint(word as Platform)

/** The accelerators for its guests on this host, the best first. */
export function acceleratorsOf(facts: Pick<BinaryFacts, 'platform' | 'builtWith'>, device = '/dev/kvm'): Accelerator[] {
  const isKvm = facts.builtWith.kvm && nativePlatforms().includes(facts.platform) && opens(device)
  return [...(isKvm ? (['kvm'] as const) : []), ...(facts.builtWith.tcg ? (['tcg'] as const) : [])]
}

/** The platforms that KVM accelerates here; none when the service cannot open its device. */
export const kvmPlatforms = (device = '/dev/kvm'): readonly Platform[] => (opens(device) ? nativePlatforms() : [])

/** Not cached: loading a module, or a change of groups, can change the answer. */
function opens(device: string): boolean {
  try {
    closeSync(openSync(device, constants.O_RDWR))
    return true
  } catch {
    return false
  }
}
