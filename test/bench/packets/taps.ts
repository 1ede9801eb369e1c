import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { SwitchNio } from '../../../runtime/node/keeper/protocol/protocol.ts'
import { leasePorts } from '../../support/port-leases.ts'
import { median } from '../medians.ts'
import type { Row } from '../table.ts'
import type { Relay } from './bed.ts'
import { Program } from './program.ts'
import type { Ports } from './wiring.ts'

const run = promisify(execFile)
const ip = (args: string) => run('ip', args.split(' '))
const streams = join(import.meta.dirname, '../labs/streams.py')
const [warmUpSeconds, seconds, turns] = [1, 2, 3]
const port = 5201

interface Host {
  readonly namespace: string
  readonly tap: string
  readonly address: string
}
const near: Host = { namespace: 'pbtap-near', tap: 'pbtap0', address: '192.0.2.1' }
const far: Host = { namespace: 'pbtap-far', tap: 'pbtap1', address: '192.0.2.2' }

/** One TCP stream between two hosts behind TAPs: at one switch, and at two that are linked by UDP, as on two computes. */
export const tapSuites: readonly (() => Promise<Row[]>)[] = [
  streamOf('TAP to TAP', async (program) => {
    const { relay, ports } = await program.start()
    await atSwitch(ports, [tap(near), tap(far)])
    return [relay]
  }),
  streamOf('TAP over UDP to TAP', async (program) => {
    const lease = leasePorts(2)
    const [one, two] = [await program.start(), await program.start()]
    await atSwitch(one.ports, [tap(near), udp(lease.first, lease.first + 1)])
    await atSwitch(two.ports, [tap(far), udp(lease.first + 1, lease.first)])
    lease.release()
    return [one.relay, two.relay]
  }),
]

const unimpaired = { suspend: false, filters: [] }
const tap = ({ tap: device }: Host): SwitchNio => ({ type: 'tap', device, ...unimpaired })
const udp = (lport: number, rport: number): SwitchNio => ({
  ...{ type: 'udp', lport, rport, rhost: '127.0.0.1' },
  ...unimpaired,
})

async function atSwitch(ports: Ports, links: readonly SwitchNio[]): Promise<void> {
  const spec = links.map((_, port_number) => ({ port_number, mode: 'access' as const, vlan: 1, ethertype: 0x8100 }))
  await ports.bridge('switch:bench', { type: 'bridge', forwards: 'learned', ageing_s: 300, ports: spec })
  for (const [bridge_port, nio] of links.entries()) {
    const key = `switch:bench/0/${bridge_port}`
    await ports.open(key, { bridge_port })
    await ports.attach(key, nio)
  }
}

/** The median of a few turns, and the processor time of the packet paths alone. */
function streamOf(what: string, open: (program: Program) => Promise<readonly Relay[]>): () => Promise<Row[]> {
  return async () => {
    if (process.getuid?.() !== 0) return [[`${what}, one TCP stream`, 'left out', 'only root may make network devices']]
    await using program = new Program()
    let sink: ChildProcess | undefined
    try {
      for (const { namespace } of [near, far]) await ip(`netns add ${namespace}`)
      const relays = await open(program)
      for (const { namespace, tap, address } of [near, far]) {
        await ip(`link set ${tap} netns ${namespace}`)
        await ip(`-n ${namespace} addr add ${address}/24 dev ${tap}`)
        await ip(`-n ${namespace} link set ${tap} up`)
      }
      sink = spawn('ip', ['netns', 'exec', far.namespace, 'python3', streams, 'sink', far.address, String(port)], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      if (sink.stdout !== null) await once(sink.stdout, 'data')
      await stream(warmUpSeconds)
      const rates: number[] = []
      const costs: number[] = []
      for (let turn = 0; turn < turns; turn++) {
        const before = await cpuOf(relays)
        const rate = await stream(seconds)
        rates.push(rate)
        costs.push(((await cpuOf(relays)) - before) / 1000 / ((rate * seconds) / 8000))
      }
      const rate = median(rates)
      const more = `${(rate / 1000).toFixed(2)} Gbit/s, CPU ${Math.round(median(costs))} ms a GB`
      return [[`${what}, one TCP stream`, `${Math.round(rate / 8)} MB/s`, more]]
    } finally {
      sink?.kill('SIGKILL')
      for (const { namespace } of [near, far]) await ip(`netns del ${namespace}`).catch(() => {})
    }
  }
}

/** The Mbit/s of a stream that lasts so long. */
async function stream(seconds: number): Promise<number> {
  const client = ['python3', streams, 'up', far.address, String(port), String(seconds)]
  return Number((await run('ip', ['netns', 'exec', near.namespace, ...client])).stdout)
}

async function cpuOf(relays: readonly Relay[]): Promise<number> {
  const used = await Promise.all(relays.map((relay) => relay.usage()))
  return used.reduce((sum, { cpu }) => sum + cpu, 0)
}
