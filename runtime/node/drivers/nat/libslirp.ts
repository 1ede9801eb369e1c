import { createRequire } from 'node:module'
import { Memory } from '../../dataplane/fast/memory.ts'
import type { Libc, Pointer } from '../../os/system/libc.ts'

/** The library, and how Debian and its derivatives install it. */
export const libslirpName = 'libslirp.so.0'
export const libslirpInstall = 'sudo apt-get install libslirp0'

/** Events of descriptors as in libslirp.h; poll(2) has the same names. */
const event = { in: 1, out: 2, urgent: 4, error: 8, hangUp: 16 } as const
const pollIn = 1
const pollUrgent = 2
const pollOut = 4
const pollFailed = 8 | 16
const entryBytes = 8

export interface SlirpOptions {
  /** Addresses in network order: 4 or 16 bytes. */
  readonly network: Uint8Array
  readonly mask: Uint8Array
  /** The address that stands for the loopback of the host, and the resolver. */
  readonly host: Uint8Array
  readonly resolver: Uint8Array
  /** The guest of forwards without an address. */
  readonly firstGuest: Uint8Array
  /** The same for IPv6, with a prefix of 64 bits. */
  readonly six: { readonly prefix: Uint8Array; readonly host: Uint8Array; readonly resolver: Uint8Array } | undefined
}

export interface Forward {
  readonly isUdp: boolean
  /** Each of the same length. */
  readonly hostAddress: Uint8Array
  readonly hostPort: number
  readonly guestAddress: Uint8Array
  readonly guestPort: number
}

/** The version of the library; throws where it cannot be loaded. */
export function libslirpVersion(): string {
  const koffi = createRequire(import.meta.url)('koffi') as typeof import('koffi')
  return String(koffi.load(libslirpName).func('const char *slirp_version_string()')())
}

/** Longest wait between two checks of its timers, ms. */
const longestWaitMs = 1000
/** Most descriptors of one wait; further sockets would starve. `limitFiles` keeps their number lower. */
const maxDescriptors = 4096

/** One network of libslirp. Frames go in by `input`, and come out by `output` while `input` or `wait` runs. */
export class Slirp {
  readonly #libc: Libc
  readonly #slirp: Pointer
  readonly #call: Readonly<Record<'fill' | 'poll' | 'input' | 'forward' | 'forwardAny', (...args: unknown[]) => number>>
  readonly #descriptors: Memory
  readonly #timeout: Memory
  readonly #addDescriptor: unknown
  readonly #eventsOf: unknown
  /** Memory that the library refers to: must not be collected. */
  readonly #kept: unknown[] = []
  readonly #timers = new Map<number, { readonly run: () => void; due: number }>()
  #lastTimer = 0
  #count = 0

