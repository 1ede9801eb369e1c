import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { callerName, runAs } from '../../runtime/node/service/http/caller.ts'
import type { Trace } from '../../src/server/app-options.ts'
import { RequestMetrics } from '../../src/server/http/request-metrics.ts'
import { ask, authApp, basic, bearer } from '../support/auth-app.ts'
import { freshDirectory } from '../support/directory.ts'
import { figure, parseExposition } from '../support/exposition.ts'
import { TestService } from '../support/service.ts'

/** The lines of a feed, as they come. */
async function* linesOf(answer: Response): AsyncGenerator<Record<string, unknown>> {
  let text = ''
  for await (const piece of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += piece
    const lines = text.split('\n')
    text = lines.pop() ?? ''
    for (const line of lines) yield JSON.parse(line) as Record<string, unknown>
  }
}

async function until(lines: AsyncGenerator<Record<string, unknown>>, action: string): Promise<Record<string, unknown>> {
  // Not by `for await`, which would end the feed with the first line that is found.
  for (;;) {
    const { done, value } = await lines.next()
    if (done === true) throw new Error('the feed has ended')
    if (value.action === action) return value
  }
}

const projects = '/v2/compute/projects'

test('feeds and metrics have the name of the caller, at a compute and by a gateway', async () => {
  const compute = await TestService.start({
    ...{ user: 'anna', password: 'geheim', 'pc.engine': 'embedded' },
  })
  const gateway = await TestService.start({ gateway: true, token: 't0ken' })
  const call = async (service: TestService, authorization: string, method: string, path: string, body?: object) => {
    const init = { method, headers: { authorization }, ...(body && { body: JSON.stringify(body) }) }
    const answer = await service.fetch(path, init)
    expect([path, answer.ok]).toEqual([path, true])
    return (answer.status === 204 ? {} : await answer.json()) as Record<string, unknown>
  }
  const { port } = new URL(compute.url)
  await call(gateway, bearer('t0ken'), 'POST', '/v2/computes', {
    ...{ compute_id: 'c1', protocol: 'http', host: '127.0.0.1', port: Number(port), user: 'anna', password: 'geheim' },
  })
  const made = await call(gateway, bearer('t0ken'), 'POST', '/v2/tokens', { name: 'Zoë "ci"', role: 'operate' })
  const ci = bearer(String(made.token))
  const feeds = await Promise.all([
    compute.fetch('/v2/compute/notifications', { headers: { authorization: basic('anna', 'geheim') } }),
    gateway.fetch('/v2/compute/notifications', { headers: { authorization: ci } }),
  ])
  const [there, here] = feeds.map(linesOf)
  if (there === undefined || here === undefined) throw new Error('two feeds')
  for (const feed of [there, here]) await until(feed, 'ping')
  const { project_id } = await call(gateway, ci, 'POST', projects, { name: 'lab' })
  await call(gateway, ci, 'POST', `${projects}/${project_id}/pc/nodes`, { name: 'PC1' })
  const byBoth = 'Zoë "ci" (anna)'
  expect(await until(there, 'node.created')).toMatchObject({ by: byBoth, event: { name: 'PC1' } })
  expect(await until(here, 'node.created')).toMatchObject({ by: byBoth, event: { name: 'PC1' } })
  await call(compute, basic('anna', 'geheim'), 'POST', `${projects}/${project_id}/pc/nodes`, { name: 'PC2' })
  expect(await until(there, 'node.created')).toMatchObject({ by: 'anna', event: { name: 'PC2' } })
  const scraped = await gateway.fetch('/metrics', { headers: { authorization: ci } })
  const figures = parseExposition(await scraped.text())
  expect(figure(figures, 'patchbay_credential_requests_total', { credential: 'Zoë "ci"' })).toBeGreaterThanOrEqual(2)
  for (const { body } of feeds) await body?.cancel().catch(() => {})
})

