import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isNetioTaken, NetioSocket } from '../../../../runtime/node/dataplane/fast/netio-socket.ts'
import { ApplicationIds } from '../../../../runtime/node/drivers/iou/application-ids.ts'
import { loadLibc } from '../../../../runtime/node/os/system/libc.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { holdLock, python } from '../../../support/python.ts'
import { requireFastPath } from '../../../support/require.ts'
import { describeWith } from '../../../support/test-with.ts'

const fastPath = requireFastPath()

test('the lowest free id is assigned, kept, and free again after the release', () => {
  const ids = new ApplicationIds(() => false)
  expect([ids.allocate('a'), ids.allocate('b'), ids.allocate('c')]).toEqual([1, 2, 3])
  expect(ids.allocate('b')).toBe(2)
  expect(ids.allocate('b', 9)).toBe(2)
  ids.release('b')
  expect(ids.of('b')).toBe(undefined)
  expect([ids.allocate('d'), ids.allocate('b')]).toEqual([2, 4])
})

test('a reopened node has its former id, unless another node has it', () => {
  const ids = new ApplicationIds((id) => id === 7)
  // Its own program may run and have it.
  expect([ids.allocate('a', 7), ids.allocate('b', 7), ids.allocate('c', 7)]).toEqual([7, 1, 2])
})

test('ids that are in use on the host are skipped, and a node gets another id when its own is in use', () => {
  const inUse = new Set([1, 3])
  const ids = new ApplicationIds((id) => inUse.has(id))
  expect([ids.allocate('a'), ids.allocate('b')]).toEqual([2, 4])
  inUse.add(2)
  expect(ids.change('a')).toBe(5)
  expect([ids.of('a'), ids.allocate('a')]).toEqual([5, 5])
  inUse.delete(2)
  expect(ids.allocate('c')).toBe(2)
})

test('without a free id there is a conflict', () => {
  const ids = new ApplicationIds((id) => id < 511)
  expect(ids.allocate('a')).toBe(511)
  const conflict = expect.objectContaining({ status: 409, message: expect.stringContaining('All 511 application ids') })
  expect(() => ids.allocate('b')).toThrow(conflict)
  expect(() => ids.change('a')).toThrow(conflict)
  expect(ids.of('a')).toBe(511)
})

const bind = `import socket, sys
bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
bound.bind(sys.argv[1])`

describeWith(fastPath)('an id is taken', () => {
  test('while a program has its lock file, or listens without one, and not by files of a killed program', async () => {
    const directory = await freshDirectory()
    const libc = loadLibc()
    const isTaken = () => isNetioTaken(libc, directory, 5)
    expect(isTaken()).toBe(false)
    const holder = await holdLock(join(directory, '5.lck'))
    expect(isTaken()).toBe(true)
    await holder?.()
    expect(isTaken()).toBe(false)
    const listener = await python(bind, join(directory, '5'))
    expect(isTaken()).toBe(true)
    await listener?.()
    expect(isTaken()).toBe(false)
    writeFileSync(join(directory, '5.lck'), '1\n')
    expect(isTaken()).toBe(false)
  })

  test('while another bridge of ours has it, and the check does not take it away', async () => {
    const directory = await freshDirectory()
    const libc = loadLibc()
    const socket = NetioSocket.open(libc, directory, { own: 832, peer: 320 })
    for (let time = 0; time < 2; time++) expect(isNetioTaken(libc, directory, 832)).toBe(true)
    expect(isNetioTaken(libc, directory, 320)).toBe(false)
    socket.close()
    expect(isNetioTaken(libc, directory, 832)).toBe(false)
  })
})
