import { KeeperError } from '../../keeper/protocol/error.ts'
import { type Libc, linux } from '../../os/system/libc.ts'
import { callError, deviceError, grant, requestValue, Scratch } from './scratch.ts'
import type { OpenedSocket } from './sockets.ts'

/** Opens TAP devices. Throws KeeperErrors that say what to do. */
export class Taps {
  readonly #libc: Libc
  readonly #scratch: Scratch

  constructor(libc: Libc) {
    this.#libc = libc
    this.#scratch = new Scratch(libc)
  }

  /** Opens a TAP device and brings it up; a missing device is created for the time of the link. */
  open(device: string): OpenedSocket {
    // The kernel would replace %d by a number.
    if (device.includes('%')) throw new KeeperError('bad_request', `${device} is not a device name`)
    const fd = this.#openDriver(device)
    try {
      this.#attach(fd, device)
      // A persistent TAP may still have the offloads of its last user (super-frames, checksums).
      this.#libc.ioctl(fd, linux.TUNSETOFFLOAD, 0)
      this.#bringUp(device)
      return { fd, port: 0, gro: false, gso: false }
    } catch (error) {
      this.#libc.close(fd)
      throw error
    }
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

  #attach(fd: number, device: string): void {
    this.#scratch.request(device, linux.IFF_TAP | linux.IFF_NO_PI)
    if (this.#libc.ioctl(fd, linux.TUNSETIFF, this.#scratch.address) >= 0) return
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
