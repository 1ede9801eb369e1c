import { close } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { KeyedMutex } from '../../../../src/lib/async/keyed-mutex.ts'
import { KeeperError } from '../../keeper/protocol/error.ts'
import type {
  BridgeSpec,
  JoinedLink,
  MacEntry,
  PortReport,
  SwitchNio,
  SwitchPortState,
} from '../../keeper/protocol/protocol.ts'
import type { Panel } from '../cable/panel.ts'
import { Recorder } from '../capture/recorder.ts'
import { FastPath } from '../fast/fast-path.ts'
import { PortablePath } from '../portable/portable-path.ts'
import { BridgeNumbers } from './bridge-numbers.ts'
import { Cables } from './cables.ts'
import type { Loop } from './core/bridge.ts'
import { at, Counters } from './core/counters.ts'
import type { PacketPath, PathListener, PortImpairment } from './core/path.ts'
import { deviceIndex } from './device.ts'
import { DeviceWatch } from './device-watch.ts'
import {
  guestEnd,
  hasEthernet,
  isSameGuest,
  isTap,
  netioOf,
  requireGuest,
  type SwitchGuest,
  udpPortOf,
} from './guests.ts'
import { endpointOf, isSameTransport, resourceOf } from './nio-transport.ts'
import { isDead, noEnd, type OpenLink, type OpenPort, otherEndOf, reportOf } from './open-port.ts'
import { Prober } from './prober.ts'

export interface SwitchOptions {
  /** Called when a capture ends because its file cannot be written. */
  readonly captureFailed: (key: string, file: string, message: string) => void
  /** Called when frames go in a circle through a bridge, by its key. */
  readonly looped?: (key: string, loop: Loop) => void
  readonly log: (message: string) => void
  /** `portable`: without FFI. Absent: the fast path if it works. */
  readonly path?: 'portable'
  /** false: no GSO and GRO, for measurements. */
  readonly segmenting?: boolean
}

/**
 * The switch. Every adapter port of a node has a private socket pair with it, so that links change while guests run. A packet path
 * moves the frames; the switch controls it.
 */
