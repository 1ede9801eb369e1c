import { expect, onTestFinished, test, vi } from 'vitest'
import { ClassLabs } from '../../../runtime/browser/classes/class-labs.ts'
import type { AnyNode, LabNode, LabProject, Patchbay, ServiceLine } from '../../../src/client/patchbay.ts'

const project_id = '11111111-2222-4333-8444-555555555555'
const lab = {
  project_id,
  name: 'net-ada',
  revision: 1,
  status: 'opened',
  class: { name: 'net', student: 'ada' },
} as LabProject
const other = { ...lab, project_id: '2', class: { name: 'another', student: 'ada' } }
const node = { node_id: 'n1', project_id, name: 'PC1', node_type: 'pc', status: 'stopped' } as LabNode
const began: ServiceLine = { action: 'ping', event: { cpu_usage_percent: 0, memory_usage_percent: 0 } }

/** The labs of the class `net`, which hear `lines`; what was read of them since. */
const labsThatHear = (...lines: readonly ServiceLine[]) => labsOf('net', ...lines)

/** As `labsThatHear`, of the class with a name. */
async function labsOf(className: string, ...lines: readonly ServiceLine[]) {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const over = new AbortController()
  const read: string[] = []
  let go = (): void => {}
  const isRead = new Promise<void>((resolve) => {
    go = resolve
  })
  const client = {
    async *feed(): AsyncGenerator<ServiceLine> {
      yield began
      await isRead
      yield* lines
      await new Promise(() => {})
    },
    async call(name: string) {
      if (name === 'GET /v2/projects') return [lab, other]
      read.push(name)
      return name.endsWith('nodes') ? [node] : []
    },
  }
  const labs = new ClassLabs(client as unknown as Patchbay, className)
  void labs.follow(over.signal)
  await vi.advanceTimersByTimeAsync(1)
  const before = read.splice(0)
  go()
  await vi.advanceTimersByTimeAsync(10_000)
  over.abort()
  return { labs, before, read }
}

test('the labs of the class are read once, and nothing while nothing happens', async () => {
  const { labs, before, read } = await labsThatHear()
  expect(labs.labs.ids.value).toEqual([project_id])
  expect(before).toHaveLength(3)
  expect(read).toEqual([])
})

test('the case of the name of a class does not matter', async () => {
  const { labs } = await labsOf('NET', { action: 'project.updated', event: { ...lab, revision: 2 } })
  expect(labs.labs.get(project_id)?.revision).toBe(2)
})

test('who comes is shown without another reading', async () => {
  const present = ['ada']
  const { labs, read } = await labsThatHear({ action: 'project.updated', event: { ...lab, present }, project_id })
  expect(labs.labs.get(project_id)?.present).toEqual(present)
  expect(read).toEqual([])
})

test('a node that starts is counted and told at once, and the map is read once for all changes', async () => {
  const event = { ...node, status: 'started' } as unknown as AnyNode
  const line: ServiceLine = { action: 'node.updated', event, project_id }
  const { labs, read } = await labsThatHear(line, line, { action: 'project.updated', event: { ...lab, revision: 2 } })
  expect(labs.events.get(project_id)?.text).toBe('PC1 started')
  expect(read).toHaveLength(3)
})

test('a student who is added has a card, and one of another class has none', async () => {
  const added = { ...lab, project_id: '3', class: { name: 'net', student: 'grace' } }
  const { labs } = await labsThatHear(
    { action: 'project.created', event: added },
    { action: 'project.updated', event: other },
    { action: 'project.deleted', event: lab },
  )
  expect(labs.labs.ids.value).toEqual(['3'])
})

test('who comes back to a wall is told the same last event, unless the lab was changed meanwhile', async () => {
  const event = { ...node, status: 'started' } as unknown as AnyNode
  await labsThatHear({ action: 'node.updated', event, project_id })
  expect((await labsThatHear()).labs.events.get(project_id)?.text).toBe('PC1 started')
  const changed_at = '2026-01-01T00:00:00Z'
  await labsThatHear({ action: 'project.updated', event: { ...lab, changed_at }, project_id })
  expect((await labsThatHear()).labs.events.get(project_id)).toBeUndefined()
})
