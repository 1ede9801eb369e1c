import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { HypervisorDriver } from '../../../../runtime/node/drivers/hypervisor/driver.ts'
import { type Leftover, Leftovers } from '../../../../runtime/node/drivers/hypervisor/leftovers.ts'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { freshDirectory } from '../../../support/directory.ts'

const uuid = '00000000-1111-4222-8333-444455556666'
const leftover: Leftover = { driver: 'libvirt', uuid, serial_port: 5000, clone: 'remove', directory: '/nowhere' }
const quiet = () => {}
const log = { debug: quiet, info: quiet, warn: quiet, error: quiet }

type Use = ReturnType<ConstructorParameters<typeof Leftovers>[0]['useOf']>

/** A manager that runs the VM at port 5000 and can be down, and the uses of the VM by nodes. */
async function managed() {
  const state = { isDown: true, runs: true, use: 'none' as Use, done: [] as string[] }
  const answer = async <T>(value: T): Promise<T> => {
    if (state.isDown) throw conflict('nobody answers')
    return value
  }
  const driver = {
    holds: (_: string, port: number) => answer(state.runs && port === 5000),
    stop: async () => {
      await answer(undefined)
      state.runs = false
      state.done.push('stop')
    },
    removeClone: async () => void state.done.push(await answer('remove')),
    closeClone: async () => void state.done.push(await answer('close')),
  } as unknown as HypervisorDriver
  const file = join(await freshDirectory(), 'run', 'left.json')
  const open = async () => {
    const drivers = { libvirt: driver, virtualbox: driver }
    const leftovers = new Leftovers({ drivers, file, log, useOf: () => state.use, retryMs: [5, 20] })
    onTestFinished(() => leftovers.close())
    await leftovers.open()
    return leftovers
  }
  const written = async () => JSON.parse(await readFile(file, 'utf8')) as Leftover[]
  return { state, open, written }
}

test('a leftover is removed once, when the hypervisor answers', async () => {
  const { state, open, written } = await managed()
  const leftovers = await open()
  await leftovers.add({ ...leftover, clone: null })
  await leftovers.add(leftover)
  expect(await written()).toEqual([leftover])
  state.isDown = false
  await expect.poll(written).toEqual([])
  expect(state.done).toEqual(['stop', 'remove'])
})

test('a leftover is removed also when the service was restarted meanwhile', async () => {
  const { state, open, written } = await managed()
  const before = await open()
  await before.add({ ...leftover, clone: 'close' })
  before.close()
  state.isDown = false
  await open()
  await expect.poll(written).toEqual([])
  expect(state.done).toEqual(['stop', 'close'])
})

test('a run of another program is not ended', async () => {
  const { state, open, written } = await managed()
  state.isDown = false
  await (await open()).add({ ...leftover, serial_port: 5001, clone: null })
  await expect.poll(written).toEqual([])
  expect(state).toMatchObject({ runs: true, done: [] })
})

test('a VM that a node uses again is no leftover', async () => {
  const { state, open, written } = await managed()
  const leftovers = await open()
  state.use = 'runs'
  await leftovers.add({ ...leftover, clone: 'close' })
  await expect(leftovers.settle(uuid)).rejects.toMatchObject({ status: 409 })
  state.isDown = false
  await leftovers.settle(uuid)
  expect([state.done, await written()]).toEqual([['stop'], []])
  await leftovers.settle(uuid)
})

test('a clone whose node is open stays registered', async () => {
  const { state, open, written } = await managed()
  state.use = 'held'
  state.isDown = false
  await (await open()).add({ ...leftover, clone: 'close' })
  await expect.poll(() => state.done).toEqual(['stop'])
  expect(await written()).toHaveLength(1)
  state.use = 'none'
  await expect.poll(written).toEqual([])
  expect(state.done).toEqual(['stop', 'close'])
})
