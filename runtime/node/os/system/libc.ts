import { createRequire } from 'node:module'

/** An address in memory. A number represents the 48 bits of user space exactly. */
export type Pointer = number

/** The functions of libc that the fast path and locks call. They return -1 on failure and set `errno`, as in C. */
export interface Libc {
  socket(domain: number, type: number, protocol: number): number
  bind(fd: number, address: Pointer, length: number): number
  connect(fd: number, address: Pointer, length: number): number
  getsockname(fd: number, address: Pointer, length: Pointer): number
  setsockopt(fd: number, level: number, name: number, value: Pointer, length: number): number
  getsockopt(fd: number, level: number, name: number, value: Pointer, length: Pointer): number
  socketpair(domain: number, type: number, protocol: number, pair: Pointer): number
  recvmsg(fd: number, message: Pointer, flags: number): number
  recvmmsg(fd: number, messages: Pointer, count: number, flags: number, timeout: Pointer): number
  sendmmsg(fd: number, messages: Pointer, count: number, flags: number): number
  send(fd: number, bytes: Pointer, length: number, flags: number): number
  read(fd: number, bytes: Pointer, length: number): number
  write(fd: number, bytes: Pointer, length: number): number
  writev(fd: number, pieces: Pointer, count: number): number
  memcpy(to: Pointer, from: Pointer, length: number): unknown
  open(path: Pointer, flags: number, mode: number): number
  ioctl(fd: number, request: number, argument: Pointer): number
  fcntl(fd: number, command: number, argument: Pointer): number
  close(fd: number): number
  fallocate(fd: number, mode: number, offset: number, length: number): number
  epoll_create1(flags: number): number
  epoll_ctl(epoll: number, operation: number, fd: number, event: Pointer): number
  epoll_wait(epoll: number, events: Pointer, count: number, timeoutMs: number): number
  /** Linux 5.11 with glibc 2.35; undefined before. */
  readonly epoll_pwait2:
    | ((epoll: number, events: Pointer, count: number, timeout: Pointer, mask: Pointer) => number)
    | undefined
  /** Gives pages that malloc has free back to the system; undefined where libc is not that of GNU. */
  readonly malloc_trim: ((keptBytes: number) => number) | undefined
  madvise(address: Pointer, length: number, advice: number): number
  poll(descriptors: Pointer, count: number, timeoutMs: number): number
  eventfd(initial: number, flags: number): number
  inet_pton(family: number, text: Pointer, address: Pointer): number
  if_nametoindex(name: Pointer): number
  /** `send` in another thread, for requests that the kernel carries out while they are sent. */
  sendLater(fd: number, bytes: Uint8Array): Promise<number>
  errno(): number
  /** The address of the bytes. It stays the same while their ArrayBuffer lives. */
  addressOf(bytes: Uint8Array): Pointer
}

const signatures = {
  socket: 'int socket(int, int, int)',
  bind: 'int bind(int, uintptr_t, int)',
  connect: 'int connect(int, uintptr_t, int)',
  getsockname: 'int getsockname(int, uintptr_t, uintptr_t)',
  setsockopt: 'int setsockopt(int, int, int, uintptr_t, int)',
  getsockopt: 'int getsockopt(int, int, int, uintptr_t, uintptr_t)',
  socketpair: 'int socketpair(int, int, int, uintptr_t)',
  recvmsg: 'int64_t recvmsg(int, uintptr_t, int)',
  recvmmsg: 'int recvmmsg(int, uintptr_t, int, int, uintptr_t)',
  sendmmsg: 'int sendmmsg(int, uintptr_t, int, int)',
  send: 'int64_t send(int, uintptr_t, int64_t, int)',
  read: 'int64_t read(int, uintptr_t, int64_t)',
  write: 'int64_t write(int, uintptr_t, int64_t)',
  writev: 'int64_t writev(int, uintptr_t, int)',
  memcpy: 'uintptr_t memcpy(uintptr_t, uintptr_t, int64_t)',
  open: 'int open(uintptr_t, int, int)',
  ioctl: 'int ioctl(int, unsigned long, uintptr_t)',
  fcntl: 'int fcntl(int, int, uintptr_t)',
  close: 'int close(int)',
  fallocate: 'int fallocate64(int, int, int64_t, int64_t)',
  epoll_create1: 'int epoll_create1(int)',
  epoll_ctl: 'int epoll_ctl(int, int, int, uintptr_t)',
  epoll_wait: 'int epoll_wait(int, uintptr_t, int, int)',
  poll: 'int poll(uintptr_t, unsigned long, int)',
  eventfd: 'int eventfd(int, int)',
  inet_pton: 'int inet_pton(int, uintptr_t, uintptr_t)',
  if_nametoindex: 'unsigned int if_nametoindex(uintptr_t)',
  madvise: 'int madvise(uintptr_t, size_t, int)',
} as const

