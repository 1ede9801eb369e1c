import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, readlinkSync } from 'node:fs'
import { expect, onTestFinished } from 'vitest'
import { DescriptorChannel } from '../../../../runtime/node/keeper/process/handed-descriptors.ts'
import { requireFastPath, requireProgram } from '../../../support/require.ts'
import { testWith } from '../../../support/test-with.ts'

const script = `
import array, os, socket
channel = socket.socket(fileno=3)
for name in ['null', 'zero', 'null']:
    fd = os.open('/dev/' + name, os.O_RDONLY)
    channel.sendmsg([name.encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [fd]))])
`
const needed = [requireFastPath(), requireProgram('python3')]

testWith(...needed)('descriptors that a program hands over arrive with their names, one of each', async () => {
  const channel = DescriptorChannel.open()
  onTestFinished(() => channel.close())
  const child = spawn('python3', ['-c', script], { stdio: ['ignore', 'inherit', 'inherit', channel.theirs] })
  closeSync(channel.theirs)
  expect(await once(child, 'exit')).toEqual([0, null])
  const taken = channel.take()
  expect([...taken].map(([name, fd]) => [name, readlinkSync(`/proc/self/fd/${fd}`)])).toEqual([
    ['null', '/dev/null'],
    ['zero', '/dev/zero'],
  ])
  for (const fd of taken.values()) closeSync(fd)
  for (const fd of taken.values()) expect(existsSync(`/proc/self/fd/${fd}`)).toBe(false)
  expect(channel.take().size).toBe(0)
})
