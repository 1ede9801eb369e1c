import { basename } from 'node:path'
import { platforms } from '../../../../src/kinds/machine-emulator.ts'

/** A machine architecture as QEMU names it. */
export type Platform = Exclude<(typeof platforms)[number], '' | 'null'>

const known: ReadonlySet<string> = new Set(platforms.filter((platform) => platform !== '' && platform !== 'null'))

export const isPlatform = (word: string): word is Platform => known.has(word)

/** The platform that a setting asks for; "", "null" and nothing ask for none. */
export const platformAsked = (setting: string | null | undefined): Platform | undefined =>
  setting != null && isPlatform(setting) ? setting : undefined

/** The program that emulates a platform. */
export const programOf = (platform: Platform): string => `qemu-system-${platform}`

/** The platform that a program's name tells; undefined when it tells none that is known. */
export function platformIn(path: string): Platform | undefined {
  const name = basename(path)
  if (name === 'qemu-kvm') return 'x86_64'
  if (name === 'qemu') return 'i386'
  const word = /^qemu-system-(.+)$/.exec(name)?.[1] ?? ''
  return isPlatform(word) ? word : undefined
}

/** Whether a file of this name may be run as an emulator. */
export const isEmulatorName = (name: string): boolean =>
  /^(qemu-system.*|qemu-kvm.*|qemu)$/.test(name) && !name.endsWith('-spice')

/** How the emulator of a platform is installed. */
export function installHint(platform: Platform): string {
  const family = /^(i386|x86_64)$/.test(platform)
    ? 'x86'
    : /^(arm|aarch64)$/.test(platform)
      ? 'arm'
      : (/^(mips|ppc|sparc)/.exec(platform)?.[0] ?? 'misc')
  return `apt-get install qemu-system-${family}`
}

const hostArchitectures: Readonly<Partial<Record<NodeJS.Architecture, readonly Platform[]>>> = {
  x64: ['x86_64', 'i386'],
  ia32: ['i386'],
  arm64: ['aarch64'],
  ppc64: ['ppc64'],
  s390x: ['s390x'],
  riscv64: ['riscv64'],
}

/** The platforms whose instructions this processor runs itself. */
export const nativePlatforms = (architecture: NodeJS.Architecture = process.arch): readonly Platform[] =>
  hostArchitectures[architecture] ?? []
