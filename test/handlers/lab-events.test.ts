import { Check } from '@sinclair/typebox/value'
import { expect, expectTypeOf, test } from 'vitest'
import { LabFeedLine } from '../../src/endpoints/v2/feed-lines.ts'
import type { Lab } from '../../src/labs/lab/lab.ts'
import { LabEvent } from '../../src/model/lab/event.ts'
import type { LabLink } from '../../src/model/lab/link.ts'
import type { LabNode } from '../../src/model/lab/node.ts'
import { body, del, post, put, send } from '../support/api.ts'
import { declaredActions } from '../support/declared-actions.ts'
import { type Line, openFeed } from '../support/feed.ts'

const labs = '/v2/projects'

test('every kind of change of a lab makes an event as it is declared', async () => {
  const name = `events-${crypto.randomUUID().slice(0, 8)}`
  const at = `${labs}/${name}`
  await post(labs, { name })
  const feed = await openFeed(`${at}/notifications`)
  expect(await feed.line()).toMatchObject({ action: 'ping' })
  const seen = new Set<string>()
  const until = async (isLast: (line: Line) => boolean) => {
    for (;;) {
      const line = await feed.next()
      expect(Check(LabFeedLine, line), JSON.stringify(line)).toBe(true)
      seen.add(line.action)
      if (isLast(line)) return
    }
  }
  const jobIsDone = (does: string) =>
    until(({ action, event }) => action === 'job.updated' && event.action === does && event.status === 'done')

  for (const node of ['PC1', 'PC2']) await post(`${at}/nodes`, { name: node, node_type: 'pc' })
  await put(`${at}/nodes/PC1`, { x: 9, label: { text: 'left' }, labels: { site: 'a' } })
  const { link_id } = await body<LabLink>(post(`${at}/links`, { nodes: ['PC1:e0', 'PC2:e0'] }))
  await put(`${at}/links/${link_id}`, { filters: { delay: [5] } })
  const { drawing_id } = await body<{ drawing_id: string }>(post(`${at}/drawings`, { svg: '<svg/>' }))
  await put(`${at}/drawings/${drawing_id}`, { x: 1 })
  await post(`${at}/presence`, { selection: ['PC1'] })
  await put(at, { zoom: 50 })
  const { job_id } = await body<{ job_id: string }>(post(`${at}/jobs`, { action: 'start' }))
  await jobIsDone('start')
  await del(`/v2/jobs/${job_id}`)
  // Their states are read for whoever reads them.
  await send(`${at}/links`)
  const document = `lab: ${name}\nnodes: { PC1: { kind: pc }, PC2: { kind: pc }, PC3: { kind: pc } }\n`
  await put(`${at}/topology?take_over=true`, { document })
  await jobIsDone('apply')
  const { snapshot_id } = await body<{ snapshot_id: string }>(post(`${at}/snapshots`, { name: 'before' }))
  await del(`${at}/links/${link_id}`)
  await del(`${at}/drawings/${drawing_id}`)
  await del(`${at}/nodes/PC3`)
  expect((await post(`${at}/undo`)).status).toBe(200)
  expect((await post(`${at}/redo`)).status).toBe(200)
  await post(`${at}/snapshots/${snapshot_id}/restore`)
  await del(`${at}/snapshots/${snapshot_id}`)
  await post(`${at}/close`)
  await post(`${at}/open`)
  await del(at)
  await until(({ action }) => action === 'project.deleted')
  // A feed begins after the creation, and nothing has failed.
  const others = ['project.created', 'log.error', 'log.warning', 'log.info']
  expect(declaredActions(LabEvent).filter((action) => !seen.has(action))).toEqual(others)
})

test('labs emit nothing else', () => {
  expectTypeOf<Lab['emit']>().parameter(0).toEqualTypeOf<LabEvent>()
  const nodeOf = ({ action, event }: LabEvent) => (action === 'node.updated' ? event : undefined)
  expectTypeOf(nodeOf).returns.toEqualTypeOf<LabNode | undefined>()
})
