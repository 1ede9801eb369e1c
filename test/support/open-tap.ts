import { expect } from 'vitest'
import { Memory } from '../../runtime/node/dataplane/fast/memory.ts'
import { linux, loadLibc } from '../../runtime/node/os/system/libc.ts'

/** Opens a TAP as a program in another namespace would, with headers. */
export function openTap(name: string): number {
  const libc = loadLibc()
  const memory = new Memory(libc, 64)
  new TextEncoder().encodeInto('/dev/net/tun', memory.bytes)
  const fd = libc.open(memory.address, linux.O_RDWR | linux.SOCK_CLOEXEC, 0)
  memory.bytes.fill(0)
  new TextEncoder().encodeInto(name, memory.bytes)
  memory.u16(16, linux.IFF_TAP | linux.IFF_NO_PI | linux.IFF_VNET_HDR)
  expect(libc.ioctl(fd, linux.TUNSETIFF, memory.address)).toBe(0)
  return fd
}
