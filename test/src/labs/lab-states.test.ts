import { expect, test } from 'vitest'
import type { ComputeClient } from '../../../src/labs/computes/compute-client.ts'
import { LabStates } from '../../../src/labs/lab-states.ts'
import { conflict } from '../../../src/lib/errors/api-error.ts'
import { labsInMemory, MemoryCompute } from '../../support/memory-compute.ts'

const id = '6b1f7c1e-9d0b-4b7c-8f3a-2f5d9c0e7a41'
type Operation = 'openProject' | 'closeProject' | 'removeProject'

/** Labs, and clients that note the state of the lab at each operation on its project. Those in `refused` fail. */
async function withNotes(refused = new Set<Operation>()) {
  const labs = await labsInMemory(new MemoryCompute())
  const state = () => labs.projects.states.of(id)
  const noted: string[] = []
  const clientFor = (computeId: string): ComputeClient => {
    const its = labs.computes.client(computeId)
    const noting = (operation: Operation) => async (input: never) => {
      noted.push(`${operation} while ${state()}`)
      if (refused.has(operation)) throw conflict('The compute refuses')
      return its[operation](input)
    }
    const operations = ['openProject', 'closeProject', 'removeProject'] as const
    const watched = Object.fromEntries(operations.map((name) => [name, noting(name)]))
    return { ...its, ...watched } as unknown as ComputeClient
  }
  const create = () => labs.create({ project_id: id, name: 'lab', compute_id: 'local' }, clientFor)
  return { labs, clientFor, state, create, noted, refused }
}

test('a lab is opening, closing and deleting while its projects are opened, closed and removed', async () => {
  const { labs, clientFor, state, create, noted } = await withNotes()
  await create()
  expect(state()).toBe('open')
  await labs.close(id, clientFor)
  expect(state()).toBe('closed')
  await labs.open(id, clientFor)
  expect(state()).toBe('open')
  await labs.remove(id, clientFor)
  expect(noted).toEqual([
    'openProject while opening',
    'closeProject while closing',
    'openProject while opening',
    'removeProject while deleting',
  ])
  await create()
  expect(state()).toBe('open')
})

test('a lab whose compute refuses is as before, and the next attempt may do it', async () => {
  const { labs, clientFor, state, create, refused } = await withNotes(new Set(['closeProject', 'removeProject']))
  await create()
  await expect(labs.close(id, clientFor)).rejects.toMatchObject({ status: 409 })
  await expect(labs.remove(id, clientFor)).rejects.toMatchObject({ status: 409 })
  expect([state(), (await labs.lab(id)).isOpen]).toEqual(['open', true])
  refused.delete('closeProject')
  await labs.close(id, clientFor)
  await expect(labs.remove(id, clientFor)).rejects.toMatchObject({ status: 409 })
  expect(state()).toBe('closed')
  await labs.open(id, clientFor)
  expect(state()).toBe('open')
})

test('a lab that could not be made can be made later', async () => {
  const { state, create, refused } = await withNotes(new Set(['openProject']))
  await expect(create()).rejects.toMatchObject({ status: 409 })
  expect(state()).toBe('closed')
  refused.clear()
  await create()
  expect(state()).toBe('open')
})

test('an open lab is closed before it is moved, and is open again after it', async () => {
  const { labs, clientFor, state, create } = await withNotes()
  await create()
  const moving = await labs.lifecycle.withClosedLab(
    id,
    clientFor,
    () => {},
    async ({ isOpen }) => [state(), isOpen],
  )
  expect([moving, state()]).toEqual([['moving', false], 'open'])
})

test('a lab does not change its state without a transition', () => {
  const states = new LabStates()
  states.move(id, 'open')
  expect(() => states.move(id, 'move')).toThrow('A project that is opening has no transition "move"')
  expect(states.of(id)).toBe('opening')
})
