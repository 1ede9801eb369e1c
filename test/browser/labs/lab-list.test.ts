import { expect, test, vi } from 'vitest'
import { LabList } from '../../../runtime/browser/labs/lab-list.ts'
import type { FeedLine, Patchbay } from '../../../src/client/patchbay.ts'

const project_id = '11111111-2222-4333-8444-555555555555'
const lab = { project_id, name: 'Campus', revision: 1 }

test('a lab is counted once for the events of its nodes that come together, and no other lab is', async () => {
  vi.useFakeTimers()
  const over = new AbortController()
  const asked: unknown[] = []
  const client = {
    async *feed(): AsyncGenerator<FeedLine> {
      yield { action: 'ping', event: {} }
      for (let node = 0; node < 3; node++) yield { action: 'node.updated', event: { project_id } }
      yield { action: 'node.updated', event: { project_id: 'of another service' } }
    },
    async call(name: string, options: { params?: unknown } = {}) {
      if (name === 'GET /v2/projects') return [lab]
      asked.push(name, options.params)
      return { nodes: 3, segments: 1, running: 2, links: 2, drawings: 0, snapshots: 0 }
    },
  }
  const list = new LabList(client as unknown as Patchbay)
  const followed = list.follow(over.signal)
  await vi.advanceTimersByTimeAsync(1500)
  over.abort()
  await followed
  vi.useRealTimers()
  expect(asked).toEqual(['GET /v2/projects/{project_id}/stats', { project_id }])
  expect(list.counts.get(project_id)).toMatchObject({ running: 2 })
})
