import { KeeperError } from '../../keeper/protocol/error.ts'
import { type Libc, linux } from '../../os/system/libc.ts'
import { callError, deviceError, grant, requestValue, Scratch } from './scratch.ts'
import type { OpenedSocket } from './sockets.ts'
import { vnetHeaderBytes } from './vnet-header.ts'

const { TUN_F_CSUM, TUN_F_TSO4, TUN_F_TSO6, TUN_F_TSO_ECN, TUN_F_USO4, TUN_F_USO6 } = linux
const tcpOffloads = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN
/** What the kernel may leave to us, the most first: Linux has USO since 6.2. The last one is refused by none. */
const offloads = [tcpOffloads | TUN_F_USO4 | TUN_F_USO6, tcpOffloads, 0]

/** Opens TAP devices. Throws KeeperErrors that say what to do. */
export class Taps {
  readonly #libc: Libc
  readonly #scratch: Scratch
  /** false: frames without a header, one by one and whole, for measurements and for kernels with faults in it. */
  readonly #isSegmenting: boolean

  constructor(libc: Libc, isSegmenting: boolean) {
    this.#libc = libc
    this.#scratch = new Scratch(libc)
    this.#isSegmenting = isSegmenting
  }

  /** Opens a TAP device and brings it up; a missing device is created for the time of the link. */
  open(device: string): OpenedSocket {
    // The kernel would replace %d by a number.
    if (device.includes('%')) throw new KeeperError('bad_request', `${device} is not a device name`)
    const fd = this.#openDriver(device)
    try {
      this.#attach(fd, device)
      this.#bringUp(device)
      return this.bind(fd)
    } catch (error) {
      this.#libc.close(fd)
      throw error
    }
  }

  /**
   * Prepares an open descriptor of a TAP device, which may be in another network namespace. The descriptor says whether it has a
   * header before each frame.
   */
  bind(fd: number): OpenedSocket {
    const libc = this.#libc
    const { address, view } = this.#scratch
    this.#scratch.clear(40)
    const flags = libc.ioctl(fd, linux.TUNGETIFF, address) < 0 ? 0 : view.getUint16(requestValue, true)
    if ((flags & linux.IFF_TAP) === 0 || (flags & linux.IFF_NO_PI) === 0)
      throw new KeeperError('bad_request', 'the descriptor is not one of a TAP device without packet information')
    libc.fcntl(fd, linux.F_SETFL, libc.fcntl(fd, linux.F_GETFL, 0) | linux.O_NONBLOCK)
    const hasHeader = (flags & linux.IFF_VNET_HDR) !== 0
    // A persistent device may still have the size and the offloads of its last program.
    if (hasHeader) {
      this.#scratch.u32(0, vnetHeaderBytes)
      libc.ioctl(fd, linux.TUNSETVNETHDRSZ, address)
    }
    for (const flags of hasHeader && this.#isSegmenting ? offloads : [0])
      if (libc.ioctl(fd, linux.TUNSETOFFLOAD, flags) >= 0) break
    return { fd, port: 0, gro: false, gso: false, hasHeader, longest: Number.POSITIVE_INFINITY }
  }

  /** Closes a descriptor; a persistent device is then like a new one: no frame is left to a program that does not ask for it. */
  close(fd: number): void {
    this.#libc.ioctl(fd, linux.TUNSETOFFLOAD, 0)
    this.#libc.close(fd)
  }

  #openDriver(device: string): number {
    const libc = this.#libc
    this.#scratch.text('/dev/net/tun')
    const fd = libc.open(this.#scratch.address, linux.O_RDWR | linux.SOCK_NONBLOCK | linux.SOCK_CLOEXEC, 0)
    if (fd >= 0) return fd
    if (libc.errno() === linux.ENOENT || libc.errno() === linux.ENODEV)
      throw new KeeperError('unsupported', 'This host has no /dev/net/tun: load the module with: sudo modprobe tun')
    throw deviceError(libc, device, 'cap_net_admin', 'allow it with: sudo chmod 0666 /dev/net/tun')
  }

  /** With a header before each frame, if the device can have one. */
  #attach(fd: number, device: string): void {
    const plain = linux.IFF_TAP | linux.IFF_NO_PI
    for (const flags of this.#isSegmenting ? [plain | linux.IFF_VNET_HDR, plain] : [plain]) {
      this.#scratch.request(device, flags)
      if (this.#libc.ioctl(fd, linux.TUNSETIFF, this.#scratch.address) >= 0) return
    }
    const hint = `${grant('cap_net_admin')}, or make it with: sudo ip tuntap add dev ${device} mode tap user "$USER"`
    throw deviceError(this.#libc, device, 'cap_net_admin', hint)
  }

  #bringUp(device: string): void {
    const libc = this.#libc
    const { address, view } = this.#scratch
    const control = libc.socket(linux.AF_INET, linux.SOCK_DGRAM | linux.SOCK_CLOEXEC, 0)
    if (control < 0) throw callError(libc, 'bad_request', 'no socket can be opened')
    try {
      this.#scratch.request(device, 0)
      if (libc.ioctl(control, linux.SIOCGIFFLAGS, address) < 0) return
      const flags = view.getUint16(requestValue, true)
      this.#scratch.u16(requestValue, flags | linux.IFF_UP)
      if ((flags & linux.IFF_UP) === 0 && libc.ioctl(control, linux.SIOCSIFFLAGS, address) < 0)
        throw deviceError(libc, device, 'cap_net_admin', `bring it up with: sudo ip link set ${device} up`)
    } finally {
      libc.close(control)
    }
  }
}
