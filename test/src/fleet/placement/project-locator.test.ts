import { expect, onTestFinished, test, vi } from 'vitest'
import type { Member } from '../../../../src/fleet/members/members.ts'
import { ProjectLocator } from '../../../../src/fleet/placement/project-locator.ts'
import { MemoryPlacements } from '../../../support/memory-placements.ts'

const id = '10000000-0000-4000-8000-000000000000'

/** A connected compute, whose answer to the question for a project is this. */
const member = (name: string, get: () => Promise<unknown>) =>
  ({ id: name, name, isConnected: true, agentFor: () => ({ projects: { get } }) }) as unknown as Member

test('silent computes delay the search for a project for seconds only', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const silent = Array.from({ length: 12 }, (_, it) => member(`silent ${it}`, () => new Promise(() => {})))
  const all = [...silent, member('has it', async () => ({ status: 'opened' }))]
  const members = { all: async () => all, find: () => undefined, watch: () => () => {} }
  let found: Member | undefined
  void Promise.resolve(new ProjectLocator(members, new MemoryPlacements()).locate(id)).then((it) => {
    found = it
  })
  await vi.advanceTimersByTimeAsync(6000)
  expect(found?.name).toBe('has it')
})
