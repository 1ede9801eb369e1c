import { createSocket, type Socket } from 'node:dgram'
import { expect, onTestFinished, vi } from 'vitest'
import type { Filter } from '../../runtime/node/dataplane/filters/index.ts'
import { isProbe } from '../../runtime/node/dataplane/switch/core/probe-frame.ts'
import { Switch, type SwitchOptions } from '../../runtime/node/dataplane/switch/switch.ts'
import type { SwitchNio } from '../../runtime/node/keeper/protocol/protocol.ts'
import { hangMs } from './limits.ts'

export const packetPaths = ['fast', 'portable'] as const
export type PathName = (typeof packetPaths)[number]

/** A UDP link, as the switch takes it. */
export const udp = (
  lport: number,
  rport: number,
  stages: { suspend?: boolean; filters?: Filter[] } = {},
  rhost = '127.0.0.1',
): SwitchNio => ({
  type: 'udp',
  lport,
  rport,
  rhost,
  suspend: stages.suspend ?? false,
  filters: stages.filters ?? [],
})

export interface Peer {
  readonly socket: Socket
  readonly port: number
  /** Frames that came and were not asked for yet. */
  readonly got: Buffer[]
  /** The next frame, as text. */
  next(): Promise<string>
  /** Resolves when so many frames wait. */
  holds(count: number): Promise<Buffer[]>
  send(frame: string | Uint8Array, port?: number): Promise<void>
}

/** A UDP socket that collects the frames it gets; probes of the switch are not for guests. */
export async function peer(port: number, to?: number): Promise<Peer> {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 4 << 20 })
  onTestFinished(() => void socket.close())
  await new Promise<void>((resolve) => socket.bind(port, '127.0.0.1', resolve))
  if (to !== undefined) await new Promise<void>((resolve) => socket.connect(to, '127.0.0.1', resolve))
  const got: Buffer[] = []
  let wake = () => {}
  socket.on('message', (message) => {
    if (isProbe(message, 0, message.length)) return
    got.push(message)
    wake()
  })
  socket.on('error', () => {})
  const holds = async (count: number) => {
    while (got.length < count) {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
    return got
  }
  return {
    socket,
    port: socket.address().port,
    got,
    holds,
    next: async () => String((await holds(1)).shift()),
    send: (frame, port) =>
      new Promise((resolve) => {
        if (port === undefined) socket.send(frame, () => resolve())
        else socket.send(frame, port, '127.0.0.1', () => resolve())
      }),
  }
}

interface StartedSwitch {
  readonly it: Switch
  /** What it is told of captures that failed. */
  failures: { key: string; file: string; message: string }[]
}

/** Switches of the fast path that earlier tests have emptied: the thread of a new one takes a tenth of a second to start. */
const given: StartedSwitch[] = []

async function start(path: PathName, options: Partial<SwitchOptions> = {}): Promise<StartedSwitch> {
  const started: Omit<StartedSwitch, 'it'> = { failures: [] }
  const it = await Switch.start({
    captureFailed: (key, file, message) => started.failures.push({ key, file, message }),
    log: () => {},
    ...options,
    ...(path === 'portable' && { path }),
  })
  return Object.assign(started, { it })
}

/** One that the next test may have when this one has ended. */
async function emptySwitch(): Promise<StartedSwitch> {
  const started = given.pop() ?? (await start('fast'))
  started.failures = []
  onTestFinished(async () => {
    await Promise.all(started.it.list().map(({ key }) => started.it.close(key)))
    await started.it.separate(started.it.links())
    given.push(started)
  })
  return started
}

/** A switch with a guest on each of the ports. */
export async function lan<Keys extends readonly string[]>(path: PathName, ...keys: Keys) {
  return path === 'fast' ? withGuests(await emptySwitch(), path, keys) : lanWith({}, path, ...keys)
}

/** The same with a switch of its own. */
export async function lanWith<Keys extends readonly string[]>(
  options: Partial<SwitchOptions>,
  path: PathName,
  ...keys: Keys
) {
  const started = await start(path, options)
  onTestFinished(() => started.it.closeAll())
  return withGuests(started, path, keys)
}

async function withGuests<Keys extends readonly string[]>({ it, failures }: StartedSwitch, path: PathName, keys: Keys) {
  expect(it.pathName).toBe(path)
  const guests = await Promise.all(
    keys.map(async (key) => {
      const guest = await peer(0)
      const { switch_port } = await it.open(key, guest.port)
      await new Promise<void>((resolve) => guest.socket.connect(switch_port, '127.0.0.1', resolve))
      return guest
    }),
  )
  const report = async (key: string) => {
    const [found] = await it.report(key)
    if (found === undefined) throw new Error(`no report of ${key}`)
    return found
  }
  return {
    lan: it,
    guests: guests as unknown as { [Index in keyof Keys]: Peer },
    failures,
    report,
    /** Resolves when the counters of a port are as wanted. */
    counted: (key: string, check: (counters: Awaited<ReturnType<typeof report>>['counters']) => void) =>
      vi.waitFor(async () => check((await report(key)).counters), { timeout: hangMs, interval: 5 }),
  }
}
