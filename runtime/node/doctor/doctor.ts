import { constants } from 'node:fs'
import { access, readFile, statfs } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { release } from 'node:os'
import { dirname } from 'node:path'
import type { Check, Diagnosis } from '../../../src/model/host.ts'
import type { Resolved } from '../config/config.ts'
import { defaultUri } from '../kinds/hypervisor/libvirt/address.ts'
import { type KvmVerdict, kvmVerdict } from '../kinds/machine-emulator/kvm-guest.ts'
import { findVpcs } from '../kinds/pc/vpcs.ts'
import { isTcpFree, isUdpFree } from '../ports/bind-test.ts'
import { confinementCheck } from './confinement.ts'
import { libvirtCheck } from './hypervisors.ts'
import { keeperCheck } from './keepers.ts'
import { libpcapCheck, machineChecks } from './machines.ts'
import { programChecks } from './programs.ts'

const ok = (name: string, found: string): Check => ({ name, status: 'ok', found, fix: null })
const warning = (name: string, found: string, fix: string | null): Check => ({ name, status: 'warning', found, fix })
const error = (name: string, found: string, fix: string | null): Check => ({ name, status: 'error', found, fix })

/** What labs need on this machine, what was found, and what mends it. Errors are what every lab needs; the rest is for some. */
export async function diagnose(settings: Resolved, signal?: AbortSignal): Promise<Diagnosis> {
  const groups = await Promise.all([
    nodeVersion(),
    dataDirectory(settings),
    keeperCheck(settings.data),
    ports(settings),
    vpcs(settings),
    kvm(),
    machineChecks(),
    programChecks(settings, signal),
    libvirtCheck(settings.hypervisor.libvirt_uri || defaultUri()),
    confinementCheck(settings),
    privileges(),
    ffi(),
    libpcapCheck(),
    kernel(),
    openFiles(),
  ])
  const checks = groups.flat()
  return { ok: checks.every(({ status }) => status !== 'error'), checks }
}

function nodeVersion(): Check {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const isEnough = major > 20 || (major === 20 && minor >= 17)
  const found = `${process.version} on ${process.platform} ${release()}`
  return isEnough ? ok('Node.js', found) : error('Node.js', found, 'install Node.js 20.17 or later')
}

async function dataDirectory({ data, min_free_space_mb }: Resolved): Promise<Check[]> {
  const place = await nearestExisting(data)
  const isWritable = await access(place, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  )
  const { bavail, bsize } = await statfs(place)
  const freeMb = Math.floor((bavail * bsize) / 2 ** 20)
  return [
    isWritable
      ? ok('data directory', data)
      : error(
          'data directory',
          `${data} cannot be written`,
          `sudo install -d -o "$USER" ${data}, or choose another one with --data`,
        ),
    freeMb >= min_free_space_mb
      ? ok('disk space', `${freeMb} MB free`)
      : error(
          'disk space',
          `${freeMb} MB free, ${min_free_space_mb} wanted`,
          'free some space, or lower min_free_space_mb',
        ),
  ]
}

async function nearestExisting(path: string): Promise<string> {
  try {
    await access(path)
    return path
  } catch {
    return dirname(path) === path ? path : nearestExisting(dirname(path))
  }
}

/** Samples of each range: a whole one that is taken or forbidden shows, a single busy port does not matter. */
async function ports({ console_port_range, vnc_port_range, udp_port_range, console_host }: Resolved): Promise<Check[]> {
  const sample = ([first, last]: readonly [number, number]) => [first, Math.floor((first + last) / 2), last]
  const isFree = async (range: readonly [number, number], test: (port: number) => Promise<boolean>) =>
    (await Promise.all(sample(range).map(test))).some((it) => it)
  const tcp = (port: number) => isTcpFree(port, console_host)
  const rows = [
    { name: 'console ports', range: console_port_range, test: tcp, key: 'console_port_range' },
    { name: 'VNC ports', range: vnc_port_range, test: tcp, key: 'vnc_port_range' },
    { name: 'UDP ports', range: udp_port_range, test: isUdpFree, key: 'udp_port_range' },
  ]
  return Promise.all(
    rows.map(async ({ name, range, test, key }) =>
      (await isFree(range, test))
        ? ok(name, `${range.join('-')} can be bound`)
        : error(name, `none that was tried of ${range.join('-')} can be bound`, `set ${key} to ports that are free`),
    ),
  )
}

async function vpcs({ pc }: Resolved): Promise<Check> {
  const found = await findVpcs(pc.vpcs_path)
  if (found !== undefined) return ok('VPCS', `${found.version}, ${found.path}`)
  if (pc.engine === 'vpcs') return error('VPCS', 'not found, and pc.engine is vpcs', 'sudo apt-get install vpcs')
  return warning(
    'VPCS',
    'not found: pcs run in the embedded simulator',
    'sudo apt-get install vpcs (only if you want it)',
  )
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

/** What was found when a guest was booted under KVM, and what to do. */
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

/** Capability bits of linux/capability.h. */
const capabilities = { CAP_NET_ADMIN: 12, CAP_NET_RAW: 13 } as const

async function privileges(): Promise<Check[]> {
  const status = await readFile('/proc/self/status', 'utf8').catch(() => '')
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)/m.exec(status)?.[1] ?? '0'}`)
  const uses = { CAP_NET_ADMIN: 'needed for tap links', CAP_NET_RAW: 'needed for links to network interfaces' } as const
  return Object.entries(capabilities).map(([name, bit]) => {
    const use = uses[name as keyof typeof uses]
    return ((effective >> BigInt(bit)) & 1n) === 1n
      ? ok(name, 'held')
      : warning(
          name,
          `not held; ${use}`,
          `sudo setcap cap_net_admin,cap_net_raw+ep "$(readlink -f "$(command -v node)")"`,
        )
  })
}

function ffi(): Check {
  try {
    createRequire(import.meta.url)('koffi')
    return ok('FFI', 'koffi loads: programs that want a terminal can be run')
  } catch (reason) {
    return warning('FFI', `koffi does not load: ${(reason as Error).message.split('\n')[0]}`, 'npm rebuild koffi')
  }
}

async function kernel(): Promise<Check[]> {
  const [major = 0, minor = 0] = release().split('.').map(Number)
  const hasSegmentation = major > 5 || (major === 5 && minor >= 0)
  const most = Number(await readFile('/proc/sys/net/core/rmem_max', 'utf8').catch(() => '0'))
  return [
    hasSegmentation
      ? ok('UDP GSO/GRO', `Linux ${release()}`)
      : warning('UDP GSO/GRO', `Linux ${release()} is older than 5.0`, 'a newer kernel'),
    most >= 1 << 20
      ? ok('socket buffers', `net.core.rmem_max = ${most}`)
      : warning(
          'socket buffers',
          `net.core.rmem_max = ${most}: bursts on links may be lost`,
          'sudo sysctl -w net.core.rmem_max=1048576',
        ),
  ]
}

async function openFiles(): Promise<Check> {
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '')
  const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? 'unlimited'
  // A pc takes a handful in the keeper: two sockets, a console, its program's terminal.
  return soft === 'unlimited' || Number(soft) >= 4096
    ? ok('open files', soft)
    : warning(
        'open files',
        `${soft}: enough for about ${Math.floor(Number(soft) / 6)} nodes`,
        'ulimit -n 65536 before the start',
      )
}
