import { createSocket } from 'node:dgram'
import type { Filter } from '../../../runtime/node/filters/index.ts'
import type { SwitchNio } from '../../../runtime/node/keeper-protocol/protocol.ts'
import { Switch } from '../../../runtime/node/switch/switch.ts'

/** What carries the frames: our switch, by one of its paths, or the least that node:dgram needs. */
export type RelayKind = 'fast' | 'fast, no GSO' | 'portable' | 'node:dgram' | 'none'

export interface Setup {
  readonly kind: RelayKind
  /** `leg`: a node and a UDP peer; `joined`: two nodes of this host, also over a switch, which may have more nodes (`sinks`). */
  readonly shape: 'leg' | 'joined' | 'switched' | 'flooded'
  /** UDP ports of the generator: two a link; the two after them are for the ends of the link. */
  readonly ports: readonly (readonly [number, number])[]
  /** UDP ports of the generator for the further nodes of `flooded`, which it reads too. */
  readonly sinks: readonly number[]
  readonly filters?: readonly Filter[]
  readonly captureFile?: string
  /** Guests, or in a leg the one guest, that are port 0 of the IOU instance with this id. The other end of a leg to `b` is `a`. */
  readonly netio?: { readonly a?: number; readonly b?: number }
}

export type Order = { readonly setup: Setup } | { readonly usage: true }
export type Reply =
  /** Where the two sockets of each link have to send to. */
  | { readonly targets: readonly (readonly [number, number])[]; readonly sinkTargets: readonly number[] }
  /** CPU time so far in microseconds, and the memory in MB. */
  | { readonly cpu: number; readonly memory: number }

const host = '127.0.0.1'
/** Where the sinks are in the switch. */
let sinkTargets: readonly number[] = []

process.on('disconnect', () => process.exit())
process.on('message', (order: Order) => {
  void (async () => {
    if ('setup' in order) {
      const { kind, ports } = order.setup
      const direct = async ([a, b]: readonly [number, number]) => [b, a] as const
      const relay = kind === 'node:dgram' ? plainRelay : await switchRelay(order.setup)
      const open = kind === 'none' ? direct : relay
      const targets: (readonly [number, number])[] = []
      for (const [index, pair] of ports.entries()) targets.push(await open(pair, order.setup, index))
      process.send?.({ targets, sinkTargets } satisfies Reply)
      return
    }
    const { user, system } = process.cpuUsage()
    process.send?.({ cpu: user + system, memory: process.memoryUsage.rss() / 2 ** 20 } satisfies Reply)
  })()
})

async function switchRelay({ kind }: Setup) {
  const lan = await Switch.start({
    captureFailed: (_key, _file, message) => console.error(message),
    log: console.error,
    segmenting: kind !== 'fast, no GSO',
    ...(kind === 'portable' && { path: 'portable' }),
  })
  return async ([a, b]: readonly [number, number], setup: Setup, index: number): Promise<readonly [number, number]> => {
    const { filters = [], captureFile, shape, netio = {} } = setup
    const guest = (id: number | undefined, port: number) =>
      id === undefined ? port : { application_id: id, port: 0, ethernet: true }
    const nio = (lport: number, rport: number, filters: readonly Filter[]): SwitchNio => ({
      type: 'udp',
      ...{ lport, rport, rhost: host, filters, suspend: false },
    })
    const key = `a${index}`
    const first = b + 1
    if (shape === 'leg' && netio.b !== undefined) {
      await lan.open(key, guest(netio.b, b))
      await lan.attach(key, nio(first, a, filters))
      return [first, 0]
    }
    const { switch_port: toA } = await lan.open(key, guest(netio.a, a))
    if (shape === 'switched' || shape === 'flooded') return [toA, await overSwitch(lan, b, setup.sinks)]
    let toB = first
    if (shape === 'leg') await lan.attach(key, nio(first, b, filters))
    else {
      toB = (await lan.open(`b${index}`, guest(netio.b, b))).switch_port
      await lan.attach(key, nio(first, first + 1, filters))
      await lan.attach(`b${index}`, nio(first + 1, first, []))
    }
    if (captureFile !== undefined) await lan.captured(key).start(captureFile, 1, 0)
    return [toA, toB]
  }
}

/** Links the guests a0 and b0, and the sinks, by a switch; the port that b sends to. */
async function overSwitch(lan: Switch, b: number, sinks: readonly number[]): Promise<number> {
  const keys = ['a0', 'b0', ...sinks.map((port) => `s${port}`)]
  const ports = keys.map((_, port_number) => ({ port_number, mode: 'access' as const, vlan: 1, ethertype: 0x8100 }))
  await lan.configure('sw', { type: 'bridge', forwards: 'learned', ageing_s: 300, ports })
  const { switch_port: toB } = await lan.open('b0', b)
  const opened = await Promise.all(sinks.map((port) => lan.open(`s${port}`, port)))
  sinkTargets = opened.map(({ switch_port }) => switch_port)
  for (const port of keys.keys()) await lan.open(`sw/0/${port}`, lan.bridgePort('sw', port))
  await lan.joinAll(
    keys.map((key, port) => ({
      ...{ link_id: key, ports: [key, `sw/0/${port}`] as const, suspend: false, filters_ab: [], filters_ba: [] },
    })),
  )
  return toB
}

/** One socket a side, one frame a turn: what the least program on node:dgram does. `joined` has two of them in a row, as a program a node has. */
async function plainRelay([a, b]: readonly [number, number], { shape }: Setup): Promise<readonly [number, number]> {
  const left = await bound()
  const right = await bound()
  left.connect(a, host)
  right.connect(b, host)
  if (shape === 'leg') {
    left.on('message', (frame) => right.send(frame, () => {}))
    right.on('message', (frame) => left.send(frame, () => {}))
  } else {
    const [one, two] = [await bound(), await bound()]
    one.connect(two.address().port, host)
    two.connect(one.address().port, host)
    left.on('message', (frame) => one.send(frame, () => {}))
    two.on('message', (frame) => right.send(frame, () => {}))
    right.on('message', (frame) => two.send(frame, () => {}))
    one.on('message', (frame) => left.send(frame, () => {}))
  }
  return [left.address().port, right.address().port]
}

async function bound() {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 4 << 20, sendBufferSize: 4 << 20 })
  socket.on('error', () => {})
  await new Promise<void>((resolve) => socket.bind(0, host, resolve))
  return socket
}
