import { createSocket } from 'node:dgram'
import type { Filter } from '../../../runtime/node/dataplane/filters/index.ts'
import { Switch } from '../../../runtime/node/dataplane/switch/switch.ts'
import { linkTypeEthernet, type Ports, type Targets, wire } from './wiring.ts'

/** What carries the frames: our switch, by one of its paths, or the least that node:dgram needs. */
export type RelayKind = 'fast' | 'fast, no GSO' | 'portable' | 'node:dgram' | 'none'

export interface Setup {
  readonly kind: RelayKind
  /** `leg`: a node and a UDP peer; `joined`: two nodes of this host, also over a switch, which may have more nodes (`sinks`). */
  readonly shape: 'leg' | 'joined' | 'switched' | 'flooded'
  /** UDP ports of the generator: two a link. */
  readonly ports: readonly (readonly [number, number])[]
  /** Local UDP ports of the two ends of each link. */
  readonly ends: readonly (readonly [number, number])[]
  /** UDP ports of the generator for the further nodes of `flooded`, which it reads too. */
  readonly sinks: readonly number[]
  readonly filters?: readonly Filter[]
  readonly captureFile?: string
  /** Guests, or in a leg the one guest, that are port 0 of the IOU instance with this id. The other end of a leg to `b` is `a`. */
  readonly netio?: { readonly a?: number; readonly b?: number }
}

export type Order = { readonly setup: Setup } | { readonly usage: true }
/** The usage is the processor time so far in microseconds, and the memory in MB. */
export type Reply = Targets | { readonly cpu: number; readonly memory: number }

const host = '127.0.0.1'

process.on('disconnect', () => process.exit())
process.on('message', (order: Order) => {
  void (async () => {
    if ('setup' in order) {
      process.send?.((await open(order.setup)) satisfies Reply)
      return
    }
    const { user, system } = process.cpuUsage()
    process.send?.({ cpu: user + system, memory: process.memoryUsage.rss() / 2 ** 20 } satisfies Reply)
  })()
})

async function open(setup: Setup): Promise<Targets> {
  if (setup.kind === 'none') return { targets: setup.ports.map(([a, b]) => [b, a]), sinkTargets: [] }
  if (setup.kind !== 'node:dgram') return wire(await switchPorts(setup), setup)
  const targets: (readonly [number, number])[] = []
  for (const pair of setup.ports) targets.push(await plainRelay(pair, setup))
  return { targets, sinkTargets: [] }
}

async function switchPorts({ kind }: Setup): Promise<Ports> {
  const lan = await Switch.start({
    captureFailed: (_key, _file, message) => console.error(message),
    log: console.error,
    segmenting: kind !== 'fast, no GSO',
    ...(kind === 'portable' && { path: 'portable' }),
  })
  return {
    async open(key, guest) {
      const at =
        'netio' in guest
          ? guest.netio
          : 'guest_port' in guest
            ? guest.guest_port
            : 'tap' in guest
              ? guest
              : lan.bridgePort(key.slice(0, key.indexOf('/')), guest.bridge_port)
      return (await lan.open(key, at)).switch_port
    },
    attach: (key, nio) => lan.attach(key, nio),
    capture: (key, file) => lan.captured(key).start(file, linkTypeEthernet, 0),
    bridge: (key, spec) => lan.configure(key, spec),
    join: (links) => lan.joinAll(links),
  }
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
