import { constants } from 'node:fs'
import { access, readFile, statfs } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { release } from 'node:os'
import { dirname, join } from 'node:path'
import { isLoopback } from '../../../../src/lib/http/network.ts'
import type { Diagnosis, DoctorCheck } from '../../../../src/model/host.ts'
import { bpfAvailable } from '../../dataplane/bpf/compile.ts'
import { nodeDrivers } from '../../drivers/index.ts'
import type { NodeDriver } from '../../drivers/node-driver.ts'
import { isTcpFree, isUdpFree } from '../../engine/ports/bind-test.ts'
import { error, ok, programCheck, warning } from '../../os/programs/checks.ts'
import type { Resolved } from '../config/config.ts'
import { groupOf } from '../config/settings.ts'
import { confinementCheck } from './confinement.ts'
import { keeperCheck } from './keepers.ts'

const setpriv = { use: 'ends the emulators of a killed keeper', install: 'sudo apt-get install util-linux' }

/** Checks what labs need on this machine. An error concerns every lab, a warning only some; `fix` is the remedy. */
export async function diagnose(settings: Resolved, signal?: AbortSignal): Promise<Diagnosis> {
  const all: readonly (() => DoctorCheck | readonly DoctorCheck[] | Promise<DoctorCheck | readonly DoctorCheck[]>)[] = [
    nodeVersion,
    () => dataDirectory(settings),
    () => keeperCheck(settings.data),
    () => ports(settings),
    () => consoleAccess(settings),
    () => sshAccess(settings),
    ...nodeDrivers.map((driver: NodeDriver) => () => {
      const images = [join(settings.data, 'images', driver.descriptor.name), ...settings.additional_images_path]
      return driver.doctor?.(groupOf(settings, driver), signal, images) ?? []
    }),
    () => programCheck('setpriv', ['setpriv'], setpriv, signal),
    () => confinementCheck(settings),
    privileges,
    ffi,
    libpcapCheck,
    kernel,
    openFiles,
  ]
  // One that throws at once leaves the others awaited.
  const groups = await Promise.all(all.map(async (check) => check()))
  const checks = groups.flat()
  return { ok: checks.every(({ status }) => status !== 'error'), checks }
}

/** The library of the filter `bpf` of links. */
const libpcapCheck = (): DoctorCheck =>
  bpfAvailable()
    ? ok('libpcap', 'the filter bpf of links can be used')
    : warning('libpcap', 'not found; for the filter bpf of links', 'sudo apt-get install libpcap0.8')

function nodeVersion(): DoctorCheck {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const isEnough = major > 20 || (major === 20 && minor >= 19)
  const found = `${process.version} on ${process.platform} ${release()}`
  return isEnough ? ok('Node.js', found) : error('Node.js', found, 'install Node.js 20.19 or later')
}

async function dataDirectory({ data, min_free_space_mb }: Resolved): Promise<DoctorCheck[]> {
  const directory = await nearestExisting(data)
  const isWritable = await isAccessible(directory, constants.W_OK | constants.X_OK)
  const { bavail, bsize } = await statfs(directory)
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

/** Telnet, VNC and SPICE have no password here: clients of API version 1 connect to these ports without one. */
export function consoleAccess({ console_host }: Pick<Resolved, 'console_host'>): DoctorCheck {
  const found = (who: string) => `on ${console_host} without a password: ${who} can use telnet, VNC and SPICE consoles`
  if (console_host === 'localhost' || isLoopback(console_host)) return ok('consoles', found('every user of this host'))
  const fix =
    'set console_host = "127.0.0.1" and use the websockets of consoles, or let a firewall protect the port ranges'
  return warning('consoles', found('everyone who reaches that address'), fix)
}

/** SSH always needs the key of a token. */
export function sshAccess({ ssh: { port, host } }: Pick<Resolved, 'ssh'>): DoctorCheck {
  return port === undefined
    ? ok('SSH', 'off; with ssh.port, public keys of tokens open consoles')
    : ok('SSH', `ssh -p ${port} LAB/NODE@${host}, with the public key of a token`)
}

async function isAccessible(path: string, mode: number): Promise<boolean> {
  return (await access(path, mode).catch(() => false)) !== false
}

async function nearestExisting(path: string): Promise<string> {
  if (dirname(path) === path || (await isAccessible(path, constants.F_OK))) return path
  return nearestExisting(dirname(path))
}

/** Tests three ports of each range: finds a range that is taken or forbidden as a whole. One busy port is not an error. */
async function ports({
  console_port_range,
  vnc_port_range,
  udp_port_range,
  console_host,
}: Resolved): Promise<DoctorCheck[]> {
  const sample = ([first, last]: readonly [number, number]) => [first, Math.floor((first + last) / 2), last]
  const isFree = async (range: readonly [number, number], test: (port: number) => Promise<boolean>) =>
    (await Promise.all(sample(range).map((port) => test(port).catch(() => false)))).some(Boolean)
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
        : error(name, `no tested port of ${range.join('-')} can be bound`, `set ${key} to ports that are free`),
    ),
  )
}

/** Capabilities with their bits (linux/capability.h) and their use. */
const capabilities = [
  ['CAP_NET_ADMIN', 12n, 'needed for tap links'],
  ['CAP_NET_RAW', 13n, 'needed for links to network interfaces'],
] as const

async function privileges(): Promise<DoctorCheck[]> {
  const status = await readFile('/proc/self/status', 'utf8').catch(() => '')
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)/m.exec(status)?.[1] ?? '0'}`)
  const fix = 'sudo setcap cap_net_admin,cap_net_raw+ep "$(readlink -f "$(command -v node)")"'
  return capabilities.map(([name, bit, use]) =>
    ((effective >> bit) & 1n) === 1n ? ok(name, 'held') : warning(name, `not held; ${use}`, fix),
  )
}

function ffi(): DoctorCheck {
  try {
    createRequire(import.meta.url)('koffi')
    return ok('FFI', 'koffi loads: programs that need a terminal can run')
  } catch (reason) {
    const found = `koffi does not load: ${(reason as Error).message.split('\n')[0]}`
    return warning(
      'FFI',
      found,
      'install Patchbay again on this machine, with the Node that runs it; in a checkout: npm ci',
    )
  }
}

async function kernel(): Promise<DoctorCheck[]> {
  const [major = 0] = release().split('.').map(Number)
  const maxBytes = Number(await readFile('/proc/sys/net/core/rmem_max', 'utf8').catch(() => '0'))
  const found = `net.core.rmem_max = ${maxBytes}`
  const fix = 'sudo sysctl -w net.core.rmem_max=1048576'
  return [
    // udp(7): UDP_GRO is in Linux since 5.0.
    major >= 5
      ? ok('UDP GSO/GRO', `Linux ${release()}`)
      : warning('UDP GSO/GRO', `Linux ${release()} is older than 5.0`, 'a newer kernel'),
    maxBytes >= 1 << 20
      ? ok('socket buffers', found)
      : warning('socket buffers', `${found}: bursts on links may be lost`, fix),
  ]
}

async function openFiles(): Promise<DoctorCheck> {
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '')
  const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? 'unlimited'
  if (soft === 'unlimited' || Number(soft) >= 4096) return ok('open files', soft)
  // A pc uses about six in the keeper: two sockets, a console with its clients, the terminal of its program.
  const found = `${soft}: enough for about ${Math.floor(Number(soft) / 6)} nodes`
  return warning('open files', found, 'ulimit -n 65536 before the start')
}
