import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { LabJob } from '../../../../src/model/lab/job.ts'
import type { LabNode } from '../../../../src/model/lab/node.ts'
import type { LabProject } from '../../../../src/model/lab/project.ts'
import { hangMs } from '../../../support/limits.ts'
import { TestService } from '../../../support/service.ts'

const lab = '/v2/projects/campus'

/** A service with an open lab of pcs, each with what is said of it. */
async function campus(pcs: Record<string, object>, settings: object = {}) {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  await service.call('POST', '/v2/projects', { name: 'Campus', ...settings })
  for (const [name, more] of Object.entries(pcs))
    await service.call('POST', `${lab}/nodes`, { name, node_type: 'pc', ...more })
  return service
}

const statuses = async (service: TestService) =>
  Object.fromEntries((await service.call<LabNode[]>('GET', `${lab}/nodes`)).map(({ name, status }) => [name, status]))

/** The job when it is over. */
async function ended(service: TestService, id: string): Promise<LabJob> {
  const get = () => service.call<LabJob>('GET', `/v2/jobs/${id}`)
  await expect.poll(async () => (await get()).status, { timeout: hangMs }).not.toBe('running')
  return get()
}

const begin = (service: TestService, body: object) => service.call<LabJob>('POST', `${lab}/jobs`, body)

/** A console pattern that no pc shows. */
const never = { console: 'no pc shows this', within_s: 1 }

/** The lines of a feed until one of them fits. */
async function linesUntil(feed: Response, fits: (line: { action: string; event: LabJob }) => boolean) {
  const lines: { action: string; event: LabJob }[] = []
  let text = ''
  const decoder = new TextDecoder()
  for await (const bytes of feed.body as ReadableStream<Uint8Array>) {
    text += decoder.decode(bytes, { stream: true })
    const whole = text.split('\n')
    text = whole.pop() ?? ''
    lines.push(...whole.map((line) => JSON.parse(line)))
    if (lines.some(fits)) break
  }
  return lines
}

