import { expect, test } from 'vitest'
import { type LabReading, LabStore } from '../../../runtime/browser/state/lab-store.ts'
import type {
  LabJob,
  LabLine,
  LabLink,
  LabLinkState,
  LabNode,
  LabProject,
  LabSnapshot,
} from '../../../src/client/patchbay.ts'

const node = (node_id: string, more: Partial<LabNode> = {}) => ({ node_id, name: node_id, ...more }) as LabNode
const link = (link_id: string) => ({ link_id, nodes: [], verdict: null, filters: { delay: [5] } }) as unknown as LabLink
const project = { project_id: 'p', name: 'lab', status: 'opened' } as LabProject
const snapshot = (more: Partial<LabReading> = {}): LabReading => ({
  ...{ project, nodes: [], links: [], drawings: [], jobs: [], snapshots: [] },
  ...more,
})
const traffic = (frames_per_s: number) => ({ frames: 1, bytes: 60, dropped: 0, frames_per_s, bits_per_s: 0 })

test('events after a snapshot change it', () => {
  const store = new LabStore()
  store.reset(snapshot({ nodes: [node('a'), node('b')] }))
  store.apply({ action: 'node.updated', event: node('a', { status: 'started' }), seq: 4 })
  store.apply({ action: 'node.created', event: node('c'), seq: 5 })
  store.apply({ action: 'node.deleted', event: node('b'), seq: 6 })
  expect(store.nodes.values().map(({ node_id, status }) => [node_id, status])).toEqual([
    ['a', 'started'],
    ['c', undefined],
  ])
  expect(store.seq).toBe(6)
})

test('events that the snapshot already has change nothing', () => {
  const store = new LabStore()
  store.reset(snapshot({ nodes: [node('a')] }))
  store.apply({ action: 'node.created', event: node('a'), seq: 1 })
  store.apply({ action: 'node.deleted', event: node('gone'), seq: 2 })
  store.apply({ action: 'link.state', event: { link_id: 'gone' } as LabLinkState, seq: 3 })
  expect(store.nodes.ids.value).toEqual(['a'])
})

test('the state of a link leaves its settings, and its rates are kept for a minute', () => {
  const store = new LabStore()
  store.reset(snapshot({ links: [link('l')] }))
  for (let second = 0; second < 100; second++) {
    const event: LabLinkState = {
      link_id: 'l',
      verdict: 'ok',
      verdict_reason: null,
      traffic_ab: traffic(second),
      traffic_ba: traffic(0),
    }
    store.apply({ action: 'link.state', event, seq: second })
  }
  expect(store.links.get('l')).toMatchObject({ verdict: 'ok', filters: { delay: [5] } })
  const rates = store.rates.get('l') ?? []
  expect([rates.length, rates.at(-1)]).toEqual([60, { ab: 99, ba: 0 }])
  store.apply({ action: 'link.deleted', event: link('l') })
  expect(store.rates.values()).toEqual([])
})

test('the end of a lab is known, and that it was opened again', () => {
  const store = new LabStore()
  store.reset(snapshot())
  store.apply({ action: 'project.closed', event: { ...project, status: 'closed' } })
  expect(store.end.value).toBe('closed')
  store.apply({ action: 'project.opened', event: project })
  expect(store.end.value).toBe(undefined)
})

test('selections of others come and go, and messages of the service are shown', () => {
  const said: string[] = []
  const store = new LabStore((kind, message) => said.push(`${kind}: ${message}`))
  const presence = { name: 'anna', client: 'left', selection: ['a'], present: true }
  store.apply({ action: 'presence', event: presence })
  expect(store.presence.values()).toEqual([presence])
  store.apply({ action: 'presence', event: { ...presence, present: false } })
  expect(store.presence.values()).toEqual([])
  // Who left while the connection was lost is not in the next answer.
  store.apply({ action: 'presence', event: presence })
  const other = { ...presence, name: 'ben', client: 'right' }
  store.meetAll([other])
  expect(store.presence.values()).toEqual([other])
  store.apply({ action: 'log.warning', event: { message: 'the disk is nearly full' } })
  store.apply({ action: 'something.new', event: {} } as unknown as LabLine)
  expect(said).toEqual(['warning: the disk is nearly full'])
})

test('selections of other users have their names, each user once also with two windows', () => {
  const store = new LabStore()
  const presence = { name: 'anna', client: 'left', selection: ['node', 'link'], present: true }
  store.apply({ action: 'presence', event: presence })
  store.apply({ action: 'presence', event: { ...presence, client: 'right' } })
  store.apply({ action: 'presence', event: { ...presence, name: 'ben', client: 'third', selection: ['link'] } })
  const names = (id: string) => [...(store.selectedBy.value.get(id) ?? [])]
  expect(['node', 'link', 'other'].map(names)).toEqual([['anna'], ['anna', 'ben'], []])
})

test('events are stored as sentences with the name of the caller', () => {
  const store = new LabStore()
  store.reset(snapshot({ nodes: [node('PC1'), node('PC2')] }))
  const ends = ['PC1', 'PC2'].map((node_id) => ({ node_id, adapter_number: 0, port_number: 0 }))
  store.apply({ action: 'node.updated', event: node('PC1', { status: 'started' }), by: 'anna' })
  store.apply({ action: 'link.deleted', event: { ...link('l'), nodes: ends } })
  store.apply({ action: 'ping', event: { cpu_usage_percent: 0, memory_usage_percent: 0 } })
  store.apply({ action: 'snapshot.created', event: { snapshot_id: 's', name: 'before' } as LabSnapshot })
  expect(store.events.value.map(({ text, by }) => [text, by])).toEqual([
    ['PC1 started', 'anna'],
    ['Link PC1 – PC2 deleted', undefined],
    ['Snapshot “before” created', undefined],
  ])
  expect(store.snapshots.ids.value).toEqual(['s'])
  for (let count = 0; count < 300; count++) store.apply({ action: 'node.updated', event: node('PC2') })
  expect(store.events.value.length).toBe(200)
})

test('a step of a job leaves the job as it is, and is not a sentence', () => {
  const store = new LabStore()
  const job = { job_id: 'j', project_id: 'p', action: 'apply', status: 'running', total: 2, done: 0 } as LabJob
  store.reset(snapshot({ jobs: [job] }))
  const step = { do: 'create', what: 'node', name: 'PC1', how: 'live', state: 'done', reason: null } as const
  store.apply({ action: 'job.step', event: { job_id: 'j', project_id: 'p', ...step } })
  expect(store.jobs.values()).toEqual([job])
  expect(store.events.value).toEqual([])
})

test('who has a lab open hears that it was put back, and by whom', () => {
  const heard: string[] = []
  const store = new LabStore((_, message) => heard.push(message))
  const start = { snapshot_id: 's', name: 'Start of the class' } as LabSnapshot
  store.reset(snapshot())
  store.apply({ action: 'snapshot.restored', event: start, by: 'Teacher' })
  store.apply({ action: 'snapshot.restored', event: { ...start, snapshot_id: 't', name: 'mine' } })
  expect(heard).toEqual(['The lab was put back to “Start of the class” by Teacher.', 'The lab was put back to “mine”.'])
  expect(store.snapshots.get('s')?.name).toBe('Start of the class')
})