test('a log line has the name of the caller, and of the client of a gateway', async () => {
  const traced: Trace[] = []
  const app = authApp({ access: { user: 'anna', password: 'geheim' }, trace: (entry) => traced.push(entry) })
  const authorization = basic('anna', 'geheim')
  await ask(app, 'GET', '/v1/version', { authorization })
  await ask(app, 'GET', '/v1/version', { authorization: basic('anna', 'guess') })
  await ask(app, 'GET', '/v1/version', { authorization, 'x-patchbay-via': 'user', 'x-patchbay-by': 'b%C3%ABn' })
  await ask(app, 'GET', '/v1/version', { authorization, 'x-patchbay-via': 'user', 'x-patchbay-by': '%zz' })
  // Only a gateway speaks for others.
  await ask(app, 'GET', '/v1/version', { authorization, 'x-patchbay-by': 'ben' })
  expect(traced.map(({ status, by }) => [status, by])).toEqual([
    [200, 'anna'],
    [401, undefined],
    [200, 'bën (anna)'],
    [200, 'anna'],
    [200, 'anna'],
  ])
})

test('a line of the log has the name of the caller once', async () => {
  const log = join(await freshDirectory(), 'log')
  const launcher = ['sh', '-c', `exec "$@" --log-level debug 2>>${log}`, 'sh']
  const service = await TestService.start({ user: 'anna', password: 'geheim' }, launcher)
  await service.fetch('/v1/version', { headers: { authorization: basic('anna', 'geheim') } })
  const lines = (await readFile(log, 'utf8')).split('\n').filter((line) => line.includes('"/v1/version"'))
  expect(lines).toHaveLength(1)
  const line = JSON.parse(lines[0] ?? '') as Record<string, unknown>
  expect(Object.entries(line).filter(([, value]) => value === 'anna')).toEqual([['by', 'anna']])
})

test('events after the end of a request have no caller', async () => {
  const caller = { isDirect: true, mayExecute: true, name: 'anna' }
  let later: Promise<string | undefined> = Promise.resolve(undefined)
  let answered = () => {}
  const during = await runAs(caller, async () => {
    const over = new Promise<void>((resolve) => {
      answered = resolve
    })
    later = over.then(() => callerName())
    return callerName()
  })
  answered()
  expect([during, await later, callerName()]).toEqual(['anna', undefined, undefined])
})

test('the names of credentials add a limited number of series', () => {
  const counted = new RequestMetrics()
  for (let index = 0; index < 1000; index++) counted.count('/v1/version', 'GET', 200, 0.001, `token ${index}`)
  counted.add({
    routes: [],
    credentials: [
      ['token 1', 5],
      ['another one', 7],
    ],
  })
  const samples = counted.families().find(({ name }) => name === 'patchbay_credential_requests_total')?.samples ?? []
  expect(samples).toHaveLength(101)
  expect(samples.find(({ labels }) => labels?.credential === 'token 1')?.value).toBe(6)
  expect(samples.find(({ labels }) => labels?.credential === 'other')?.value).toBe(907)
})

test('what the job of a lab file changes after its answer is an edit of who applied the file', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded', token: 't0ken' })
  const headers = { authorization: bearer('t0ken') }
  const call = async (method: string, path: string, body?: string) => {
    const answer = await service.fetch(path, { method, headers, ...(body !== undefined && { body }) })
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
  }
  const nodes = ['PC1', 'PC2', 'PC3'].map((name) => `${name}: { kind: pc }`).join(', ')
  const apply = async (document: string) => {
    const { body } = await call('PUT', '/v2/projects/lab/topology?delete_extra=true', JSON.stringify({ document }))
    for (;;) {
      const job = await call('GET', `/v2/jobs/${String(body.job_id)}`)
      if (job.body.status !== 'running') return job.body.status
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  expect(await apply(`lab: lab\nnodes: { ${nodes} }\n`)).toBe('done')
  expect(await apply('lab: lab\nnodes: { PC1: { kind: pc } }\n')).toBe('done')
  expect((await call('GET', '/v2/projects/lab/edits')).body).toMatchObject({
    undo: { by: expect.any(String) as string },
  })
  expect((await call('POST', '/v2/projects/lab/undo')).status).toBe(200)
  expect((await call('GET', '/v2/projects/lab/nodes')).body).toHaveLength(3)
})
