import { Memory } from '../../dataplane/fast/memory.ts'
import { type Libc, linux } from '../../os/system/libc.ts'

/** linux/netlink.h, linux/rtnetlink.h */
const netlink = {
  family: 16,
  request: 1,
  newRoute: 24,
  getRoute: 26,
  destination: 1,
  unicast: 1,
  /** Groups: links, addresses, routes and rules, of IPv4 and IPv6. */
  groups: 0x1 | 0x10 | 0x40 | 0x80 | 0x100 | 0x400 | (1 << 18),
} as const
const headerBytes = 28
const answersAt = 64
const answerBytes = 8192

/**
 * Asks the kernel for the route to an address (rtnetlink(7)). No list of addresses would do: addresses of interfaces that are down, local
 * routes of networks and rules also lead to the host itself.
 */
export class NatRoutes {
  readonly #libc: Libc
  readonly #memory: Memory
  readonly #questions: number
  readonly #changes: number
  #sequence = 0

  constructor(libc: Libc) {
    this.#libc = libc
    this.#memory = new Memory(libc, answersAt + answerBytes)
    this.#questions = this.#open(0)
    this.#changes = this.#open(netlink.groups)
  }

  /** Whether packets to the address leave the host, to one destination (a unicast route). */
  isElsewhere(address: Uint8Array): boolean {
    const { view, bytes } = this.#memory
    const length = headerBytes + 4 + address.length
    bytes.fill(0, 0, answersAt)
    this.#sequence = (this.#sequence + 1) >>> 0
    // struct nlmsghdr { u32 len; u16 type, flags; u32 seq, pid; }, struct rtmsg { u8 family, dst_len, ... }, struct rtattr.
    view.setUint32(0, length, true)
    view.setUint16(4, netlink.getRoute, true)
    view.setUint16(6, netlink.request, true)
    view.setUint32(8, this.#sequence, true)
    bytes[16] = address.length === 4 ? linux.AF_INET : linux.AF_INET6
    bytes[17] = address.length * 8
    view.setUint16(headerBytes, 4 + address.length, true)
    view.setUint16(headerBytes + 2, netlink.destination, true)
    bytes.set(address, headerBytes + 4)
    if (this.#libc.send(this.#questions, this.#memory.address, length, linux.MSG_DONTWAIT) < 0) return false
    // The answer is there when `send` returns. An error means that there is no route.
    while (this.#read(this.#questions) > 0) {
      if (view.getUint32(answersAt + 8, true) !== this.#sequence) continue
      return view.getUint16(answersAt + 4, true) === netlink.newRoute && bytes[answersAt + 23] === netlink.unicast
    }
    return false
  }

  /** Whether addresses or routes have changed since the last call. */
  haveChanged(): boolean {
    let changed = false
    while (this.#read(this.#changes) > 0 || this.#libc.errno() === linux.ENOBUFS) changed = true
    return changed
  }

  #read(fd: number): number {
    return this.#libc.read(fd, this.#memory.address + answersAt, answerBytes)
  }

  #open(groups: number): number {
    const type = linux.SOCK_RAW | linux.SOCK_NONBLOCK | linux.SOCK_CLOEXEC
    const fd = this.#libc.socket(netlink.family, type, 0)
    // struct sockaddr_nl { u16 family, pad; u32 pid, groups; }
    this.#memory.bytes.fill(0, 0, 12)
    this.#memory.u16(0, netlink.family)
    this.#memory.u32(8, groups)
    if (fd < 0 || this.#libc.bind(fd, this.#memory.address, 12) < 0)
      throw new Error('the kernel refuses a netlink socket for routes')
    return fd
  }
}
