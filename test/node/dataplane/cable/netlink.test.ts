import { closeSync, writeSync } from 'node:fs'
import { expect, onTestFinished } from 'vitest'
import { Netlink } from '../../../../runtime/node/dataplane/cable/netlink.ts'
import { linux, loadLibc } from '../../../../runtime/node/os/system/libc.ts'
import { requireFastPath } from '../../../support/require.ts'
import { testWith } from '../../../support/test-with.ts'

/** A netlink socket in whose place a test answers. */
function answeredBy() {
  const libc = loadLibc()
  const pair = new Int32Array(2)
  expect(libc.socketpair(linux.AF_UNIX, linux.SOCK_SEQPACKET, 0, libc.addressOf(new Uint8Array(pair.buffer)))).toBe(0)
  const [ours, theirs] = pair as unknown as [number, number]
  onTestFinished(() => [ours, theirs].forEach((it) => void closeSync(it)))
  const answer = (type: number, sequence: number) => {
    const message = Buffer.alloc(20)
    message.writeUInt32LE(message.length, 0)
    message.writeUInt16LE(type, 4)
    message.writeUInt32LE(sequence, 8)
    writeSync(theirs, message)
  }
  return { netlink: new Netlink(libc, ours), answer }
}

const [filter, done] = [44, 3]

testWith(requireFastPath())('an answer that is lost, or its end, is a failure and no wait', async () => {
  const { netlink, answer } = answeredBy()
  await expect(netlink.change('change', filter, 0, new Uint8Array())).rejects.toMatchObject({ errno: linux.EAGAIN })
  answer(filter, 2)
  await expect(netlink.list('list', filter, new Uint8Array())).rejects.toMatchObject({ errno: linux.EAGAIN })
  answer(filter, 3)
  answer(done, 3)
  expect(await netlink.list('list', filter, new Uint8Array())).toHaveLength(1)
})
