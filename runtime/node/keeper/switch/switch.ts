import { isIPv6 } from 'node:net'
import { Serial } from '../../serial.ts'
import { KeeperError } from '../error.ts'
import type { SwitchNio, SwitchPortState } from '../protocol.ts'
import { UdpSocket } from './udp-socket.ts'

const loopback = '127.0.0.1'

interface Port {
  readonly key: string
  readonly guestPort: number
  /** Our end of the private pair with the guest. */
  readonly guest: UdpSocket
  nio: SwitchNio | null
  link: UdpSocket | null
  /** The port at the other end of the link, when that is in this switch too: frames then go from guest to guest in one hop. */
  fused: Port | null
}

/**
 * The switch, portable path: node:dgram, one frame a datagram. Every adapter port of a node has a private socket pair with
 * it from the node's creation on, so that links come and go while guests run.
 */
export class Switch {
  readonly #ports = new Map<string, Port>()
  /** By local UDP port of their NIO, to find the two ends of a link. */
  readonly #byLport = new Map<number, Port>()
  readonly #serial = new Serial()

  list(): SwitchPortState[] {
    return [...this.#ports.values()].map(({ key, guestPort, guest, nio }) => ({
      key,
      guest_port: guestPort,
      switch_port: guest.port,
      nio,
    }))
  }

  /** Opens a port, or gives back the one that is open with this guest port. */
  open(key: string, guestPort: number): Promise<{ switch_port: number }> {
    return this.#serial.run(key, async () => {
      const existing = this.#ports.get(key)
      if (existing?.guestPort === guestPort) return { switch_port: existing.guest.port }
      if (existing !== undefined) await this.#close(existing)
      let port: Port | undefined
      const guest = await UdpSocket.open(
        { address: loopback, port: 0 },
        { address: loopback, port: guestPort },
        (frame) => {
          if (port !== undefined) fromGuest(port, frame)
        },
      )
      port = { key, guestPort, guest, nio: null, link: null, fused: null }
      this.#ports.set(key, port)
      return { switch_port: guest.port }
    })
  }

  close(key: string): Promise<void> {
    return this.#serial.run(key, async () => {
      const port = this.#ports.get(key)
      if (port !== undefined) await this.#close(port)
    })
  }

  /** Attaches or replaces; what was attached before stays when the new one cannot be bound. */
  attach(key: string, nio: SwitchNio): Promise<void> {
    return this.#serial.run(key, async () => {
      const port = this.#require(key)
      const holder = this.#byLport.get(nio.lport)
      if (holder !== undefined && holder !== port) {
        throw new KeeperError('port_taken', `UDP port ${nio.lport} is used by another link`)
      }
      if (port.nio !== null && port.link !== null && isSameSocket(port.nio, nio)) {
        port.nio = nio
        this.#fuse(port)
        return
      }
      const before = port.nio
      // The same port cannot be bound twice, so then the old one has to go first, and comes back when the new one fails.
      if (before?.lport === nio.lport) await this.#detach(port)
      try {
        const link = await openLink(port, nio)
        await this.#detach(port)
        port.nio = nio
        port.link = link
      } catch (error) {
        if (before !== null && port.nio === null) {
          port.link = await openLink(port, before).catch(() => null)
          port.nio = before
          this.#byLport.set(before.lport, port)
          this.#fuse(port)
        }
        throw error
      }
      this.#byLport.set(nio.lport, port)
      this.#fuse(port)
    })
  }

  detach(key: string): Promise<void> {
    return this.#serial.run(key, () => this.#detach(this.#require(key)))
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#ports.keys()].map((key) => this.close(key)))
  }

  async #close(port: Port): Promise<void> {
    await this.#detach(port)
    this.#ports.delete(port.key)
    await port.guest.close()
  }

  async #detach(port: Port): Promise<void> {
    const { link, nio } = port
    unfuse(port)
    if (nio !== null && this.#byLport.get(nio.lport) === port) this.#byLport.delete(nio.lport)
    port.nio = null
    port.link = null
    await link?.close()
  }

  /** Joins the port with the one at the other end of its link, when the two NIOs mirror each other on this host. */
  #fuse(port: Port): void {
    unfuse(port)
    const { nio } = port
    const other = nio === null ? undefined : this.#byLport.get(nio.rport)
    if (nio === null || other?.nio == null || other === port) return
    const mirrors = other.nio.rport === nio.lport && isLoopback(nio.rhost) && other.nio.rhost === nio.rhost
    if (!mirrors) return
    port.fused = other
    other.fused = port
  }

  #require(key: string): Port {
    const port = this.#ports.get(key)
    if (port === undefined) throw new KeeperError('unknown_key', `the switch has no port ${key}`)
    return port
  }
}

function fromGuest(port: Port, frame: Buffer): void {
  const { nio, fused } = port
  if (nio === null || nio.suspend) return
  if (fused === null) port.link?.send(frame)
  else if (fused.nio?.suspend === false) fused.guest.send(frame)
}

function openLink(port: Port, nio: SwitchNio): Promise<UdpSocket> {
  return UdpSocket.open(
    { address: localAddress(nio.rhost), port: nio.lport },
    { address: nio.rhost, port: nio.rport },
    (frame) => {
      if (port.nio?.suspend === false) port.guest.send(frame)
    },
  )
}

function unfuse(port: Port): void {
  if (port.fused !== null) port.fused.fused = null
  port.fused = null
}

const isSameSocket = (a: SwitchNio, b: SwitchNio) => a.lport === b.lport && a.rhost === b.rhost && a.rport === b.rport

const isLoopback = (address: string) => address.startsWith('127.') || address === '::1'

/** Links to this host stay on it; only those to other machines listen beyond loopback. */
function localAddress(remote: string): string {
  if (isIPv6(remote)) return remote === '::1' ? '::1' : '::'
  return isLoopback(remote) ? loopback : '0.0.0.0'
}
