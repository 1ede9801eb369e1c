import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { isOurs } from '../../../../runtime/node/os/system/abstract-socket.ts'
import { isLocked, type LockName, takeLock } from '../../../../runtime/node/os/system/process-lock.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { python3 } from '../../../support/python.ts'
import { requireProgram, requireRoot } from '../../../support/require.ts'
import { testWith } from '../../../support/test-with.ts'

const newLock = async (): Promise<LockName> => ({
  file: join(await freshDirectory(), 'test.lock'),
  socket: `patchbay-test-${randomUUID()}`,
})

test('one process has a lock, until it releases it', async () => {
  const lock = await newLock()
  expect(isLocked(lock)).toBe(false)
  const held = await takeLock(lock)
  expect([isLocked({ ...lock, socket: 'patchbay-other' }), await takeLock(lock)]).toEqual([true, undefined])
  held?.release()
  expect(isLocked({ ...lock, socket: 'patchbay-other' })).toBe(false)
  await expect.poll(() => isLocked(lock)).toBe(false)
})

test('the file alone is a lock: two network namespaces share no abstract sockets, but may share a directory', async () => {
  const lock = await newLock()
  const held = await takeLock(lock)
  onTestFinished(() => held?.release())
  expect(await takeLock({ ...lock, socket: `patchbay-test-${randomUUID()}` })).toBeUndefined()
})

test('a lock ends with its process, also when programs that it started go on', async () => {
  const lock = await newLock()
  const held = await takeLock(lock)
  const child = spawn('sleep', ['600'])
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  await once(child, 'spawn')
  held?.release()
  const next = await takeLock(lock)
  onTestFinished(() => next?.release())
  expect(next).toMatchObject({ isSquatted: false })
})

test('the lock of an earlier version of the service is respected', async () => {
  const lock = await newLock()
  const before = createServer().listen(`\0${lock.socket}`)
  onTestFinished(() => void before.close())
  await once(before, 'listening')
  expect([isLocked(lock), await takeLock(lock)]).toEqual([true, undefined])
  // The file that was locked meanwhile is free again.
  expect(isLocked({ ...lock, socket: 'patchbay-other' })).toBe(false)
})

test('where FFI cannot load, /proc tells whose process has the socket', async () => {
  const { socket } = await newLock()
  expect(isOurs(socket, undefined)).toBe(false)
  const before = createServer().listen(`\0${socket}`)
  onTestFinished(() => void before.close())
  await once(before, 'listening')
  expect(isOurs(socket, undefined)).toBe(true)
})

/** Starts a Python process that has the abstract socket, and prints a line. */
async function holding(name: string, { body = 'it.listen()', user }: { body?: string; user?: number } = {}) {
  const python = `
import socket, sys
it = socket.socket(socket.AF_UNIX)
it.bind(("\\0" + sys.argv[1]).encode().ljust(108, b"\\0"))
${body}
print("ready", flush=True)
sys.stdin.read()`
  const child: ChildProcess = spawn(python3, ['-c', python, name], {
    stdio: ['pipe', 'pipe', 'inherit'],
    ...(user !== undefined && { uid: user, gid: user }),
  })
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  await once(child.stdout as NonNullable<ChildProcess['stdout']>, 'data')
}

testWith(requireProgram('python3'))(
  'a lock has the same name on every Node: that of before, on Node 20, fills it with NUL to 108 bytes',
  async () => {
    const lock = await newLock()
    await holding(lock.socket)
    expect([isLocked(lock), await takeLock(lock)]).toEqual([true, undefined])
  },
)

const full = `it.listen(0)
fillers = []
for _ in range(9):
  filler = socket.socket(socket.AF_UNIX)
  filler.setblocking(False)
  fillers.append(filler)
  try: filler.connect(it.getsockname())
  except BlockingIOError: break`

testWith(requireProgram('python3'))('the lock of an earlier version that hangs is respected', async () => {
  const lock = await newLock()
  await holding(lock.socket, { body: full })
  expect([isLocked(lock), await takeLock(lock)]).toEqual([true, undefined])
})

testWith(requireProgram('python3'), requireRoot()).for([
  ['that listens', 'it.listen()'],
  ['that does not listen', ''],
  ['whose queue is full', full],
] as const)('a process of another user %s keeps nobody from a lock', async ([, body]) => {
  const lock = await newLock()
  await holding(lock.socket, { body, user: 65_534 })
  expect(isLocked(lock)).toBe(false)
  const held = await takeLock(lock)
  onTestFinished(() => held?.release())
  expect([held?.isSquatted, isLocked(lock), await takeLock(lock)]).toEqual([true, true, undefined])
})
