import { basename } from 'node:path'
import type { Check } from '../../../src/model/host.ts'
import { bpfAvailable } from '../bpf/compile.ts'
import { factsOf, findEmulators } from '../kinds/machine-emulator/binaries.ts'
import { systemUefis } from '../kinds/machine-emulator/firmware.ts'
import { type BinaryFacts, versionText } from '../kinds/machine-emulator/probe.ts'

/** The emulators of machine-emulator nodes, each asked what it is, and what machines can be started by. */
export async function machineChecks(): Promise<Check[]> {
  const emulators = await Promise.all(findEmulators().map(emulator))
  const usable = emulators.flatMap(({ facts }) => facts ?? [])
  if (emulators.length === 0) {
    const found = 'not found; for machine-emulator nodes'
    return [{ name: 'QEMU', status: 'warning', found, fix: 'sudo apt-get install qemu-system-x86' }]
  }
  return [...emulators.map(({ check }) => check), ...(await uefi(usable))]
}

async function emulator(path: string): Promise<{ check: Check; facts?: BinaryFacts }> {
  const name = basename(path)
  try {
    const facts = await factsOf(path)
    const screens = [...(facts.hasVnc ? ['VNC'] : []), ...(facts.hasSpice ? ['SPICE'] : [])]
    const found = [versionText(facts.version), path, ...screens].join(', ')
    return { facts, check: { name, status: 'ok', found, fix: null } }
  } catch (error) {
    return {
      check: { name, status: 'warning', found: (error as Error).message, fix: `reinstall the package of ${name}` },
    }
  }
}

async function uefi(emulators: readonly BinaryFacts[]): Promise<Check[]> {
  const x86 = emulators.find(({ platform }) => platform === 'x86_64')
  const machine = x86?.machines.find(({ alias }) => alias === 'q35')
  if (x86 === undefined || machine === undefined) return []
  const [found] = await systemUefis(x86.platform, machine.name)
  const name = 'UEFI'
  if (found !== undefined) return [{ name, status: 'ok', found: found.code, fix: null }]
  const missing = 'not found; for machine-emulator nodes with firmware = uefi'
  return [{ name, status: 'warning', found: missing, fix: 'sudo apt-get install ovmf' }]
}

/** What the filter `bpf` of links needs. */
export function libpcapCheck(): Check {
  const name = 'libpcap'
  return bpfAvailable()
    ? { name, status: 'ok', found: 'the filter bpf of links can be used', fix: null }
    : {
        name,
        status: 'warning',
        found: 'not found; for the filter bpf of links',
        fix: 'sudo apt-get install libpcap0.8',
      }
}
