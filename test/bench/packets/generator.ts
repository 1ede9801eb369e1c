import { Backlog } from '../../../runtime/node/dataplane/fast/backlog.ts'
import { Memory } from '../../../runtime/node/dataplane/fast/memory.ts'
import { netioDirectory } from '../../../runtime/node/dataplane/fast/netio-directory.ts'
import { bridgeOffset, NetioSocket } from '../../../runtime/node/dataplane/fast/netio-socket.ts'
import { Receiver } from '../../../runtime/node/dataplane/fast/receiver.ts'
import { Sockets } from '../../../runtime/node/dataplane/fast/sockets.ts'
import { type Output, Transmitter } from '../../../runtime/node/dataplane/fast/transmitter.ts'
import { loadLibc } from '../../../runtime/node/os/system/libc.ts'

export interface Open {
  readonly ports: readonly (readonly [number, number])[]
  readonly targets: readonly (readonly [number, number])[]
  /** Ports of further nodes that only receive, and where they are in the switch. */
  readonly sinks: readonly number[]
  readonly sinkTargets: readonly number[]
  /** Whether the generator joins and splits frames by the kernel, as QEMU or another switch may. */
  readonly segmenting: boolean
  readonly netio: Netio
}

/** Ends that are IOU instances instead of UDP sockets, by application id. */
export interface Netio {
  readonly a?: number
  readonly b?: number
  /** Each is the bridge of the other: there is no relay. */
  readonly isDirect: boolean
}

/** As much as goes through, with at most `window` frames of `length` bytes a link on their way. */
export interface Throughput {
  readonly length: number
  readonly window: number
  readonly ms: number
  /** The share that the relay is to drop. */
  readonly loss: number
  /** Addresses and EtherType of every frame, when these matter. */
  readonly header: readonly number[]
  /** What did not come after so long is lost, ms. */
  readonly patience: number
}

export type Task =
  | { readonly open: Open }
  | { readonly throughput: Throughput }
  /** Frames there and back, one after the other. */
  | { readonly roundTrips: { readonly length: number; readonly count: number } }

export type Done =
  | { readonly opened: true }
  | { readonly frames: number; readonly lost: number; readonly seconds: number }
  | { readonly p50: number; readonly p99: number }

const libc = loadLibc()
const receiver = new Receiver(libc)
const transmitter = new Transmitter(libc)
const frames = new Memory(libc, 65_536)
for (let place = 0; place < frames.bytes.length; place++) frames.bytes[place] = place & 0x7f

interface Link {
  readonly a: Output & { readonly gro: boolean }
  readonly b: Output & { readonly gro: boolean }
  outstanding: number
  quietSince: number
}
let links: Link[] = []
let sinks: Link['b'][] = []
let isSegmenting = false
const atOnce = 64

process.on('disconnect', () => process.exit())
process.on('message', (task: Task) => {
  if ('open' in task) {
    open(task.open)
    reply({ opened: true })
  } else if ('throughput' in task) reply(throughput(task.throughput))
  else reply(roundTrips(task.roundTrips))
})

const reply = (done: Done) => process.send?.(done)

function open({ ports, targets, sinks: ofSinks, sinkTargets, segmenting, netio }: Open): void {
  for (const { a, b } of links) for (const { fd } of [a, b]) libc.close(fd)
  for (const { fd } of sinks) libc.close(fd)
  isSegmenting = segmenting
  const sockets = new Sockets(libc, segmenting)
  const socket = (local: number, remote: number) => {
    const address = '127.0.0.1'
    const { fd, gro } = sockets.udp({
      type: 'udp',
      local: { address, port: local },
      remote: { address, port: remote },
      ...{ probes: false, row: 0, sends: 'out' },
    })
    return { fd, gro, gso: segmenting, kind: 'udp' as const, hasHeader: false, refused() {}, failed() {} }
  }
  sinks = ofSinks.map((port, index) => socket(port, sinkTargets[index] ?? 0))
  links = ports.map(([a, b], index) => {
    const [toA, toB] = targets[index] ?? [0, 0]
    const direct = netio.isDirect ? netio : undefined
    return {
      a: netio.a === undefined ? socket(a, toA) : instance(netio.a, direct?.b),
      b: netio.b === undefined ? socket(b, toB) : instance(netio.b, direct?.a),
      ...{ outstanding: 0, quietSince: 0 },
    }
  })
}

