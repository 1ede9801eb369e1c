import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { kvmPlatforms } from '../../../runtime/node/drivers/qemu/binaries.ts'
import { findProgram } from '../../../runtime/node/os/system/find-program.ts'
import { GuestShell } from '../../support/guest/console.ts'
import { type GuestFiles, guestFiles } from '../../support/guest/files.ts'
import { linkUp, ping, transfer } from '../../support/guest/network.ts'
import { leasePorts } from '../../support/port-leases.ts'
import { at, median, medianDifference, ratio } from '../medians.ts'
import type { Row } from '../table.ts'
import { startDirect } from './direct.ts'
import { MachineLab } from './lab.ts'

const rounds = 12
const pings = 10
/** About a second of it. */
const megabytes = { tcg: 4, kvm: 256 } as const
const adapters = ['virtio-net-pci', 'e1000'] as const
const [first, second] = ['10.0.0.1', '10.0.0.2'] as const
const bootMs = 40_000

type Acceleration = 'tcg' | 'kvm'

/** Two Linux guests that are connected. */
interface Pair extends AsyncDisposable {
  readonly a: GuestShell
  readonly b: GuestShell
}

/**
 * What two guests have of each other through the service, beside the same guests with emulators wired to each other: medians
 * of what the turns of one round differ by.
 */
export async function guests(): Promise<Row[]> {
  if (findProgram('busybox') === undefined) return [['guest to guest', '-', 'busybox is not installed']]
  const files = await guestFiles()
  return [...(await compared(files, 'tcg')), ...(await withKvm(files))]
}

async function withKvm(files: GuestFiles): Promise<Row[]> {
  const what = 'guest to guest, kvm'
  if (!kvmPlatforms().includes('x86_64')) return [[what, '-', 'KVM cannot be used here']]
  try {
    return await compared(files, 'kvm')
  } catch (error) {
    // That of some clouds can be opened, and runs nothing. It says nothing about us.
    return [[what, '-', `no guest boots here: ${(error as Error).message.split(';')[0]}`]]
  }
}

async function compared(files: GuestFiles, acceleration: Acceleration): Promise<Row[]> {
  const rows: Row[] = []
  for (const adapter of adapters) rows.push(...(await comparedWith(adapter, files, acceleration)))
  return rows
}

async function comparedWith(adapter: string, files: GuestFiles, acceleration: Acceleration): Promise<Row[]> {
  await using lab = await MachineLab.open(acceleration)
  const settings = await machineSettings(lab, files, adapter)
  await using ours = await linkedPair(lab, settings)
  await using direct = await directPair(lab, settings)
  const turns = [
    { ...ours, rates: [] as number[], trips: [] as number[], shares: [] as number[] },
    { ...direct, rates: [] as number[], trips: [] as number[], shares: [] as number[] },
  ] as const
  // Both are there all the time, so that the one that waits costs the other the same.
  for (let round = -1; round < rounds; round++) {
    for (const { a, b, rates, trips, shares } of round % 2 === 0 ? turns : [...turns].reverse()) {
      const [before, began] = [await lab.service.usage(), performance.now()]
      const { bytes, ms } = await transfer(a, b, second, megabytes[acceleration])
      const took = performance.now() - began
      const { cpuMs } = await lab.service.usage()
      const { ms: times } = await ping(a, second, pings)
      if (round < 0) continue
      rates.push(bytes / ms / 1000)
      trips.push(median(times))
      shares.push(((cpuMs - before.cpuMs) * 100) / took)
    }
  }
  const what = `guest to guest, ${acceleration}, ${adapter}`
  const [through, wired] = turns
  const ratios = through.rates.map((rate, round) => rate / (wired.rates[round] ?? Number.NaN))
  const difference = medianDifference(through.trips, wired.trips)
  return [
    [
      `${what}, TCP`,
      `${median(ratios).toFixed(2)} x`,
      `${range(through.rates)} MB/s; directly ${range(wired.rates)}; service and keeper take ${median(through.shares).toFixed(0)} % of a processor`,
    ],
    [
      `${what}, ping`,
      `${difference < 0 ? '' : '+'}${us(difference)} p50`,
      `p50 ${us(median(through.trips))}; directly ${us(median(wired.trips))}; ${ratio(median(through.trips), median(wired.trips))}`,
    ],
  ]
}

