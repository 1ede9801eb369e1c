import { isIPv6 } from 'node:net'
import { KeeperError } from '../../keeper/protocol/error.ts'
import { type Libc, linux } from '../../os/system/libc.ts'
import type { DeviceEnd, SocketAddress, UdpEnd } from '../switch/core/path.ts'
import { callError, deviceError, requestValue, Scratch } from './scratch.ts'

/** Size of socket buffers, bytes; without privilege the kernel limits it to net.core.rmem_max. */
const bufferBytes = 4 << 20
/** Bytes of the Ethernet header of a frame, with a VLAN tag. */
const linkBytes = 18
/** More datagrams than the largest buffer holds. */
const earlierAtMost = 16_384

/** An open descriptor of the path. */
export interface OpenedSocket {
  readonly fd: number
  /** Its UDP port; 0 for a device. */
  readonly port: number
  /** Whether the kernel joins (`gro`) and splits (`gso`) runs of datagrams. */
  readonly gro: boolean
  readonly gso: boolean
  /** Whether a struct virtio_net_hdr is before every frame, so that super-frames and checksums may be left to the device. */
  readonly hasHeader: boolean
  /** The longest segments of super-frames that it takes, bytes. */
  readonly longest: number
}

/** Opens the descriptors of ends. Throws KeeperErrors that say what to do. */
export class Sockets {
  readonly #libc: Libc
  readonly #scratch: Scratch
  /** false: sockets without GRO and GSO, for measurements and for kernels with faults in them. */
  readonly #isSegmenting: boolean

  constructor(libc: Libc, isSegmenting: boolean) {
    this.#libc = libc
    this.#scratch = new Scratch(libc)
    this.#isSegmenting = isSegmenting
  }

