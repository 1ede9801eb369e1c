import { expect, test } from 'vitest'
import { LabStates } from '../../../src/labs/lab-states.ts'
import { conflict } from '../../../src/lib/errors/api-error.ts'
import { labsInMemory, MemoryCompute, overriding } from '../../support/memory-compute.ts'

const id = '6b1f7c1e-9d0b-4b7c-8f3a-2f5d9c0e7a41'
type Operation = 'open' | 'close' | 'remove'

/** Labs, and agents that note the state of the lab at each operation on its project. Those in `refused` fail. */
async function withNotes(refused = new Set<Operation>()) {
  const labs = await labsInMemory(new MemoryCompute())
  const state = () => labs.parts.states.of(id)
  const noted: string[] = []
  const agentFor = (computeId: string) => {
    const its = labs.computes.agent(computeId)
    const noting =
      <Given extends readonly unknown[], Result>(operation: Operation, run: (...given: Given) => Promise<Result>) =>
      async (...given: Given) => {
        noted.push(`${operation} while ${state()}`)
        if (refused.has(operation)) throw conflict('The compute refuses')
        return run(...given)
      }
    const { create, close, remove } = its.projects
    const projects = { create: noting('open', create), close: noting('close', close), remove: noting('remove', remove) }
    return overriding(its, { projects })
  }
  const create = () => labs.creation.create({ project_id: id, name: 'lab', compute_id: 'local' }, agentFor)
  return { labs, agentFor, state, create, noted, refused }
}

test('a lab is opening, closing and deleting while its projects are opened, closed and removed', async () => {
  const { labs, agentFor, state, create, noted } = await withNotes()
  await create()
  expect(state()).toBe('open')
  await labs.lifecycle.close(id, agentFor)
  expect(state()).toBe('closed')
  await labs.lifecycle.open(id, agentFor)
  expect(state()).toBe('open')
  await labs.lifecycle.remove(id, agentFor)
  expect(noted).toEqual(['open while opening', 'close while closing', 'open while opening', 'remove while deleting'])
  await create()
  expect(state()).toBe('open')
})

test('a lab whose compute refuses is as before, and the next attempt may do it', async () => {
  const { labs, agentFor, state, create, refused } = await withNotes(new Set(['close', 'remove']))
  await create()
  await expect(labs.lifecycle.close(id, agentFor)).rejects.toMatchObject({ status: 409 })
  await expect(labs.lifecycle.remove(id, agentFor)).rejects.toMatchObject({ status: 409 })
  expect([state(), (await labs.lab(id)).isOpen]).toEqual(['open', true])
  refused.delete('close')
  await labs.lifecycle.close(id, agentFor)
  await expect(labs.lifecycle.remove(id, agentFor)).rejects.toMatchObject({ status: 409 })
  expect(state()).toBe('closed')
  await labs.lifecycle.open(id, agentFor)
  expect(state()).toBe('open')
})

test('a lab that could not be made can be made later', async () => {
  const { state, create, refused } = await withNotes(new Set(['open']))
  await expect(create()).rejects.toMatchObject({ status: 409 })
  expect(state()).toBe('closed')
  refused.clear()
  await create()
  expect(state()).toBe('open')
})

test('an open lab is closed before it is moved, and is open again after it', async () => {
  const { labs, agentFor, state, create } = await withNotes()
  await create()
  const moving = await labs.lifecycle.withClosedLab(
    id,
    agentFor,
    () => {},
    async ({ isOpen }) => [state(), isOpen],
  )
  expect([moving, state()]).toEqual([['moving', false], 'open'])
})

test('a lab that does not close for its move stays open, and no event says that it was opened', async () => {
  const { labs, agentFor, state, create } = await withNotes(new Set(['close']))
  await create()
  const actions: string[] = []
  labs.registry.listen(({ action }) => void actions.push(action))
  const moving = labs.lifecycle.withClosedLab(
    id,
    agentFor,
    () => {},
    async () => {},
  )
  await expect(moving).rejects.toMatchObject({ status: 409 })
  expect([state(), actions]).toEqual(['open', []])
})

test('a lab does not change its state without a transition', () => {
  const states = new LabStates()
  states.move(id, 'open')
  expect(() => states.move(id, 'move')).toThrow('A project that is opening has no transition "move"')
  expect(states.of(id)).toBe('opening')
})
