import { expect, onTestFinished } from 'vitest'
import { Memory } from '../../../../runtime/node/dataplane/fast/memory.ts'
import { Sockets } from '../../../../runtime/node/dataplane/fast/sockets.ts'
import { type Libc, loadLibc } from '../../../../runtime/node/os/system/libc.ts'
import { freePorts } from '../../../support/ports.ts'
import { provided, testWith } from '../../../support/test-with.ts'

const onLinux = testWith(provided(process.platform === 'linux', 'the fast path is for Linux'))
const address = '127.0.0.1'

onLinux('what a stranger sends to a socket before it is connected does not come out of it', () => {
  const libc = loadLibc()
  const [own, peer, stranger] = [0, 1, 2].map((at) => ports + at) as [number, number, number]
  const opened = (sockets: Sockets, local: number, remote: number) => {
    const { fd } = sockets.udp({ local: { address, port: local }, remote: { address, port: remote } })
    onTestFinished(() => void libc.close(fd))
    return fd
  }
  const frame = new Memory(libc, 64)
  const others = new Sockets(libc, false)
  const from = { stranger: opened(others, stranger, own), peer: opened(others, peer, own) }
  const early: Libc = {
    ...libc,
    connect(...given) {
      for (let count = 0; count < 3; count++) expect(libc.send(from.stranger, frame.address, 60, 0)).toBe(60)
      return libc.connect(...given)
    },
  }
  const fd = opened(new Sockets(early, false), own, peer)
  expect(libc.read(fd, frame.address, 64)).toBe(-1)
  libc.send(from.peer, frame.address, 42, 0)
  expect(libc.read(fd, frame.address, 64)).toBe(42)
})
const ports = freePorts(3)