  /** `buffers`: large ones, or those that the kernel gives every socket. */
  udp(
    { local, remote }: Pick<UdpEnd, 'local' | 'remote'> & Partial<UdpEnd>,
    buffers: 'large' | 'default' = 'large',
  ): OpenedSocket {
    const libc = this.#libc
    const family = isIPv6(local.address) ? linux.AF_INET6 : linux.AF_INET
    const fd = this.#socket(family, linux.SOCK_DGRAM, 0)
    try {
      if (buffers === 'large') this.#growBuffers(fd)
      if (family === linux.AF_INET6) this.#option(fd, linux.IPPROTO_IPV6, linux.IPV6_V6ONLY, 1)
      // Fragments long datagrams, and ignores path MTU reports (ip(7)).
      else this.#option(fd, linux.IPPROTO_IP, linux.IP_MTU_DISCOVER, linux.IP_PMTUDISC_DONT)
      if (libc.bind(fd, this.#scratch.address, this.#address(local)) < 0)
        throw callError(this.#libc, 'port_taken', `UDP port ${local.port} of ${local.address} cannot be bound`)
      if (libc.connect(fd, this.#scratch.address, this.#address(remote)) < 0)
        throw callError(this.#libc, 'bad_request', `${remote.address} cannot be reached`)
      this.#discardEarlier(fd)
      const gro = this.#isSegmenting && this.#option(fd, linux.SOL_UDP, linux.UDP_GRO, 1)
      // Setting 0 changes nothing, and tests whether the option is known.
      const gso = this.#isSegmenting && this.#option(fd, linux.SOL_UDP, linux.UDP_SEGMENT, 0)
      return { fd, port: this.#boundPort(fd), gro, gso, hasHeader: false, longest: 0 }
    } catch (error) {
      libc.close(fd)
      throw error
    }
  }

  /** Discards what anybody has sent between bind(2) and connect(2): from then on the kernel takes datagrams of the peer only. */
  #discardEarlier(fd: number): void {
    for (let count = 0; count < earlierAtMost; count++) if (this.#libc.read(fd, this.#scratch.address, 1) < 0) return
  }

  /** Opens a raw socket on a device of the host. It receives every incoming frame, and no frame that the host sends. */
  ethernet({ device }: DeviceEnd): OpenedSocket {
    const libc = this.#libc
    const { address } = this.#scratch
    // A device that is not there is no question of rights.
    const index = this.#deviceIndex(device)
    // Protocol 0 receives nothing until the socket is bound to its device (packet(7)).
    const fd = this.#socket(linux.AF_PACKET, linux.SOCK_RAW, 0, 'cap_net_raw', device)
    try {
      this.#growBuffers(fd)
      this.#option(fd, linux.SOL_PACKET, linux.PACKET_IGNORE_OUTGOING, 1)
      this.#option(fd, linux.SOL_PACKET, linux.PACKET_AUXDATA, 1)
      if (!this.#option(fd, linux.SOL_PACKET, linux.PACKET_VNET_HDR, 1))
        throw callError(this.#libc, 'bad_request', `${device} cannot be used`)
      // struct packet_mreq { int ifindex; unsigned short type, alen; unsigned char address[8]; }
      this.#scratch.clear(16)
      this.#scratch.u32(0, index)
      this.#scratch.u16(4, linux.PACKET_MR_PROMISC)
      if (libc.setsockopt(fd, linux.SOL_PACKET, linux.PACKET_ADD_MEMBERSHIP, address, 16) < 0)
        throw callError(this.#libc, 'bad_request', `${device} cannot be made promiscuous`)
      // struct sockaddr_ll { u16 family; be16 protocol; int ifindex; ... }
      this.#scratch.clear(20)
      this.#scratch.u16(0, linux.AF_PACKET)
      this.#scratch.u16(2, linux.ETH_P_ALL << 8)
      this.#scratch.u32(4, index)
      if (libc.bind(fd, address, 20) < 0) throw callError(this.#libc, 'bad_request', `${device} cannot be used`)
      if (!this.#isEthernet(fd)) throw new KeeperError('bad_request', `${device} does not carry Ethernet frames`)
      return { fd, port: 0, gro: false, gso: false, hasHeader: true, longest: this.#mtu(fd, device) + linkBytes }
    } catch (error) {
      libc.close(fd)
      throw error
    }
  }

  #socket(family: number, type: number, protocol: number, capability?: string, device = ''): number {
    const fd = this.#libc.socket(family, type | linux.SOCK_NONBLOCK | linux.SOCK_CLOEXEC, protocol)
    if (fd >= 0) return fd
    throw capability === undefined
      ? callError(this.#libc, 'bad_request', 'no socket can be opened')
      : deviceError(this.#libc, device, capability)
  }

  #deviceIndex(device: string): number {
    this.#scratch.text(device)
    const index = this.#libc.if_nametoindex(this.#scratch.address)
    if (index === 0) throw new KeeperError('no_device', `the host has no network device ${device}`)
    return index
  }

  #mtu(fd: number, device: string): number {
    this.#scratch.request(device, 0)
    if (this.#libc.ioctl(fd, linux.SIOCGIFMTU, this.#scratch.address) < 0) return 0
    return this.#scratch.view.getUint32(requestValue, true)
  }

  #isEthernet(fd: number): boolean {
    const { address, view } = this.#scratch
    this.#scratch.u32(64, 20)
    this.#libc.getsockname(fd, address, address + 64)
    const type = view.getUint16(8, true)
    return type === linux.ARPHRD_ETHER || type === linux.ARPHRD_LOOPBACK
  }

  #growBuffers(fd: number): void {
    const { SOL_SOCKET, SO_RCVBUF, SO_RCVBUFFORCE, SO_SNDBUF, SO_SNDBUFFORCE } = linux
    if (!this.#option(fd, SOL_SOCKET, SO_RCVBUFFORCE, bufferBytes)) this.#option(fd, SOL_SOCKET, SO_RCVBUF, bufferBytes)
    if (!this.#option(fd, SOL_SOCKET, SO_SNDBUFFORCE, bufferBytes)) this.#option(fd, SOL_SOCKET, SO_SNDBUF, bufferBytes)
  }

  #option(fd: number, level: number, name: number, value: number): boolean {
    this.#scratch.u32(0, value)
    return this.#libc.setsockopt(fd, level, name, this.#scratch.address, 4) === 0
  }

  #boundPort(fd: number): number {
    const { address, view } = this.#scratch
    this.#scratch.u32(64, 28)
    this.#libc.getsockname(fd, address, address + 64)
    return view.getUint16(2, false)
  }

  /** Writes a sockaddr; returns its length. */
  #address({ address, port }: SocketAddress): number {
    const scratch = this.#scratch
    const isSix = isIPv6(address)
    const [bare = address, zone] = address.split('%')
    const index = zone === undefined ? 0 : this.#deviceIndex(zone)
    this.#scratch.text(bare, 64)
    const size = isSix ? 28 : 16
    this.#scratch.clear(size)
    const family = isSix ? linux.AF_INET6 : linux.AF_INET
    scratch.u16(0, family)
    scratch.view.setUint16(2, port, false)
    if (this.#libc.inet_pton(family, scratch.address + 64, scratch.address + (isSix ? 8 : 4)) !== 1)
      throw new KeeperError('bad_request', `${address} is not an IP address`)
    if (isSix) scratch.u32(24, index)
    return size
  }
}
