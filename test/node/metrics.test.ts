import { expect, test } from 'vitest'
import { KeeperLink } from '../../runtime/node/engine/nodes/keeper-link.ts'
import { hostMetrics } from '../../runtime/node/service/metrics/metrics.ts'
import { freshDirectory } from '../support/directory.ts'
import { type Family, figure, parseExposition } from '../support/exposition.ts'
import { TestService } from '../support/service.ts'

const scrape = async (service: TestService): Promise<Map<string, Family>> =>
  parseExposition(await (await service.fetch('/metrics')).text())

test('the metrics of a lab follow its changes', async () => {
  const service = await TestService.startAlone({ 'pc.engine': 'embedded' })
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  const project = `/v2/compute/projects/${project_id}`
  const expected = async (figures: Record<string, number>) => {
    const families = await scrape(service)
    const read = Object.keys(figures).map((key) => {
      const [name = '', label, value = ''] = key.split(/[ =]/)
      const labels = name === 'patchbay_nodes' ? { kind: 'pc' } : {}
      return [key, figure(families, name, label === undefined ? labels : { ...labels, [label]: value })]
    })
    expect(Object.fromEntries(read)).toEqual(figures)
  }
  await expected({
    patchbay_projects_open: 1,
    'patchbay_nodes status=stopped': 0,
    'patchbay_ports pool=console': 60,
    'patchbay_ports pool=udp': 80,
    'patchbay_ports_used pool=console': 0,
    'patchbay_ports_used pool=udp': 0,
    patchbay_events_emitted_total: 0,
    patchbay_feeds_open: 0,
    patchbay_feed_resyncs_total: 0,
    patchbay_feed_events_dropped_total: 0,
  })
  const nodes: string[] = []
  for (const name of ['PC1', 'PC2', 'PC3']) {
    const { node_id } = await service.call<{ node_id: string }>('POST', `${project}/pc/nodes`, { name })
    nodes.push(`${project}/pc/nodes/${node_id}`)
  }
  await service.call('POST', `${nodes[0]}/start`)
  await service.call('POST', `${project}/ports/udp`, {})
  const feed = new AbortController()
  await service.fetch(`${project}/notifications?since=1`, { signal: feed.signal })
  await expected({
    'patchbay_nodes status=started': 1,
    'patchbay_nodes status=stopped': 2,
    'patchbay_nodes status=suspended': 0,
    'patchbay_ports_used pool=console': 3,
    patchbay_keeper_up: 1,
    patchbay_feeds_open: 1,
    patchbay_feed_resyncs_total: 1,
  })
  expect(figure(await scrape(service), 'patchbay_events_emitted_total')).toBeGreaterThanOrEqual(4)
  expect(figure(await scrape(service), 'patchbay_ports_used', { pool: 'udp' })).toBeGreaterThanOrEqual(1)
  feed.abort()
  await expect.poll(async () => figure(await scrape(service), 'patchbay_feeds_open')).toBe(0)
  await service.call('DELETE', project)
  await expected({
    patchbay_projects_open: 0,
    'patchbay_nodes status=started': 0,
    'patchbay_nodes status=stopped': 0,
    'patchbay_ports_used pool=console': 0,
    'patchbay_ports_used pool=udp': 0,
  })
})

test('an empty host only has the metrics of the process, and a keeper that has ended is reported', async () => {
  const families = await hostMetrics({
    version: '1.2.3',
    projects: { openCount: 0 },
    nodes: new Map(),
    events: { figures: { emitted: 0, feeds: 0, resyncs: 0, dropped: 0 } },
    ports: { used: () => [], size: () => 10 },
    keeper: { isUp: false, call: () => Promise.reject(new Error('there is no keeper')) },
  })
  const used = families.flatMap(({ name, samples }) =>
    name.startsWith('process_') || name.startsWith('patchbay_event_loop')
      ? []
      : samples.filter(({ value }) => value !== 0).map(({ labels, value }) => ({ name, labels, value })),
  )
  expect(used).toEqual([
    { name: 'patchbay_info', labels: { version: '1.2.3' }, value: 1 },
    { name: 'patchbay_ports', labels: { pool: 'console' }, value: 10 },
    { name: 'patchbay_ports', labels: { pool: 'udp' }, value: 10 },
  ])
})

test('a keeper counts from its first answer until its end', async () => {
  const quiet = () => {}
  const data = await freshDirectory()
  const keeper = new KeeperLink(data, { debug: quiet, info: quiet, warn: quiet, error: quiet })
  expect(keeper.isUp).toBe(false)
  await keeper.inventory()
  expect(keeper.isUp).toBe(true)
  await keeper.close({ stop: true })
  expect(keeper.isUp).toBe(false)
})