  constructor(libc: Libc, options: SlirpOptions, output: (frame: Pointer, length: number) => void) {
    const koffi = createRequire(import.meta.url)('koffi') as typeof import('koffi')
    const library = koffi.load(libslirpName)
    this.#libc = libc
    this.#descriptors = new Memory(libc, maxDescriptors * entryBytes)
    this.#timeout = new Memory(libc, 8)
    const callback = (signature: string, run: (...args: never[]) => unknown) => {
      const registered = koffi.register(run, koffi.pointer(koffi.proto(signature)))
      this.#kept.push(registered)
      return registered
    }
    const timerCall = koffi.proto('void slirp_timer_cb(uintptr_t)')
    const nothing = () => {}
    const callbacks = [
      callback('int64_t slirp_send(uintptr_t, int64_t, uintptr_t)', (frame: Pointer, length: number) => {
        output(frame, Number(length))
        return length
      }),
      callback('void slirp_complains(uintptr_t, uintptr_t)', nothing),
      callback('int64_t slirp_clock(uintptr_t)', () => Math.round(performance.now() * 1e6)),
      callback('uintptr_t slirp_timer_new(void *, uintptr_t, uintptr_t)', (call: unknown, opaque: Pointer) => {
        this.#timers.set(++this.#lastTimer, {
          run: () => koffi.call(call, timerCall, opaque),
          due: Number.POSITIVE_INFINITY,
        })
        return this.#lastTimer
      }),
      callback('void slirp_timer_free(uintptr_t, uintptr_t)', (timer: number) => void this.#timers.delete(timer)),
      callback('void slirp_timer_mod(uintptr_t, int64_t, uintptr_t)', (number: number, due: number) => {
        const timer = this.#timers.get(Number(number))
        if (timer !== undefined) timer.due = Number(due)
      }),
      callback('void slirp_poll_fd(int, uintptr_t)', nothing),
      callback('void slirp_unpoll_fd(int, uintptr_t)', nothing),
      callback('void slirp_notify(uintptr_t)', nothing),
    ]
    this.#addDescriptor = callback('int slirp_add(int, int, uintptr_t)', (fd: number, events: number) =>
      this.#add(fd, events),
    )
    this.#eventsOf = callback('int slirp_events(int, uintptr_t)', (index: number) => this.#events(index))
    const table = new Memory(libc, callbacks.length * 8)
    callbacks.forEach((it, index) => {
      table.u64(index * 8, Number(koffi.address(it)))
    })
    const config = configOf(libc, options)
    this.#kept.push(table, config)
    this.#slirp = Number(
      library.func('uintptr_t slirp_new(uintptr_t, uintptr_t, uintptr_t)')(config.address, table.address, 0),
    )
    if (this.#slirp === 0) throw new Error('libslirp refuses the network')
    this.#call = {
      fill: library.func('void slirp_pollfds_fill(uintptr_t, uintptr_t, void *, uintptr_t)'),
      poll: library.func('void slirp_pollfds_poll(uintptr_t, int, void *, uintptr_t)'),
      input: library.func('void slirp_input(uintptr_t, uintptr_t, int)'),
      forward: library.func('int slirp_add_hostfwd(uintptr_t, int, uint32_t, int, uint32_t, int)'),
      forwardAny: (...args) =>
        library.func('int slirp_add_hostxfwd(uintptr_t, uintptr_t, uint32_t, uintptr_t, uint32_t, int)')(...args),
    }
  }

  /** Gives the library a frame of a guest, which it copies. */
  input(frame: Pointer, length: number): void {
    this.#call.input(this.#slirp, frame, length)
  }

  /** Forwards a port. Throws with the reason when the host refuses the port. */
  forward({ isUdp, hostAddress, hostPort, guestAddress, guestPort }: Forward): void {
    const result =
      hostAddress.length === 4
        ? this.#call.forward(this.#slirp, isUdp ? 1 : 0, word(hostAddress), hostPort, word(guestAddress), guestPort)
        : this.#forwardSix(isUdp, socketAddress6(this.#libc, hostAddress, hostPort), guestAddress, guestPort)
    if (result === 0) return
    const protocol = isUdp ? 'UDP' : 'TCP'
    throw new Error(`${protocol} port ${hostPort} of the host cannot be forwarded: errno ${this.#libc.errno()}`)
  }

  #forwardSix(isUdp: boolean, from: Memory, guestAddress: Uint8Array, guestPort: number): number {
    const to = socketAddress6(this.#libc, guestAddress, guestPort)
    // SLIRP_HOSTFWD_UDP and SLIRP_HOSTFWD_V6ONLY
    return this.#call.forwardAny(this.#slirp, from.address, 28, to.address, 28, (isUdp ? 1 : 0) | 2)
  }

  /**
   * Waits at most `ms` for the descriptors and for the sockets of the library. `before` is called just before the wait, `first` before the
   * library handles its sockets (it then also sends packets that waited for an ARP reply). In `first`, `isReady` says which descriptors
   * have data.
   */
  wait(descriptors: Iterable<number>, ms: number, { before, first }: { before(): void; first(): void }): void {
    this.#count = 0
    for (const fd of descriptors) this.#add(fd, event.in)
    let wait = Math.min(longestWaitMs, ms)
    const now = performance.now()
    for (const { due } of this.#timers.values()) wait = Math.min(wait, due - now)
    this.#timeout.u32(0, Math.max(0, Math.ceil(wait)))
    this.#call.fill(this.#slirp, this.#timeout.address, this.#addDescriptor, 0)
    before()
    const found = this.#libc.poll(this.#descriptors.address, this.#count, this.#timeout.view.getInt32(0, true))
    if (found < 0) for (let index = 0; index < this.#count; index++) this.#descriptors.u16(index * entryBytes + 6, 0)
    first()
    this.#call.poll(this.#slirp, found < 0 ? 1 : 0, this.#eventsOf, 0)
    const then = performance.now()
    for (const timer of [...this.#timers.values()]) {
      if (timer.due > then) continue
      timer.due = Number.POSITIVE_INFINITY
      timer.run()
    }
  }

  /** Whether a descriptor of the last wait has data, by its index. */
  isReady(index: number): boolean {
    return this.#descriptors.view.getUint16(index * entryBytes + 6, true) !== 0
  }

  /** struct pollfd { int fd; short events, revents; } */
  #add(fd: number, events: number): number {
    if (this.#count === maxDescriptors) return -1
    const entry = this.#count * entryBytes
    this.#descriptors.u32(entry, fd)
    this.#descriptors.u16(
      entry + 4,
      ((events & event.in) !== 0 ? pollIn : 0) |
        ((events & event.out) !== 0 ? pollOut : 0) |
        ((events & event.urgent) !== 0 ? pollUrgent : 0),
    )
    this.#descriptors.u16(entry + 6, 0)
    return this.#count++
  }

  #events(index: number): number {
    const found = this.#descriptors.view.getUint16(index * entryBytes + 6, true)
    return (
      ((found & pollIn) !== 0 ? event.in : 0) |
      ((found & pollOut) !== 0 ? event.out : 0) |
      ((found & pollUrgent) !== 0 ? event.urgent : 0) |
      // POLLERR and POLLHUP have the values of libslirp.
      (found & pollFailed)
    )
  }
}

/** struct SlirpConfig of version 1: later libraries take it, too. Its DHCP server and its loopback are behind our gate. */
function configOf(libc: Libc, { network, mask, host, resolver, firstGuest, six }: SlirpOptions): Memory {
  const config = new Memory(libc, 192)
  const { bytes } = config
  config.u32(0, 1)
  bytes[8] = 1
  bytes.set(network, 12)
  bytes.set(mask, 16)
  bytes.set(host, 20)
  bytes.set(firstGuest, 96)
  bytes.set(resolver, 100)
  if (six === undefined) return config
  bytes[24] = 1
  bytes.set(six.prefix, 28)
  bytes[44] = 64
  bytes.set(six.host, 48)
  bytes.set(six.resolver, 104)
  return config
}

/** struct in_addr as a number, which is in network order in memory. */
const word = (address: Uint8Array): number => new DataView(address.buffer, address.byteOffset).getUint32(0, true)

/** struct sockaddr_in6 { u16 family; be16 port; be32 flow; u8 address[16]; u32 scope; } */
function socketAddress6(libc: Libc, address: Uint8Array, port: number): Memory {
  const memory = new Memory(libc, 28)
  memory.u16(0, 10)
  memory.view.setUint16(2, port, false)
  memory.bytes.set(address, 8)
  return memory
}