/** Their memory is referred to by address only. */
const instances: NetioSocket[] = []

/** Plays an IOU instance. It never sleeps, so it need not be woken when there is room. */
function instance(own: number, peer = own + bridgeOffset): Link['a'] {
  const socket = NetioSocket.open(libc, netioDirectory(), { own, peer })
  instances.push(socket)
  const backlog = new Backlog(libc, socket.fd, socket.name, () => {})
  const netio = { name: socket.name, header: socket.headerOf(0), backlog }
  return { fd: socket.fd, gro: false, gso: false, hasHeader: false, kind: 'netio', netio, refused() {}, failed() {} }
}

function throughput({ length, window, ms, loss, header, patience }: Throughput) {
  const most = isSegmenting ? Math.min(atOnce, Math.floor(60_000 / length)) : atOnce
  if (header.length > 0) introduce(length, header)
  let received = 0
  let lost = 0
  const began = performance.now()
  const until = began + ms
  let now = began
  for (const sink of sinks) while (drain(sink) > 0);
  let sunk = 0
  for (const link of links) {
    drain(link.b)
    link.outstanding = 0
    link.quietSince = began
  }
  while (now < until) {
    for (const link of links) {
      if (link.outstanding + most <= window) {
        if (isSegmenting) transmitter.addJoined(link.a, frames.address, most * length, length)
        else for (let index = 0; index < most; index++) transmitter.add(link.a, frames.address, length)
        transmitter.flush()
        link.outstanding += most
      }
      link.a.netio?.backlog.drain()
      const got = drain(link.b)
      received += got
      link.outstanding -= got / (1 - loss)
      if (got > 0) link.quietSince = now
      else if (link.outstanding > 0 && now - link.quietSince > patience) {
        lost += link.outstanding
        link.outstanding = 0
        link.quietSince = now
      }
    }
    for (const sink of sinks) sunk += drain(sink)
    now = performance.now()
  }
  // A flooded frame counts when all nodes have it.
  return { frames: (received + sunk) / (1 + sinks.length), lost, seconds: (now - began) / 1000 }
}

/** Has all frames begin with the header, and a switch learn the address that they go to. */
function introduce(length: number, header: readonly number[]): void {
  const back = [...header.slice(6, 12), ...header.slice(0, 6), ...header.slice(12)]
  frames.bytes.set(back)
  for (const { a, b } of links) {
    if (((header[0] ?? 0) & 1) !== 0) break
    transmitter.add(b, frames.address, 60)
    transmitter.flush()
    const until = performance.now() + 200
    while (drain(a) === 0) if (performance.now() > until) break
  }
  for (let place = 0; place + length <= frames.bytes.length; place += length) frames.bytes.set(header, place)
}

/** Takes one batch; how many frames it held. */
function drain({ fd, gro, kind }: Link['b']): number {
  const count = kind === 'netio' ? receiver.netio(fd) : receiver.udp(fd, gro)
  let total = 0
  for (let index = 0; index < count; index++) {
    const segment = receiver.segments[index] as number
    total += segment > 0 ? Math.ceil((receiver.lengths[index] as number) / segment) : 1
  }
  return total
}

function roundTrips({ length, count }: { length: number; count: number }) {
  const [link] = links
  if (link === undefined) throw new Error('no link is open')
  const times = new Float64Array(count)
  const pass = (from: Link['a'], to: Link['b']) => {
    transmitter.add(from, frames.address, length)
    transmitter.flush()
    const until = performance.now() + 200
    while (drain(to) === 0) if (performance.now() > until) return
  }
  for (let round = -200; round < count; round++) {
    const began = performance.now()
    pass(link.a, link.b)
    pass(link.b, link.a)
    if (round >= 0) times[round] = (performance.now() - began) * 1000
  }
  times.sort()
  const at = (share: number) => times[Math.floor(count * share)] ?? Number.NaN
  return { p50: at(0.5), p99: at(0.99) }
}