describe('a job', () => {
  it('starts all nodes of a lab, and stops named ones', async () => {
    const service = await campus({ PC1: {}, PC2: {}, PC3: {} })
    const job = await begin(service, { action: 'start' })
    expect(job).toMatchObject({ status: 'running', total: 3 })
    expect(await ended(service, job.job_id)).toMatchObject({ status: 'done', done: 3, failed: 0, nodes: [] })
    await ended(service, (await begin(service, { action: 'stop', nodes: ['pc1', 'PC3'] })).job_id)
    expect(await statuses(service)).toEqual({ PC1: 'stopped', PC2: 'started', PC3: 'stopped' })
    expect((await service.call<LabJob[]>('GET', '/v2/jobs')).map(({ action }) => action)).toEqual(['start', 'stop'])
  })

  it('starts a node when the nodes in its `after` are ready', async () => {
    const service = await campus({
      PC1: { after: ['pc2'] },
      PC2: { after: ['PC3'], ready: { console: 'PC2> ' } },
      PC3: { ready: { console: 'PC3> ' } },
    })
    const feed = await service.fetch(`${lab}/notifications`)
    const { job_id } = await begin(service, { action: 'start' })
    const lines = await linesUntil(feed, ({ event }) => event.job_id === job_id && event.status === 'done')
    const started = lines.flatMap(({ action, event }) => {
      const node = event as unknown as LabNode
      return action === 'node.updated' && node.status === 'started' ? [node.name] : []
    })
    expect([...new Set(started)]).toEqual(['PC3', 'PC2', 'PC1'])
    expect(lines.filter(({ action }) => action === 'job.created')[0]?.event.nodes).toHaveLength(3)
  })

  it('goes on when a node fails, and skips the nodes after it, with the reasons', async () => {
    const service = await campus({ PC1: { ready: never }, PC2: { after: ['PC1'] }, PC3: { after: ['PC2'] }, PC4: {} })
    const { job_id } = await begin(service, { action: 'start' })
    const job = await ended(service, job_id)
    expect(job).toMatchObject({ status: 'failed', done: 1, failed: 1, skipped: 2 })
    expect(job.reason).toContain('PC1')
    expect(job.nodes.map(({ name, state }) => [name, state])).toEqual([
      ['PC1', 'failed'],
      ['PC2', 'skipped'],
      ['PC3', 'skipped'],
    ])
    expect(job.nodes[0]?.reason).toContain('did not show no pc shows this')
    expect(await statuses(service)).toEqual({ PC1: 'started', PC2: 'stopped', PC3: 'stopped', PC4: 'started' })
  })

  it('is refused when the `after` of nodes form a cycle, with their names', async () => {
    const service = await campus({ PC1: { after: ['PC2'] }, PC2: { after: ['PC3'] }, PC3: { after: ['PC2'] } })
    const answer = await service.fetch(`${lab}/nodes/start`, { method: 'POST' })
    expect(answer.status).toBe(400)
    expect((await answer.json()).message).toContain('PC2, PC3, PC2')
    expect(await service.call('GET', '/v2/jobs')).toEqual([])
  })

  it('is cancelled while it waits; started nodes keep running, and a second request forgets the job', async () => {
    const service = await campus({ PC1: { ready: { ...never, within_s: 3600 } }, PC2: { after: ['PC1'] } })
    const { job_id } = await begin(service, { action: 'start' })
    const state = async () => (await service.call<LabJob>('GET', `/v2/jobs/${job_id}`)).nodes.map((it) => it.state)
    await expect.poll(state, { timeout: hangMs }).toEqual(['unready', 'waiting'])
    await service.call('DELETE', `/v2/jobs/${job_id}`)
    expect(await ended(service, job_id)).toMatchObject({ status: 'cancelled', reason: 'PC1: A client cancelled it' })
    expect(await statuses(service)).toEqual({ PC1: 'started', PC2: 'stopped' })
    await service.call('DELETE', `/v2/jobs/${job_id}`)
    expect((await service.fetch(`/v2/jobs/${job_id}`)).status).toBe(404)
  })

  it('that starts nodes ends when all nodes are stopped, and when a snapshot is restored', async () => {
    const service = await campus({ PC1: { ready: { seconds: 3600 } }, PC2: { after: ['PC1'] } })
    const { snapshot_id } = await service.call('POST', `${lab}/snapshots`, { name: 'stopped' })
    for (const [path, reason] of [
      ['nodes/stop', 'All nodes were stopped'],
      [`snapshots/${snapshot_id}/restore`, 'A snapshot was restored'],
    ] as const) {
      const { job_id } = await begin(service, { action: 'start' })
      const state = async () => (await service.call<LabJob>('GET', `/v2/jobs/${job_id}`)).nodes.map((it) => it.state)
      await expect.poll(state, { timeout: hangMs }).toEqual(['unready', 'waiting'])
      await service.call('POST', `${lab}/${path}`)
      expect(await ended(service, job_id)).toMatchObject({ status: 'cancelled', reason: `PC1: ${reason}` })
      expect(await statuses(service)).toEqual({ PC1: 'stopped', PC2: 'stopped' })
    }
  })

  it('has its id in the answer to a start of all nodes, which is sent after all requests, or when all nodes are ready', async () => {
    const service = await campus({ PC1: { ready: { ...never, within_s: 3600 } }, PC2: {} })
    const asked = await service.fetch(`${lab}/nodes/start`, { method: 'POST' })
    expect(asked.status).toBe(204)
    const id = asked.headers.get('x-patchbay-job') ?? ''
    expect(await service.call('GET', `/v2/jobs/${id}`)).toMatchObject({ status: 'running', done: 1 })
    await service.call('PUT', `${lab}/nodes/PC1`, { ready: never })
    const ready = await service.fetch(`${lab}/nodes/start?wait=ready`, { method: 'POST' })
    expect([ready.status, ready.headers.get('x-patchbay-error')]).toEqual([409, 'not-in-time'])
    expect(await service.call('GET', `/v2/jobs/${ready.headers.get('x-patchbay-job')}`)).toMatchObject({ failed: 1 })
  })

  it('ends when its project is closed', async () => {
    const service = await campus({ PC1: { ready: { ...never, within_s: 3600 } } })
    const { job_id } = await begin(service, { action: 'start' })
    await service.call('POST', `${lab}/close`)
    expect(await ended(service, job_id)).toMatchObject({ status: 'cancelled' })
  })
})

