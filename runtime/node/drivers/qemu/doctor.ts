import { constants } from 'node:fs'
import { access, readFile, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import type { DoctorCheck } from '../../../../src/model/host.ts'
import { machineEmulator } from '../../../../src/model/kinds/machine-emulator.ts'
import { ok, preventing, programCheck, warning } from '../../os/programs/checks.ts'
import { factsOf, findEmulators } from './binaries.ts'
import { systemUefis } from './firmware.ts'
import { type KvmState, kvmState } from './kvm-guest.ts'
import { type BinaryFacts, versionText } from './probe.ts'

/** Checks KVM, emulators and qemu-img. */
export async function machineChecks(signal?: AbortSignal): Promise<DoctorCheck[]> {
  const qemuImg = { use: 'for the disks of machine-emulator nodes', install: 'sudo apt-get install qemu-utils' }
  const [kvmFound, emulators, tool] = await Promise.all([
    kvm(),
    emulatorChecks(),
    programCheck('qemu-img', ['qemu-img'], qemuImg, signal),
  ])
  return [kvmFound, ...emulators, tool]
}

const device = '/dev/kvm'

async function kvm(): Promise<DoctorCheck> {
  return (await deviceTrouble()) ?? kvmCheck(await kvmState())
}

/** Why this user cannot open the device of KVM; undefined: it can. */
async function deviceTrouble(): Promise<DoctorCheck | undefined> {
  try {
    await access(device, constants.R_OK | constants.W_OK)
    return undefined
  } catch (reason) {
    if ((reason as NodeJS.ErrnoException).code === 'EACCES')
      return warning('KVM', `${device} exists, but this user may not use it`, await rightFix())
    return warning(
      'KVM',
      `no ${device}: virtual machines would be emulated, slowly`,
      'enable virtualisation in the firmware, or nested virtualisation',
    )
  }
}

async function rightFix(): Promise<string> {
  const { mode, gid } = await stat(device)
  const groups = (await readFile('/etc/group', 'utf8').catch(ignore('a group without a name has its number'))) ?? ''
  return kvmRightFix(mode, gid, groups)
}

/** How this user gets the right to the device, from its mode and group; `groups`: the text of /etc/group (see group(5)). */
export function kvmRightFix(mode: number, gid: number, groups: string): string {
  const name = groups
    .split('\n')
    .find((line) => line.split(':')[2] === String(gid))
    ?.split(':')[0]
  const isForGroup = gid !== 0 && (mode & 0o060) === 0o060
  const join = (group: string) => `sudo usermod -aG ${group} "$USER", then log in again`
  if (isForGroup) return join(name ?? String(gid))
  return `sudo chgrp kvm ${device} && sudo chmod 660 ${device}, as no group has the right to it; and ${join('kvm')}`
}

/** The result of a test boot under KVM. */
export function kvmCheck(state: KvmState): DoctorCheck {
  const use = 'machines run emulated, slowly, unless machine_emulator.acceleration is kvm'
  const fix = 'on a virtual host, enable nested virtualisation or use a newer kernel there'
  switch (state) {
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
export async function emulatorChecks(): Promise<DoctorCheck[]> {
  const emulators = await Promise.all(findEmulators().map(emulator))
  const usable = emulators.flatMap(({ facts }) => facts ?? [])
  if (emulators.length === 0)
    return [
      preventing(
        warning('QEMU', 'not found; for machine-emulator nodes', 'sudo apt-get install qemu-system-x86'),
        machineEmulator.name,
      ),
    ]
  return [...emulators.map(({ check }) => check), ...(await uefi(usable))]
}

async function emulator(path: string): Promise<{ check: DoctorCheck; facts?: BinaryFacts }> {
  const name = basename(path)
  try {
    const facts = await factsOf(path)
    const screens = [...(facts.hasVnc ? ['VNC'] : []), ...(facts.hasSpice ? ['SPICE'] : [])]
    const found = [versionText(facts.version), path, ...screens].join(', ')
    return { facts, check: ok(name, found) }
  } catch (error) {
    const { message } = error as Error
    return { check: warning(name, message, (await kvmFixOf(message)) ?? `reinstall the package of ${name}`) }
  }
}

/** What to do for an emulator that only runs with KVM, such as qemu-system-x86_64-microvm, and could not; undefined: it failed otherwise. */
async function kvmFixOf(message: string): Promise<string | undefined> {
  // The words of QEMU, in accel/kvm/kvm-all.c and system/vl.c.
  if (!/failed to initialize kvm|access KVM kernel module/i.test(message)) return undefined
  const trouble = await deviceTrouble()
  return `it runs with KVM only: ${trouble?.fix ?? 'look whether another hypervisor of this host has it'}`
}

async function uefi(emulators: readonly BinaryFacts[]): Promise<DoctorCheck[]> {
  const x86 = emulators.find(({ platform }) => platform === 'x86_64')
  const machine = x86?.machines.find(({ alias }) => alias === 'q35')
  if (x86 === undefined || machine === undefined) return []
  const [found] = await systemUefis(x86.platform, machine.name)
  const name = 'UEFI'
  if (found !== undefined) return [ok(name, found.code)]
  return [warning(name, 'not found; for machine-emulator nodes with firmware = uefi', 'sudo apt-get install ovmf')]
}
