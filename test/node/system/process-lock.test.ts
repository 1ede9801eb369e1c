import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { isLocked, takeLock } from '../../../runtime/node/system/process-lock.ts'
import { requireProgram } from '../../support/require.ts'
import { testWith } from '../../support/test-with.ts'

const name = () => `patchbay-test-${randomUUID()}`

test('one process has a lock, until it releases it', async () => {
  const lock = name()
  expect(await isLocked(lock)).toBe(false)
  const held = await takeLock(lock)
  expect([await isLocked(lock), await takeLock(lock)]).toEqual([true, undefined])
  held?.close()
  await expect.poll(() => isLocked(lock)).toBe(false)
})

test('the lock of an earlier version of the service is respected', async () => {
  const lock = name()
  const before = createServer().listen(`\0${lock}`)
  onTestFinished(() => void before.close())
  await once(before, 'listening')
  expect([await isLocked(lock), await takeLock(lock)]).toEqual([true, undefined])
})

testWith(requireProgram('python3'))(
  'a lock has the same name on every Node: that of before, on Node 20, fills it with NUL to 108 bytes',
  async () => {
    const lock = name()
    const python = `
import socket, sys
it = socket.socket(socket.AF_UNIX)
it.bind(("\\0" + sys.argv[1]).encode().ljust(108, b"\\0"))
it.listen()
print("listening", flush=True)
sys.stdin.read()`
    const before = spawn('python3', ['-c', python, lock], { stdio: ['pipe', 'pipe', 'inherit'] })
    onTestFinished(async () => {
      before.stdin.end()
      await once(before, 'exit')
    })
    await once(before.stdout, 'data')
    expect([await isLocked(lock), await takeLock(lock)]).toEqual([true, undefined])
  },
)
