import { execFileSync } from 'node:child_process'
import { readdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { freshDirectory } from '../../../support/directory.ts'
import { bridgePath, header, netio } from '../../../support/iou-instance.ts'
import { lan, peer, udp } from '../../../support/lan.ts'
import { freePorts } from '../../../support/ports.ts'
import { python3 } from '../../../support/python.ts'
import { requireFastPath } from '../../../support/require.ts'
import { testWith } from '../../../support/test-with.ts'

const id = 324
const lport = freePorts(2)
const rport = lport + 1

const script = `import socket, sys
path, mark, datagram = sys.argv[1], open(sys.argv[2]), bytes.fromhex(sys.argv[3])
instance = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
instance.connect(path)
for _ in range(20):
    socket.send_fds(instance, [datagram], [mark.fileno()] * 8)`

/** What this process has open. */
const openFiles = (): string[] =>
  readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)]
    } catch {
      // It was that of this listing.
      return []
    }
  })

testWith(requireFastPath())('descriptors that come along with frames are not taken', async () => {
  const { lan: it } = await lan('fast')
  const remote = await peer(rport)
  await it.open('r', netio(id, 0))
  await it.attach('r', udp(lport, rport))
  const mark = join(await freshDirectory(), 'mark')
  writeFileSync(mark, '')
  const datagram = Buffer.concat([header(id + 512, id, 0), Buffer.from('frame')]).toString('hex')
  execFileSync(python3, ['-c', script, bridgePath(id), mark, datagram])
  expect((await remote.holds(20)).map(String)).toEqual(Array.from({ length: 20 }, () => 'frame'))
  expect(openFiles().filter((path) => path === mark)).toEqual([])
})