export class Switch {
  readonly #ports = new Map<string, OpenPort>()
  /** Ports by the local UDP port of their link, to find the two ends of a link. */
  readonly #byLport = new Map<number, OpenPort>()
  /** Port keys by the end of their link. */
  readonly #byEnd = new Map<number, string>()
  readonly #byRow = new Map<number, OpenPort>()
  readonly #bridges = new BridgeNumbers()
  /** Direct links by their ids, and by the keys of their ports, whether these are open or not. */
  readonly #links = new Map<string, JoinedLink>()
  readonly #linkOf = new Map<string, JoinedLink>()
  /** One lock for each port, and one for all changes of links, which concern two ports. */
  readonly #serial = new KeyedMutex()
  readonly #linking = new KeyedMutex()
  readonly #counters = new Counters()
  readonly #options: SwitchOptions
  readonly #deviceWatch = new DeviceWatch(
    (key) =>
      void this.#reopen(key).catch(ignore('the link is shown as failed, and tried again when the device changes')),
  )
  readonly #cables: Cables
  #path: PacketPath

  private constructor(options: SwitchOptions) {
    this.#options = options
    this.#cables = new Cables(() => this.#path, this.#counters, options.log)
    this.#path = new PortablePath(this.#counters, this.#listener)
  }

  static async start(options: SwitchOptions): Promise<Switch> {
    const it = new Switch(options)
    if (options.path === 'portable') return it
    try {
      it.#path = await FastPath.start(it.#counters, it.#listener, options.segmenting ?? true)
    } catch (error) {
      options.log(`the fast packet path does not run here, the portable one is used: ${(error as Error).message}`)
    }
    return it
  }

  get pathName(): PacketPath['name'] {
    return this.#path.name
  }

  list(): SwitchPortState[] {
    return [...this.#ports.values()].map(({ key, at, guestEndPort, link, recorder }) => ({
      key,
      guest_port: udpPortOf(at),
      switch_port: guestEndPort,
      netio: netioOf(at),
      nio: link?.nio ?? null,
      capture: recorder.state,
    }))
  }

  links(): JoinedLink[] {
    return [...this.#links.values()]
  }

  /** Has a bridge run with these ports and settings, or (null) stop. */
  configure(key: string, spec: BridgeSpec | null): Promise<void> {
    return this.#path.configure(this.#bridges.of(key), spec)
  }

  entries(key: string): Promise<MacEntry[]> {
    return this.#path.entries(this.#bridges.of(key))
  }

  clear(key: string): Promise<void> {
    return this.#path.clear(this.#bridges.of(key))
  }

  /** A port of the bridge with the key. */
  bridgePort(key: string, bridge_port: number): SwitchGuest {
    return { bridge: this.#bridges.of(key), bridge_port }
  }

  /** Opens a port, or returns the open port of this guest. */
  open(key: string, guest: SwitchGuest): Promise<{ switch_port: number }> {
    return this.#serial.run(key, async () => {
      requireGuest(guest)
      if (isTap(guest) && this.#path.name !== 'fast')
        throw new KeeperError('unsupported', 'TAP devices need the fast packet path, which does not run here')
      const existing = this.#ports.get(key)
      if (existing !== undefined && isSameGuest(existing.at, guest)) return { switch_port: existing.guestEndPort }
      if (existing !== undefined) await this.#close(existing)
      const row = this.#counters.allocate()
      if (row === undefined) throw new KeeperError('bad_request', 'the switch has no room for another port')
      try {
        const { end, port } = isTap(guest) ? noEnd : await this.#path.open(guestEnd(guest, row))
        const { captureFailed } = this.#options
        const capture = (_: number, memory: SharedArrayBuffer | null) => this.#capture(opened, memory)
        const recorder = new Recorder({ capture }, this.#counters, row, (file, why) => captureFailed(key, file, why))
        const ends = { guest: end, descriptor: undefined, guestEndPort: port, isImpaired: false, isCaptured: false }
        const opened: OpenPort = { key, at: guest, row, ...ends, recorder, link: null, joined: null }
        this.#ports.set(key, opened)
        this.#byRow.set(row, opened)
        const link = this.#linkOf.get(key)
        if (link !== undefined) await this.#linking.run('', () => this.#joinDirect(link))
        return { switch_port: port }
      } catch (error) {
        const half = this.#byRow.get(row)
        if (half === undefined) this.#counters.release(row)
        else await this.#close(half).catch(ignore('the error before it is reported'))
        throw error
      }
    })
  }

  /**
   * Has the port of a guest that starts use the descriptor of its TAP device, which it closes later unless it throws; a link of the
   * port goes on. `panel`: where the adapter of the device may be. `unknown_key`, `bad_request`.
   */
  bindTap(key: string, descriptor: number, panel?: Panel): Promise<void> {
    return this.#relink(key, async () => {
      const port = this.#require(key)
      const { end } = await this.#path.open({ type: 'tap', descriptor, row: port.row })
      try {
        await this.#closeGuest(port)
        port.guest = end
        port.descriptor = descriptor
        if (panel !== undefined) this.#cables.plug(port, panel, descriptor)
        await this.#linkGuest(port)
      } catch (error) {
        port.guest = end
        // The caller closes it.
        port.descriptor = undefined
        await this.#closeGuest(port).catch(ignore('the error before it is reported'))
        throw error
      }
    })
  }

  /** Has the link of a port, if it has one, lead to its new guest. Frames of the guest before are lost. */
  async #linkGuest(port: OpenPort): Promise<void> {
    const { row, guest, link, joined } = port
    await this.#path.reset(row)
    if (joined !== null) return this.#join(port, joined)
    if (link === null) return
    await this.#path.setLane(link.end, { output: guest, hops: [{ row, direction: 'in' }] })
    await this.#path.setLane(guest, { output: link.end, hops: [{ row, direction: 'out' }] })
  }

  /** Closes the TAP device of a guest that has ended: an open descriptor would keep its network namespace. */
  unbindTap(key: string): Promise<void> {
    return this.#relink(key, async () => {
      const port = this.#ports.get(key)
      if (port === undefined || !isTap(port.at)) return
      await this.#closeGuest(port)
    })
  }

  /** Closes the end of a guest. Its TAP device is removed beside the frames of others, and by threads of Node: many may end at once. */
  async #closeGuest(port: OpenPort): Promise<void> {
    await this.#cables.unplug(port)
    const { guest, descriptor } = port
    port.guest = noEnd.end
    port.descriptor = undefined
    try {
      await this.#path.close(guest)
    } finally {
      if (descriptor !== undefined) close(descriptor, ignore('the kernel has closed it in any case'))
    }
  }

  close(key: string): Promise<void> {
    return this.#serial.run(key, async () => {
      const port = this.#ports.get(key)
      if (port !== undefined) await this.#close(port)
    })
  }

  /** Removes the sockets of an ended IOU instance. */
  tidy(applicationId: number): Promise<void> {
    return this.#path.tidy(applicationId)
  }

  /** Attaches or replaces a link; the earlier link stays if the new one cannot be bound. */
  attach(key: string, nio: SwitchNio): Promise<void> {
    return this.#relink(key, async () => {
      const port = this.#require(key)
      const before = port.link
      if (nio.type !== 'udp' && !hasEthernet(port.at))
        throw new KeeperError('bad_request', `${nio.device} carries Ethernet frames, a serial port has none`)
      if (nio.type === 'udp') {
        const holder = this.#byLport.get(nio.lport)
        if (holder !== undefined && holder !== port)
          throw new KeeperError('port_taken', `UDP port ${nio.lport} is used by another link`)
      }
      const direct = this.#linkOf.get(key)
      if (before !== null && isSameTransport(before.nio, nio) && !isDead(port, this.#counters)) {
        port.link = { ...before, nio }
        await this.#impair(port, nio)
        return
      }
      // The same port or device cannot be opened twice: the old link is closed first, and reopened if the new one fails.
      const keepsTransport = before !== null && resourceOf(before.nio) === resourceOf(nio)
      if (keepsTransport) await this.#unlink(port)
      try {
        const link = await this.#openLink(port, nio)
        if (direct !== undefined) {
          await this.#drop(direct)
          for (const end of direct.ports) if (end !== key) void this.#endCapture(end)
        }
        if (!keepsTransport) await this.#unlink(port)
        await this.#connect(port, link)
      } catch (error) {
        if (keepsTransport) {
          await this.#link(port, before.nio).catch((cause: Error) => {
            const { message } = error as Error
            const code = error instanceof KeeperError ? error.code : 'internal'
            throw new KeeperError(code, `${message}; the earlier link is lost: ${cause.message}`, { cause })
          })
        }
        throw error
      }
    })
  }

  /** Ends its captures too. */
  detach(key: string): Promise<void> {
    return this.#serial.run(key, async () => {
      const port = this.#require(key)
      const direct = this.#linkOf.get(key)
      await this.#linking.run('', () => (direct === undefined ? this.#unlink(port) : this.#drop(direct)))
      for (const end of direct?.ports ?? []) if (end !== key) void this.#endCapture(end)
      await port.recorder.close()
    })
  }

  /** Joins ports of this switch, or changes the impairments of links in place. */
  joinAll(links: readonly JoinedLink[]): Promise<void> {
    return this.#linking.run('', async () => {
      for (const link of links) await this.#replace(link)
      await allEnded(links.map((link) => this.#joinDirect(link)))
    })
  }

  /** Removes direct links and ends the captures of their ports. */
  async separate(links: readonly Pick<JoinedLink, 'link_id' | 'ports'>[]): Promise<void> {
    const known = links.flatMap(({ link_id, ports }) => {
      const link = this.#links.get(link_id)
      return link !== undefined && isDeepStrictEqual(link.ports, ports) ? [link] : []
    })
    await this.#linking.run('', () => allEnded(known.map((link) => this.#drop(link))))
    await allEnded(known.flatMap(({ ports }) => ports.map((key) => this.#endCapture(key))))
  }

  /** `not_linked` when nothing is attached. */
  captured(key: string): Recorder {
    const port = this.#require(key)
    if (port.link === null && !this.#linkOf.has(key))
      throw new KeeperError('not_linked', 'nothing is attached to the port')
    return port.recorder
  }

  /** Runs a function with the lock of the port. */
  exclusively<T>(key: string, run: () => Promise<T>): Promise<T> {
    return this.#serial.run(key, run)
  }

  /** The reports of one port, of those of a list that are open, or of all; `fresh`: after a new check of the link of the one. */
  async report(which?: string | readonly string[], fresh = false): Promise<PortReport[]> {
    const one = typeof which === 'string' ? this.#require(which) : undefined
    if (fresh && one?.joined === null) await one.link?.prober?.refresh()
    const open = () => {
      if (typeof which === 'string') return [this.#require(which)]
      return (which ?? [...this.#ports.keys()]).flatMap((key) => this.#ports.get(key) ?? [])
    }
    await this.#cables.read(open())
    // Of a port that was closed meanwhile another one may have the counters.
    return open().map((port) => {
      const report = reportOf(port, this.#linkOf.get(port.key), this.#counters, this.#byLport)
      return { ...report, path: this.#cables.wayOf(port) }
    })
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#ports.keys()].map((key) => this.close(key)))
    await this.#path.shutdown()
  }

  async #close(port: OpenPort): Promise<void> {
    await this.#linking.run('', async () => {
      this.#ports.delete(port.key)
      // Before its lane goes: what it sent last still reaches the node at the other end of its link.
      await this.#closeGuest(port)
      await this.#unlink(port)
    })
    await port.recorder.close()
    this.#byRow.delete(port.row)
    await this.#path.forget(port.row)
    this.#counters.release(port.row)
  }

  /** Runs a function with the lock of the port and of all links. */
  #relink(key: string, run: () => Promise<void>): Promise<void> {
    return this.#serial.run(key, () => this.#linking.run('', run))
  }

  /** Reopens a link whose device was lost and exists again. */
  #reopen(key: string): Promise<void> {
    return this.#relink(key, async () => {
      const port = this.#ports.get(key)
      const nio = port?.link?.nio
      if (port === undefined || nio === undefined || nio.type === 'udp') return
      if (!isDead(port, this.#counters) || deviceIndex(nio.device) === null) return
      await this.#unlink(port)
      await this.#link(port, nio)
    })
  }

  async #link(port: OpenPort, nio: SwitchNio): Promise<void> {
    await this.#connect(port, await this.#openLink(port, nio))
  }

  async #openLink(port: OpenPort, nio: SwitchNio): Promise<OpenLink> {
    const { end } = await this.#path.open(endpointOf(nio, port.row, hasEthernet(port.at)))
    if (nio.type !== 'udp') return { nio, end, prober: null, deviceIndex: deviceIndex(nio.device) }
    // A serial line must not get foreign frames: no probes.
    if (!hasEthernet(port.at)) return { nio, end, prober: null, deviceIndex: null }
    const prober = new Prober((frame) => this.#path.send(end, frame))
    this.#byEnd.set(end, port.key)
    return { nio, end, prober, deviceIndex: null }
  }

  async #connect(port: OpenPort, link: OpenLink): Promise<void> {
    const get = (column: number) => this.#counters.get(port.row, column)
    const base = { sent: get(at.outFrames), received: get(at.inFrames) }
    port.link = { ...link, base, refusedBefore: get(at.refused) }
    // Frames of the earlier link are lost; new ones need not wait for them.
    await this.#path.reset(port.row)
    if (link.nio.type === 'udp') this.#byLport.set(link.nio.lport, port)
    else this.#deviceWatch.add(port.key)
    await this.#impair(port, link.nio)
    await this.#path.setLane(link.end, { output: port.guest, hops: [{ row: port.row, direction: 'in' }] })
    const other = otherEndOf(port, this.#byLport)
    if (other === null) {
      await this.#path.setLane(port.guest, { output: link.end, hops: [{ row: port.row, direction: 'out' }] })
      link.prober?.start()
    } else await this.#join(port, other)
  }

  async #unlink(port: OpenPort): Promise<void> {
    const { link, joined } = port
    if (link === null && joined === null) return
    port.link = null
    port.joined = null
    if (link !== null) {
      link.prober?.stop()
      this.#deviceWatch.delete(port.key)
      this.#byEnd.delete(link.end)
      if (link.nio.type === 'udp' && this.#byLport.get(link.nio.lport) === port) this.#byLport.delete(link.nio.lport)
    }
    await this.#cables.consider(port)
    const separated = [this.#path.setLane(port.guest, null)]
    if (joined !== null) {
      joined.joined = null
      // The remaining port of two joined UDP links sends to its socket again, where no peer answers.
      const lane = joined.link && {
        output: joined.link.end,
        hops: [{ row: joined.row, direction: 'out' as const }],
      }
      separated.push(this.#path.setLane(joined.guest, lane))
      joined.link?.prober?.start()
    }
    await allEnded(separated)
    if (link !== null) await this.#path.close(link.end)
  }

  /** Stores a direct link, and removes the earlier links of its ports. If only the impairments differ, the ports stay joined. */
  async #replace(link: JoinedLink): Promise<void> {
    const before = this.#links.get(link.link_id)
    if (before === undefined || !isDeepStrictEqual(before.ports, link.ports)) {
      const others = [before, ...link.ports.map((key) => this.#linkOf.get(key))]
      for (const other of others) if (other !== undefined) await this.#drop(other)
      for (const key of link.ports) {
        const port = this.#ports.get(key)
        if (port !== undefined) await this.#unlink(port)
      }
    }
    this.#links.set(link.link_id, link)
    for (const key of link.ports) this.#linkOf.set(key, link)
  }

  /** Joins the ports of a direct link that are open. */
  async #joinDirect({ link_id, ports, suspend, filters_ab, filters_ba }: JoinedLink): Promise<void> {
    if (this.#links.get(link_id)?.ports !== ports) return
    const [a, b] = ports.map((key) => this.#ports.get(key))
    const impair = (port: OpenPort, filters: JoinedLink['filters_ab']) =>
      this.#impair(port, { suspend, filters, filters_in: [] })
    const changes = [a && impair(a, filters_ab), b && impair(b, filters_ba)]
    if (a !== undefined && b !== undefined && a.joined !== b && hasEthernet(a.at) === hasEthernet(b.at)) {
      changes.push(this.#path.reset(a.row), this.#path.reset(b.row), this.#join(a, b))
    }
    await allEnded(changes)
  }

  async #drop(link: JoinedLink): Promise<void> {
    if (this.#links.get(link.link_id) !== link) return
    this.#links.delete(link.link_id)
    for (const key of link.ports) this.#linkOf.delete(key)
    const [first, second] = link.ports.map((key) => this.#ports.get(key))
    const joined = first?.joined ? first : second
    if (joined !== undefined && joined.link === null) await this.#unlink(joined)
  }

  /** Ends the capture of a port without a link. */
  #endCapture(key: string): Promise<void> {
    return this.#serial.run(key, async () => {
      const port = this.#ports.get(key)
      if (port !== undefined && port.link === null && !this.#linkOf.has(key)) await port.recorder.close()
    })
  }

  /** Forwards frames from guest to guest without the sockets of the link; the impairments of both ends still apply. */
  async #join(port: OpenPort, other: OpenPort): Promise<void> {
    port.joined = other
    other.joined = port
    // Two ends in this switch need no probes.
    for (const { link } of [port, other]) link?.prober?.stop()
    const over = (from: OpenPort, to: OpenPort) =>
      this.#path.setLane(from.guest, {
        output: to.guest,
        hops: [
          { row: from.row, direction: 'out' },
          { row: to.row, direction: 'in' },
        ],
      })
    await allEnded([over(port, other), over(other, port)])
    await this.#cables.consider(port)
  }

  /** What is to be done with frames is done from now on. */
  async #impair(port: OpenPort, impairment: PortImpairment): Promise<void> {
    const { suspend, filters, filters_in = [] } = impairment
    port.isImpaired = suspend || filters.length > 0 || filters_in.length > 0
    await this.#cables.consider(port)
    await this.#path.impair(port.row, impairment)
  }

  async #capture(port: OpenPort, memory: SharedArrayBuffer | null): Promise<void> {
    port.isCaptured = memory !== null
    await this.#cables.consider(port)
    await this.#path.capture(port.row, memory)
  }

  readonly #listener: PathListener = {
    probe: (end, frame) => this.#heard(end, frame),
    looped: ({ bridge, ...loop }) => this.#options.looped?.(this.#bridges.keyOf(bridge), loop),
    captured: (row, slot, length) => this.#byRow.get(row)?.recorder.record(slot, length),
  }

  #heard(end: number, frame: Uint8Array): void {
    const port = this.#ports.get(this.#byEnd.get(end) ?? '')
    const link = port?.link
    if (port === undefined || link?.end !== end) return
    link.prober?.receive(frame)
    // A peer that sends frames no longer refuses.
    link.refusedBefore = this.#counters.get(port.row, at.refused)
  }

  #require(key: string): OpenPort {
    const port = this.#ports.get(key)
    if (port === undefined) throw new KeeperError('unknown_key', `the switch has no port ${key}`)
    return port
  }
}

/** Waits for all changes, also after a failure, so that none goes on when the lock of links is given back. Throws the first failure. */
async function allEnded(changes: readonly (Promise<void> | undefined)[]): Promise<void> {
  const failed = (await Promise.allSettled(changes)).find((it) => it.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}
