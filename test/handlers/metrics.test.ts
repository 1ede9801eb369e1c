import { expect, inject, test } from 'vitest'
import { nodeKinds } from '../../src/model/kinds/node.ts'
import { del, newPc, newProject, notByWorker, post, send } from '../support/api.ts'
import { type Family, figure, parseExposition } from '../support/exposition.ts'
import { openSocketFeed } from '../support/feed.ts'
import { provided, testWith } from '../support/test-with.ts'

/** The figures of a gateway are its own: what a host tells is not asked of it. */
const ofHost = testWith(provided(!inject('isWorker'), 'a gateway has no nodes and no process of its own to count'))

async function scrape(): Promise<Map<string, Family>> {
  const answer = await send('/metrics')
  expect(answer.status).toBe(200)
  return parseExposition(await answer.text())
}

const requests = (families: Map<string, Family>, method: string, route: string, status: string): number =>
  figure(families, 'patchbay_http_requests_total', { method, route, status })

test('the metrics are text in the format of their media type', async () => {
  const answer = await send('/metrics')
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  expect(answer.headers.get('cache-control')).toBe('no-store')
  const families = parseExposition(await answer.text())
  for (const [name, { help, type }] of families) {
    expect([name, help]).toEqual([name, expect.stringMatching(/\.$/)])
    // What the linter of Prometheus asks of names.
    expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter'])
  }
  if (!inject('isWorker'))
    expect(families.get('patchbay_info')?.samples).toEqual([
      { name: 'patchbay_info', labels: { version: expect.stringMatching(/^\d+\.\d+\.\d+/) }, value: 1 },
    ])
})

// Of what is about one project, the isolate that answered it counts.
notByWorker('counts go up with requests, under the template of their route', async () => {
  const project = await newProject()
  const route = '/v2/compute/projects/{project_id}/files'
  const before = await scrape()
  for (let n = 0; n < 3; n++) await send(`${project.v2}/files`)
  await send(`${project.v2.replace(project.id, crypto.randomUUID())}/files`)
  await send(`${project.v2}/files`, { method: 'HEAD' })
  const after = await scrape()
  const grown = (method: string, status: string) =>
    requests(after, method, route, status) - requests(before, method, route, status)
  // Other tests ask the same service at the same time.
  expect(grown('GET', '2xx')).toBeGreaterThanOrEqual(3)
  expect(grown('GET', '4xx')).toBeGreaterThanOrEqual(1)
  expect(grown('HEAD', '2xx')).toBeGreaterThanOrEqual(1)
  expect(figure(after, 'patchbay_http_requests_in_flight')).toBeGreaterThanOrEqual(1)
  const scrapes = (families: Map<string, Family>) => requests(families, 'GET', '/metrics', '2xx')
  expect(scrapes(after)).toBeGreaterThan(scrapes(before))
})

test('requests to unknown paths are counted without a route, and add no series', async () => {
  const before = await scrape()
  const paths = ['/nowhere', '/metrics/more', `/${crypto.randomUUID()}`]
  for (const path of paths) expect((await send(path)).status).toBe(404)
  expect((await send('/metrics', { method: 'POST' })).status).toBe(405)
  expect((await send('/metrics', { method: 'PROPFIND' })).status).toBe(405)
  const after = await scrape()
  expect(requests(after, 'GET', '', '4xx') - requests(before, 'GET', '', '4xx')).toBeGreaterThanOrEqual(3)
  expect(requests(after, 'POST', '', '4xx')).toBeGreaterThan(requests(before, 'POST', '', '4xx'))
  expect(requests(after, 'other', '', '4xx')).toBeGreaterThan(requests(before, 'other', '', '4xx'))
  const labels = after.get('patchbay_http_requests_total')?.samples.map((it) => it.labels) ?? []
  expect(labels.every(({ route }) => route === '' || /^\/[\w{}./-]*$/.test(route ?? ''))).toBe(true)
  expect(labels.some(({ route }) => paths.includes(route ?? ''))).toBe(false)
  expect(labels.some(({ method }) => method === 'PROPFIND')).toBe(false)
})

test('the durations of a route are as many as its requests', async () => {
  await send('/v2/version')
  const families = await scrape()
  const route = '/v2/version'
  const count = figure(families, 'patchbay_http_request_duration_seconds_count', { route })
  const asked = families.get('patchbay_http_requests_total')?.samples.filter((it) => it.labels.route === route) ?? []
  expect(count).toBe(asked.reduce((sum, { value }) => sum + value, 0))
  expect(figure(families, 'patchbay_http_request_duration_seconds_bucket', { route, le: '+Inf' })).toBe(count)
  expect(figure(families, 'patchbay_http_request_duration_seconds_sum', { route })).toBeGreaterThanOrEqual(0)
})

ofHost('nodes are counted by kind and status, and projects, ports, events and the keeper with them', async () => {
  const project = await newProject()
  const pcs = [await newPc(project), await newPc(project), await newPc(project)]
  await post(`${pcs[0]?.path}/start`)
  const families = await scrape()
  const nodes = (status: string) => figure(families, 'patchbay_nodes', { kind: 'pc', status })
  expect(nodes('started')).toBeGreaterThanOrEqual(1)
  expect(nodes('stopped')).toBeGreaterThanOrEqual(2)
  // Tests of other files have nodes of the same service.
  expect(nodes('suspended')).toBeGreaterThanOrEqual(0)
  expect(families.get('patchbay_nodes')?.samples).toHaveLength(nodeKinds.length * 3)
  expect(figure(families, 'patchbay_projects_open')).toBeGreaterThanOrEqual(1)
  expect(figure(families, 'patchbay_keeper_up')).toBe(1)
  expect(figure(families, 'patchbay_ports_used', { pool: 'console' })).toBeGreaterThanOrEqual(3)
  expect(figure(families, 'patchbay_ports', { pool: 'udp' })).toBe(500)
  expect(figure(families, 'patchbay_events_emitted_total')).toBeGreaterThanOrEqual(4)
  await del(project.v2)
})

notByWorker('an open websocket is counted as an upgrade, and as a feed', async () => {
  const route = '/v2/compute/notifications/ws'
  const before = requests(await scrape(), 'GET', route, '1xx')
  const feed = await openSocketFeed(route)
  await feed.line()
  const families = await scrape()
  expect(requests(families, 'GET', route, '1xx')).toBeGreaterThan(before)
  expect(requests(families, 'GET', route, '2xx')).toBe(0)
  if (!inject('isWorker')) expect(figure(families, 'patchbay_feeds_open')).toBeGreaterThanOrEqual(1)
})

ofHost('the process of the service tells what it uses', async () => {
  const families = await scrape()
  const now = Date.now() / 1000
  expect(figure(families, 'process_resident_memory_bytes')).toBeGreaterThan(10 << 20)
  expect(figure(families, 'process_cpu_seconds_total')).toBeGreaterThan(0)
  expect(figure(families, 'process_open_fds')).toBeGreaterThan(3)
  expect(now - figure(families, 'process_start_time_seconds')).toBeGreaterThan(0)
  expect(now - figure(families, 'process_start_time_seconds')).toBeLessThan(3600)
  expect(figure(families, 'patchbay_event_loop_busy_seconds_total')).toBeGreaterThan(0)
})

notByWorker('a foreign web page does not get the figures', async () => {
  expect((await send('/metrics', { headers: { origin: 'https://evil.example' } })).status).toBe(403)
})
