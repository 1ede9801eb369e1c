import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { killWithGroup, type ProgramEnd, runProgram, startProgram } from '../../os/programs/start.ts'
import { give } from '../../os/sandbox/box.ts'
import type { Confinement } from '../../os/sandbox/sandbox.ts'
import { isPlatform, type Platform, platformIn } from './platforms.ts'
import { Qmp, QmpError, type QmpVersion } from './qmp.ts'

/** The capabilities of one emulator program. */
export interface BinaryFacts {
  readonly path: string
  /** As numbers, to compare with `isAtLeast`. */
  readonly version: QmpVersion
  readonly platform: Platform
  readonly machines: readonly MachineFacts[]
  /** Device models that `-device` takes, by name and by alias. */
  readonly devices: ReadonlyMap<string, DeviceModel>
  /** Back ends that `-netdev` takes, such as `dgram`, `stream` and `socket`. */
  readonly netdevs: ReadonlySet<string>
  /** Accelerators it was built with; `acceleratorsOf` tests whether KVM can be used now. */
  readonly builtWith: { readonly tcg: boolean; readonly kvm: boolean }
  readonly hasVnc: boolean
  readonly hasSpice: boolean
}

interface MachineFacts {
  readonly name: string
  /** Another name, such as `pc` or `q35` for the newest version of a machine. */
  readonly alias?: string
  readonly maxCpus: number
  readonly isDefault: boolean
}

export interface DeviceModel {
  readonly name: string
  /** The heading in QEMU's list, such as `Network`. */
  readonly category: string
  /** Such as `PCI`, `ISA` or `virtio-bus`; undefined for a device without a bus. */
  readonly bus: string | undefined
}

/** Timeout of one probe, ms. It takes 0.1 s, and seconds on a busy host. */
const probeMs = 15_000
/** Timeout of the first monitor, ms: a monitor that is silent for so long hangs, and the next one seldom does. */
const firstTryMs = 6000
const maxOutputBytes = 4 << 20

export const isAtLeast = (version: Pick<QmpVersion, 'major' | 'minor'>, major: number, minor: number): boolean =>
  version.major > major || (version.major === major && version.minor >= minor)

export const versionText = ({ major, minor, micro }: QmpVersion): string => `${major}.${minor}.${micro}`

/** Queries the capabilities of the program; 409 with its message when it is no working emulator. */
export async function probe(path: string, confinement?: Confinement): Promise<BinaryFacts> {
  try {
    const [answers, devices, netdevs] = await Promise.all([
      askMonitor(path, confinement),
      run(path, ['-machine', 'none', '-device', 'help'], confinement).then(devicesIn),
      run(path, ['-machine', 'none', '-netdev', 'help'], confinement).then(netdevsIn),
    ])
    if (devices.size === 0) throw new Error('it lists no devices')
    const { version, arch, machines, types, commands, kvm } = answers
    const named = platformIn(path)
    const platform = named ?? (isPlatform(arch) ? arch : undefined)
    if (platform === undefined) throw new Error(`it emulates ${arch}, which is not supported`)
    return {
      path,
      version,
      platform,
      machines,
      devices,
      // Versions without `-netdev help` have these.
      netdevs: netdevs.size > 0 ? netdevs : new Set(['socket', 'tap', 'user']),
      builtWith: { tcg: types.has('tcg-accel') || !types.has('kvm-accel'), kvm },
      hasVnc: commands.has('query-vnc'),
      // SPICE may be in a module that is not installed.
      hasSpice: commands.has('query-spice') && types.has('chardev-spicevmc'),
    }
  } catch (cause) {
    throw conflict(`${basename(path)} cannot be used as an emulator: ${(cause as Error).message}`, { cause })
  }
}

async function askMonitor(path: string, confinement: Confinement | undefined) {
  try {
    return await askOnce(path, firstTryMs, confinement)
  } catch (error) {
    if (!isStuck(error) && !hasVanished(error)) throw error
    return askOnce(path, probeMs - firstTryMs, confinement)
  }
}

/** Whether the program runs and its monitor is silent. */
const isStuck = (error: unknown): boolean =>
  error instanceof QmpError && ['silent', 'timeout', 'unreachable'].includes(error.code)

/** Whether the program ended without a word: something killed it. */
const hasVanished = (error: unknown): boolean => error instanceof QmpError && error.code === 'closed'