describe('a node of a lab', () => {
  it('shows the text of its console, and lets a client wait until it is ready', async () => {
    const service = await campus({ PC1: { ready: { console: 'PC1> ' } } })
    await service.call('POST', `${lab}/nodes/PC1/start`)
    await service.call('POST', `${lab}/nodes/PC1/ready`, {})
    const typed = { send: 'echo hello\r', expect: '^hello$' }
    expect(await service.call('POST', `${lab}/nodes/PC1/console/expect`, typed)).toMatchObject({ matched: 'hello' })
    expect(await (await service.fetch(`${lab}/nodes/PC1/console/log`)).text()).toContain('\nhello\n')
  })
})

describe('a project', () => {
  it('with auto_start has its nodes started when it is opened', async () => {
    const service = await campus({ PC1: {}, PC2: {} }, { auto_start: true })
    await service.call('POST', `${lab}/close`)
    await service.call('POST', `${lab}/open`)
    await expect.poll(() => statuses(service), { timeout: hangMs }).toEqual({ PC1: 'started', PC2: 'started' })
  })

  it('with auto_start has the nodes that ran started after a reboot of the computer, and no others', async () => {
    const service = await campus({ PC1: {}, PC2: {} }, { auto_start: true })
    await service.call('POST', `${lab}/nodes/PC1/start`)
    await service.call('POST', `${lab}/nodes/PC2/start`)
    await service.call('POST', `${lab}/nodes/PC2/stop`)
    await service.reboot()
    await expect
      .poll(() => statuses(service).catch(() => undefined), { timeout: hangMs })
      .toEqual({ PC1: 'started', PC2: 'stopped' })
  })

  it('with auto_close is closed after the end of its last feed or console, and stays open if it never had one', async () => {
    const service = await campus({ PC1: {} }, { auto_close: true })
    await service.call('POST', `${lab}/nodes/PC1/start`)
    const socket = new WebSocket(`${service.url.replace('http', 'ws')}${lab}/nodes/PC1/console/ws`)
    onTestFinished(() => socket.close())
    await new Promise((resolve) => socket.addEventListener('open', resolve))
    const feed = new AbortController()
    await service.fetch(`${lab}/notifications`, { signal: feed.signal })
    feed.abort()
    expect((await service.call('GET', lab)).status).toBe('opened')
    socket.close()
    await expect.poll(async () => (await service.call('GET', lab)).status, { timeout: hangMs }).toBe('closed')
  })

  it('with auto_close stays open while a telnet client is at a console', async () => {
    const service = await campus({ PC1: {} }, { auto_close: true })
    await service.call('POST', `${lab}/nodes/PC1/start`)
    const { project_id } = await service.call<LabProject>('GET', lab)
    const { console } = await service.call<LabNode>('GET', `${lab}/nodes/PC1`)
    const telnet = connect(console as number, '127.0.0.1')
    onTestFinished(() => void telnet.destroy())
    await once(telnet, 'data')
    const clients = () => service.call('GET', `/v2/compute/projects/${project_id}/console_clients`)
    expect(await clients()).toEqual({ telnet_clients: 1 })
    await service.call('POST', '/v2/projects', { name: 'Other', auto_close: true })
    for (const name of ['campus', 'other']) {
      const feed = new AbortController()
      await service.fetch(`/v2/projects/${name}/notifications`, { signal: feed.signal })
      feed.abort()
    }
    // It would be closed before the other one, whose feed has gone later.
    const statusOf = async (name: string) => (await service.call('GET', `/v2/projects/${name}`)).status
    await expect.poll(() => statusOf('other'), { timeout: hangMs }).toBe('closed')
    expect(await statusOf('campus')).toBe('opened')
    telnet.destroy()
    await expect.poll(async () => (await service.call('GET', lab)).status, { timeout: hangMs }).toBe('closed')
  })
})
