import { onTestFinished } from 'vitest'
import { Memory } from '../../runtime/node/dataplane/fast/memory.ts'
import { Sockets } from '../../runtime/node/dataplane/fast/sockets.ts'
import { Transmitter } from '../../runtime/node/dataplane/fast/transmitter.ts'
import type { SocketAddress } from '../../runtime/node/dataplane/switch/core/path.ts'
import { loadLibc } from '../../runtime/node/os/system/libc.ts'

/** Sends frames to a port of this host as one super-frame, as another switch may. */
export function sendJoined(from: number, to: number, frames: Buffer, segment: number): void {
  const libc = loadLibc()
  const [local, remote] = [from, to].map((port) => ({ address: '127.0.0.1', port })) as [SocketAddress, SocketAddress]
  const { fd } = new Sockets(libc, true).udp({ type: 'udp', local, remote, probes: false, row: 0, sends: 'out' })
  onTestFinished(() => void libc.close(fd))
  const memory = new Memory(libc, frames.length)
  memory.bytes.set(frames)
  const transmitter = new Transmitter(libc)
  const output = { fd, kind: 'udp', gso: true, hasHeader: false, refused() {}, failed() {} } as const
  transmitter.addJoined({ ...output }, memory.address, frames.length, segment)
  transmitter.flush()
}