async function askOnce(path: string, ms: number, confinement: Confinement | undefined) {
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-probe-'))
  const socket = join(directory, 'qmp')
  const args = '-S -machine none -nodefaults -display none -qmp'.split(' ').concat(`unix:${socket},server=on,wait=off`)
  await give(confinement?.user, directory)
  const cell = { cwd: '/', network: 'none' as const, writable: [directory] }
  const run = confinement?.wrap(cell, path, args) ?? { command: path, args }
  const child = startProgram(run.command, run.args, { stdio: ['ignore', 'ignore', 'pipe'], detached: true })
  const ended = new AbortController()
  let complaint = ''
  child.stderr?.on('data', (bytes) => {
    complaint = (complaint + String(bytes)).slice(-1024)
  })
  const gone = new Promise<void>((resolve) => {
    const end = () => {
      ended.abort()
      resolve()
    }
    child.once('error', (error) => {
      complaint = error.message
      end()
    })
    child.once('close', end)
  })
  try {
    const qmp = await Qmp.connect({ path: socket, ms, signal: ended.signal })
    return await askAll(qmp, ms)
  } catch (cause) {
    const last = complaint.trim().split('\n').at(-1)
    throw last && !isStuck(cause) ? new Error(last, { cause }) : cause
  } finally {
    killWithGroup(child)
    await gone
    await rm(directory, { recursive: true, force: true })
  }
}

interface QmpMachine {
  readonly name: string
  readonly alias?: string
  readonly 'cpu-max': number
  readonly 'is-default'?: boolean
}

async function askAll(qmp: Qmp, ms: number) {
  const ask = <T>(command: string, args = {}) => qmp.execute<T>(command, args, ms)
  const names = (list: readonly { name: string }[]) => new Set(list.map(({ name }) => name))
  // In sequence: pipelined commands once made an emulator on a busy host fail an assertion of its parser.
  const target = await ask<{ arch: string }>('query-target')
  const machines = await ask<QmpMachine[]>('query-machines')
  const types = names(await ask<{ name: string }[]>('qom-list-types', { abstract: false }))
  const commands = names(await ask<{ name: string }[]>('query-commands'))
  const kvm = await ask<{ present: boolean }>('query-kvm')
  return {
    version: qmp.version,
    arch: target.arch,
    machines: machines.map((it) => ({
      name: it.name,
      ...(it.alias === undefined ? {} : { alias: it.alias }),
      maxCpus: it['cpu-max'],
      isDefault: it['is-default'] ?? false,
    })),
    types,
    commands,
    kvm: kvm.present,
  }
}

/** The output of the program: of a second run when something ended the first one before it was through. */
async function run(path: string, args: readonly string[], confinement: Confinement | undefined): Promise<string> {
  const wrapped = confinement?.wrap({ cwd: '/', network: 'none' }, path, args) ?? { command: path, args }
  const options = { ms: probeMs, maxBytes: maxOutputBytes }
  const first = await runProgram(wrapped.command, wrapped.args, options)
  const { error, stdout, stderr } = isKill(first.error)
    ? await runProgram(wrapped.command, wrapped.args, options)
    : first
  // Some versions print to standard error, and some exit with 1; what was cut off would be kept as all that there is.
  if (error !== null && (typeof error.code !== 'number' || isKill(error))) throw error
  return stdout.trim() === '' ? stderr : stdout
}

/** Whether a signal ended the program; bubblewrap, which it runs in when confined, ends with 128 and the signal then. */
const isKill = (error: ProgramEnd['error']): boolean =>
  error !== null && (Boolean(error.signal) || (typeof error.code === 'number' && error.code > 128))

/** `name "e1000", bus PCI, alias "e1000-82540em", desc "..."` under headings such as `Network devices:`. */
export function devicesIn(text: string): ReadonlyMap<string, DeviceModel> {
  const devices = new Map<string, DeviceModel>()
  let category = ''
  for (const line of text.split('\n')) {
    const heading = /^(.+) devices:$/.exec(line)?.[1]
    if (heading !== undefined) category = heading
    const [, name, bus] = /^name "([^"]+)"(?:, bus ([^,]+))?/.exec(line) ?? []
    if (name === undefined) continue
    const device = { name, category, bus }
    const alias = /, alias "([^"]+)"/.exec(line)?.[1]
    for (const key of [name, alias]) if (key !== undefined && !devices.has(key)) devices.set(key, device)
  }
  return devices
}

/** A heading, then one word per line. */
function netdevsIn(text: string): ReadonlySet<string> {
  const lines = text.split('\n')
  const start = lines.findIndex((line) => /^Available netdev/i.test(line))
  const words = start < 0 ? [] : lines.slice(start + 1).map((line) => line.trim())
  return new Set(words.filter((line) => /^[a-z0-9-]+$/.test(line)))
}