/** Throws when libc or koffi cannot be loaded. */
export function loadLibc(): Libc {
  const koffi = createRequire(import.meta.url)('koffi') as typeof import('koffi')
  const library = koffi.load('libc.so.6')
  const calls = Object.fromEntries(Object.entries(signatures).map(([name, text]) => [name, library.func(text)]))
  const callIfAny = (signature: string): unknown => {
    try {
      return library.func(signature)
    } catch {
      return undefined
    }
  }
  return {
    ...calls,
    // On an older system the fast path waits in whole milliseconds.
    epoll_pwait2: callIfAny('int epoll_pwait2(int, uintptr_t, int, uintptr_t, uintptr_t)'),
    malloc_trim: callIfAny('int malloc_trim(size_t)'),
    sendLater: (fd: number, bytes: Uint8Array) =>
      new Promise<number>((resolve, reject) => {
        // It has the bytes, which have to live until the call ends.
        const done = (error: Error | null, sent: number) =>
          error === null ? resolve(Math.min(sent, bytes.length)) : reject(error)
        calls.send?.async(fd, Number(koffi.address(bytes)), bytes.length, 0, done)
      }),
    errno: () => koffi.errno(),
    addressOf: (bytes: Uint8Array) => Number(koffi.address(bytes)),
  } as unknown as Libc
}

let loaded: Libc | null | undefined

/** libc, loaded once for the process; undefined where it or koffi cannot be loaded. */
export function libcIfAny(): Libc | undefined {
  if (loaded === undefined) {
    try {
      loaded = loadLibc()
    } catch {
      loaded = null
    }
  }
  return loaded ?? undefined
}

/** Bytes of struct mmsghdr and struct iovec on 64-bit systems. */
export const messageBytes = 64
export const pieceBytes = 16

/** Constants of the Linux headers that the fast path uses. */
export const linux = {
  AF_UNIX: 1,
  AF_INET: 2,
  AF_INET6: 10,
  AF_PACKET: 17,
  SOCK_STREAM: 1,
  SOCK_DGRAM: 2,
  SOCK_RAW: 3,
  SOCK_SEQPACKET: 5,
  SOCK_NONBLOCK: 0o4000,
  SOCK_CLOEXEC: 0o2000000,
  O_RDWR: 2,
  O_NONBLOCK: 0o4000,
  F_WRLCK: 1,
  F_UNLCK: 2,
  F_GETFL: 3,
  F_SETFL: 4,
  F_GETLK: 5,
  F_SETLK: 6,
  F_OFD_SETLK: 37,
  FALLOC_FL_KEEP_SIZE: 1,
  FALLOC_FL_PUNCH_HOLE: 2,
  SOL_SOCKET: 1,
  SCM_RIGHTS: 1,
  SO_SNDBUF: 7,
  SO_RCVBUF: 8,
  SO_PEERCRED: 17,
  SO_SNDBUFFORCE: 32,
  SO_RCVBUFFORCE: 33,
  IPPROTO_IP: 0,
  IP_MTU_DISCOVER: 10,
  IP_PMTUDISC_DONT: 0,
  IPPROTO_IPV6: 41,
  IPV6_V6ONLY: 26,
  SOL_UDP: 17,
  UDP_SEGMENT: 103,
  UDP_GRO: 104,
  SOL_PACKET: 263,
  PACKET_ADD_MEMBERSHIP: 1,
  PACKET_AUXDATA: 8,
  PACKET_VNET_HDR: 15,
  PACKET_IGNORE_OUTGOING: 23,
  PACKET_MR_PROMISC: 1,
  ETH_P_ALL: 3,
  ARPHRD_ETHER: 1,
  ARPHRD_LOOPBACK: 772,
  TP_STATUS_VLAN_VALID: 1 << 4,
  TP_STATUS_VLAN_TPID_VALID: 1 << 6,
  TUNSETIFF: 0x400454ca,
  TUNSETOFFLOAD: 0x400454d0,
  TUNSETVNETHDRSZ: 0x400454d8,
  TUNGETIFF: 0x800454d2,
  TUN_F_CSUM: 0x01,
  TUN_F_TSO4: 0x02,
  TUN_F_TSO6: 0x04,
  TUN_F_TSO_ECN: 0x08,
  TUN_F_USO4: 0x20,
  TUN_F_USO6: 0x40,
  IFF_TAP: 0x0002,
  IFF_NO_PI: 0x1000,
  IFF_VNET_HDR: 0x4000,
  MADV_DONTNEED: 4,
  SIOCOUTQ: 0x5411,
  SIOCGIFFLAGS: 0x8913,
  SIOCGIFINDEX: 0x8933,
  SIOCSIFFLAGS: 0x8914,
  SIOCGIFMTU: 0x8921,
  IFF_UP: 1,
  EPOLL_CTL_ADD: 1,
  EPOLL_CTL_DEL: 2,
  EPOLL_CTL_MOD: 3,
  EPOLLIN: 1,
  EPOLLOUT: 4,
  EPOLLONESHOT: 2 ** 30,
  EPOLL_CLOEXEC: 0o2000000,
  EFD_NONBLOCK: 0o4000,
  EFD_CLOEXEC: 0o2000000,
  MSG_DONTWAIT: 0x40,
  MSG_TRUNC: 0x20,
  MSG_CMSG_CLOEXEC: 0x40000000,
  EPERM: 1,
  ENOENT: 2,
  EINTR: 4,
  EIO: 5,
  EAGAIN: 11,
  EACCES: 13,
  EBUSY: 16,
  ENODEV: 19,
  EINVAL: 22,
  EMSGSIZE: 90,
  EADDRINUSE: 98,
  EADDRNOTAVAIL: 99,
  ENETDOWN: 100,
  ENOBUFS: 105,
  ECONNREFUSED: 111,
} as const