const us = (ms: number) => `${(ms * 1000).toFixed(0)} us`
const range = (values: readonly number[]) =>
  `${median(values).toFixed(1)} (${at(values, 0).toFixed(1)} to ${at(values, 1).toFixed(1)})`

async function machineSettings(lab: MachineLab, { kernel, initrd }: GuestFiles, adapter_type: string) {
  await Promise.all([lab.linkedImage('vmlinux', kernel), lab.linkedImage('initrd.img', initrd)])
  const common = { ram: 128, adapter_type, kernel_image: 'vmlinux', initrd: 'initrd.img', process_priority: 'normal' }
  return [first, second].map((address) => ({
    ...common,
    kernel_command_line: `console=ttyS0 quiet no_timer_check panic=-1 cryptomgr.notests pb.ip=${address}/24`,
  }))
}

/** Guests of the service with a link between them. */
async function linkedPair(lab: MachineLab, settings: readonly object[]): Promise<Pair> {
  const nodes = await Promise.all(settings.map((it) => lab.create(it)))
  await lab.link(nodes)
  const shells = await Promise.all(
    nodes.map(async (node) => {
      await lab.post(`${node}/start`)
      return shellAt(connect((await lab.get(node)).console, '127.0.0.1'))
    }),
  )
  return pair(shells, async () => {
    await Promise.all(nodes.map((node) => lab.post(`${node}/stop`)))
  })
}

/** The command lines of such nodes, but every adapter sends to the other one, and the console is no pipe. */
async function directPair(lab: MachineLab, settings: readonly object[]): Promise<Pair> {
  const nodes = await Promise.all(settings.map((it) => lab.create(it)))
  const machines = await Promise.all(
    nodes.map(async (node) => {
      await lab.post(`${node}/start`)
      await lab.post(`${node}/stop`)
      return lab.get(node)
    }),
  )
  const { first } = leasePorts(2)
  const running = await Promise.all(
    machines.map(async ({ command_line, node_directory }, index) => {
      const console = join(lab.service.data, 'run', `console-${index}`)
      const line = command_line
        .replace(/(-netdev dgram,id=[\w-]+),\S*/, `$1,${wiredTo(first + index, first + 1 - index)}`)
        .replace('-chardev stdio,id=pb-serial,signal=off', `-chardev socket,id=pb-serial,path=${console},server=on`)
      return { console, started: startDirect(line, node_directory) }
    }),
  )
  // They wait for their consoles, as no one then misses the first prompt.
  const shells = await Promise.all(running.map(({ console }) => consoleOf(console)))
  const direct = await Promise.all(running.map(({ started }) => started))
  return pair(shells, async () => {
    await Promise.all(direct.map((it) => it.stop()))
  })
}

const wiredTo = (local: number, remote: number): string =>
  `local.type=inet,local.host=127.0.0.1,local.port=${local},remote.type=inet,remote.host=127.0.0.1,remote.port=${remote}`

async function consoleOf(path: string): Promise<GuestShell> {
  for (let tries = 0; ; tries++) {
    try {
      return await shellAt(connect(path))
    } catch (error) {
      if (tries > 1000) throw error
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
}

async function shellAt(socket: ReturnType<typeof connect>): Promise<GuestShell> {
  await once(socket, 'connect')
  return new GuestShell(socket)
}

async function pair(shells: readonly GuestShell[], stop: () => Promise<void>): Promise<Pair> {
  const end = async () => {
    for (const shell of shells) shell.close()
    await stop()
  }
  try {
    const [a, b] = shells as [GuestShell, GuestShell]
    await Promise.all([a.ready(bootMs), b.ready(bootMs)])
    await Promise.all([linkUp(a), linkUp(b)])
    return { a, b, [Symbol.asyncDispose]: end }
  } catch (error) {
    await end()
    throw error
  }
}
