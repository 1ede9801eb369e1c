import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Check } from '../../../../src/model/host.ts'
import { ok, programCheck, warning } from '../../programs/checks.ts'
import { factsOf, findEmulators } from './binaries.ts'
import { systemUefis } from './firmware.ts'
import { type KvmVerdict, kvmVerdict } from './kvm-guest.ts'
import { type BinaryFacts, versionText } from './probe.ts'

/** Checks KVM, emulators and qemu-img. */
export async function machineChecks(signal?: AbortSignal): Promise<Check[]> {
  const qemuImg = { use: 'for the disks of machine-emulator nodes', install: 'sudo apt-get install qemu-utils' }
  const [kvmFound, emulators, tool] = await Promise.all([
    kvm(),
    emulatorChecks(),
    programCheck('qemu-img', ['qemu-img'], qemuImg, signal),
  ])
  return [kvmFound, ...emulators, tool]
}

async function kvm(): Promise<Check> {
  try {
    await access('/dev/kvm', constants.R_OK | constants.W_OK)
    return kvmCheck(await kvmVerdict())
  } catch (reason) {
    return (reason as NodeJS.ErrnoException).code === 'EACCES'
      ? warning('KVM', '/dev/kvm is there, but not for this user', 'sudo usermod -aG kvm "$USER", then log in again')
      : warning(
          'KVM',
          'no /dev/kvm: virtual machines would be emulated, slowly',
          'enable virtualisation in the firmware, or nested virtualisation',
        )
  }
}

/** The result of a test boot under KVM. */
export function kvmCheck(verdict: KvmVerdict): Check {
  const use = 'machines run emulated, slowly, unless machine_emulator.acceleration is kvm'
  const fix = 'on a virtual host switch nested virtualisation on, or take a newer kernel there'
  switch (verdict) {
    case 'runs':
      return ok('KVM', '/dev/kvm can be used, a guest boots under it')
    case 'hangs':
      return warning('KVM', `/dev/kvm opens, but a guest hangs at its boot under it: ${use}`, fix)
    case 'fails':
      return warning('KVM', `/dev/kvm opens, but QEMU cannot run a guest under it: ${use}`, fix)
    case 'unknown':
      return ok('KVM', '/dev/kvm can be opened; whether a guest boots under it could not be tried')
  }
}

/** Checks each emulator, and the UEFI for x86_64. */
export async function emulatorChecks(): Promise<Check[]> {
  const emulators = await Promise.all(findEmulators().map(emulator))
  const usable = emulators.flatMap(({ facts }) => facts ?? [])
  if (emulators.length === 0)
    return [warning('QEMU', 'not found; for machine-emulator nodes', 'sudo apt-get install qemu-system-x86')]
  return [...emulators.map(({ check }) => check), ...(await uefi(usable))]
}

async function emulator(path: string): Promise<{ check: Check; facts?: BinaryFacts }> {
  const name = basename(path)
  try {
    const facts = await factsOf(path)
    const screens = [...(facts.hasVnc ? ['VNC'] : []), ...(facts.hasSpice ? ['SPICE'] : [])]
    const found = [versionText(facts.version), path, ...screens].join(', ')
    return { facts, check: ok(name, found) }
  } catch (error) {
    return { check: warning(name, (error as Error).message, `reinstall the package of ${name}`) }
  }
}

async function uefi(emulators: readonly BinaryFacts[]): Promise<Check[]> {
  const x86 = emulators.find(({ platform }) => platform === 'x86_64')
  const machine = x86?.machines.find(({ alias }) => alias === 'q35')
  if (x86 === undefined || machine === undefined) return []
  const [found] = await systemUefis(x86.platform, machine.name)
  const name = 'UEFI'
  if (found !== undefined) return [ok(name, found.code)]
  return [warning(name, 'not found; for machine-emulator nodes with firmware = uefi', 'sudo apt-get install ovmf')]
}
