import { basename } from 'node:path'
import { platforms } from '../../../../src/model/kinds/machine-emulator.ts'

/** An architecture, by its name in QEMU. */
export type Platform = Exclude<(typeof platforms)[number], '' | 'null'>

const known: ReadonlySet<string> = new Set(platforms.filter((platform) => platform !== '' && platform !== 'null'))

export const isPlatform = (word: string): word is Platform => known.has(word)

/** The platform of a setting; "" and "null" mean none. */
export const platformAsked = (setting: string | null | undefined): Platform | undefined =>
  setting != null && isPlatform(setting) ? setting : undefined

export const programOf = (platform: Platform): string => `qemu-system-${platform}`

/** The platform in the name of a program. */
export function platformIn(path: string): Platform | undefined {
  const name = basename(path)
  if (name === 'qemu-kvm') return 'x86_64'
  if (name === 'qemu') return 'i386'
  const word = /^qemu-system-(.+)$/.exec(name)?.[1] ?? ''
  return isPlatform(word) ? word : undefined
}

/** Whether a program of this name may run as an emulator. */
export const isEmulatorName = (name: string): boolean =>
  /^(qemu-system.*|qemu-kvm.*|qemu)$/.test(name) && !name.endsWith('-spice')

/** The command that installs the emulator of a platform. */
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

/** The platforms that KVM can accelerate on this processor. */
export const nativePlatforms = (architecture: NodeJS.Architecture = process.arch): readonly Platform[] =>
  hostArchitectures[architecture] ?? []
