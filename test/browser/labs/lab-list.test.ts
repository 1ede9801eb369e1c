import { expect, onTestFinished, test, vi } from 'vitest'
import { LabList } from '../../../runtime/browser/labs/lab-list.ts'
import type { AnyNode, Compute, LabProject, Patchbay, ServiceLine } from '../../../src/client/patchbay.ts'

const project_id = '11111111-2222-4333-8444-555555555555'
const lab = { project_id, name: 'Campus', revision: 1, status: 'opened' } as LabProject
const closed = { ...lab, project_id: '21111111-2222-4333-8444-555555555555', status: 'closed' } as LabProject
const counts = { nodes: 3, segments: 1, links: 2, running: 2, worst_verdict: 'ok' } as const
const began: ServiceLine = { action: 'ping', event: { cpu_usage_percent: 0, memory_usage_percent: 0 } }
const nodeOf = (project_id: string): ServiceLine => ({
  action: 'node.updated',
  event: { project_id } as AnyNode,
  seq: 1,
  project_id,
})

/** A list of `labs` that hears `lines`, after two seconds. */
async function listOf(labs: readonly LabProject[], lines: readonly ServiceLine[], now: LabProject) {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const over = new AbortController()
  const read: unknown[] = []
  const client = {
    async *feed(): AsyncGenerator<ServiceLine> {
      yield* [began, ...lines]
    },
    async call(name: string, options: { params?: { project_id: string } } = {}) {
      if (name === 'GET /v2/projects') return labs
      if (name === 'GET /v2/computes') return [{ compute_id: 'local', name: 'here' }]
      read.push(options.params?.project_id)
      return now
    },
  }
  const list = new LabList(client as unknown as Patchbay)
  const followed = list.follow(over.signal)
  await vi.advanceTimersByTimeAsync(1500)
  over.abort()
  await followed
  return { list, read }
}

test('an open lab is read with its links, and once again for events of its nodes that come together', async () => {
  const events = [nodeOf(project_id), nodeOf(project_id), nodeOf('of another service')]
  const { list, read } = await listOf([lab], events, { ...lab, counts })
  expect(read).toEqual([project_id, project_id])
  expect(list.labs.get(project_id)?.counts).toEqual(counts)
})

test('a closed lab whose counts are in the list is not read', async () => {
  const { read } = await listOf([{ ...closed, counts: { ...counts, running: 0 } }], [], closed)
  expect(read).toEqual([])
})

test('a lab of which the list has no counts is read', async () => {
  const { list } = await listOf([closed], [], { ...closed, counts })
  expect(list.labs.get(closed.project_id)?.counts).toEqual(counts)
})

test('an answer that is older than an event changes nothing', async () => {
  const { list } = await listOf(
    [lab],
    [{ action: 'project.updated', event: { ...lab, name: 'New', revision: 3 } }],
    lab,
  )
  expect(list.labs.get(project_id)?.name).toBe('New')
})

test('a renamed compute has its new name', async () => {
  const { list } = await listOf(
    [lab],
    [{ action: 'compute.updated', event: { compute_id: 'local', name: 'there' } as Compute }],
    lab,
  )
  expect(list.computes.get('local')?.name).toBe('there')
})

test('labs are not read again while a slow service answers', async () => {
  const other = { ...lab, project_id: '31111111-2222-4333-8444-555555555555' }
  const answers: (() => void)[] = []
  const read: unknown[] = []
  const over = new AbortController()
  const client = {
    async *feed(): AsyncGenerator<ServiceLine> {
      yield began
      await new Promise<void>((resolve) => over.signal.addEventListener('abort', () => resolve()))
    },
    async call(name: string, options: { params?: { project_id: string } } = {}) {
      if (name === 'GET /v2/projects') return [lab, other, closed]
      if (name === 'GET /v2/computes') return []
      read.push(options.params?.project_id)
      await new Promise<void>((answer) => answers.push(answer))
      return [lab, other, closed].find((it) => it.project_id === options.params?.project_id)
    },
  }
  const list = new LabList(client as unknown as Patchbay)
  const followed = list.follow(over.signal)
  await vi.waitFor(() => expect(read).toHaveLength(1))
  await list.readLinks()
  for (let count = 1; count <= 3; count++) {
    await vi.waitFor(() => expect(answers).toHaveLength(count))
    answers.at(-1)?.()
  }
  // The first reading asks for what the list lacks of a closed lab, too, and a later one does not.
  await vi.waitFor(() => {
    void list.readLinks()
    expect(read).toHaveLength(4)
  })
  expect(read).toEqual([project_id, other.project_id, closed.project_id, project_id])
  over.abort()
  await followed
})
