import { expect, test } from 'vitest'
import { CommandLine } from '../../../support/command-line.ts'
import { hangMs } from '../../../support/limits.ts'
import { TestService } from '../../../support/service.ts'

const lab = 'lab: lent\nnodes: { PC1: { kind: pc }, PC2: { kind: pc } }\nlinks: [[PC1, PC2]]\n'

interface Project {
  readonly status: string
  readonly stop_at?: string
  readonly ttl_deletes?: true
}

async function lent(): Promise<{ service: TestService; patchbay: CommandLine; project: () => Promise<Project> }> {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const patchbay = await CommandLine.of({ server: service.url })
  await patchbay.file('lent.lab.yaml', lab)
  return { service, patchbay, project: () => service.call<Project>('GET', '/v2/projects/lent') }
}

const states = async (service: TestService): Promise<string[]> =>
  (await service.call<{ status: string }[]>('GET', '/v2/projects/lent/nodes')).map(({ status }) => status)

test('the service stops a lab after its time', async () => {
  const { service, patchbay, project } = await lent()
  expect((await patchbay.run(['up', '--ttl', '25s'])).out).toContain('lent stops within a minute (--ttl)')
  const began = Date.now()
  const { stop_at } = await patchbay.json<Project>(['up', '--ttl', '1500ms'])
  expect(Date.parse(stop_at ?? '')).toBeGreaterThan(began + 1500)
  await expect.poll(() => states(service)).toEqual(['stopped', 'stopped'])
  expect(Date.now() - began).toBeGreaterThan(1500)
  // It stays, open, and is started again without a time.
  await expect.poll(async () => (await project()).stop_at).toBe(undefined)
  expect(await project()).toMatchObject({ status: 'opened' })
  expect((await patchbay.run(['up'])).out).not.toContain('--ttl')
})

test('after a kill of the service the next one stops the lab', async () => {
  const { service, patchbay, project } = await lent()
  const { stop_at = '' } = await patchbay.json<Project>(['up', '--ttl', '1s'])
  await service.kill('SIGKILL')
  await expect.poll(() => Date.now()).toBeGreaterThan(Date.parse(stop_at))
  await service.restart()
  await expect.poll(() => states(service)).toEqual(['stopped', 'stopped'])
  await expect.poll(async () => (await project()).stop_at).toBe(undefined)
})

test('the time is shown, renewed, removed, and cleared when the lab is stopped', async () => {
  const { service, patchbay, project } = await lent()
  await patchbay.run(['up', '--ttl', '2h'])
  expect((await patchbay.run(['ls'])).out).toMatch(/lent +running +2 of 2 +stops in 2 h\n/)
  expect((await patchbay.run(['inspect', 'lent'])).out).toContain('2 of 2 nodes running, 1 link; stops in 2 h\n')
  const { stop_at = '' } = await project()
  expect((await patchbay.run(['up'])).out).toContain('stops in 2 h')
  await patchbay.run(['up', '--ttl', '30m'])
  expect(Date.parse((await project()).stop_at ?? '')).toBeLessThan(Date.parse(stop_at))
  expect(await patchbay.json(['up', '--ttl', '0'])).not.toHaveProperty('stop_at')
  expect(await project()).not.toHaveProperty('stop_at')

  await service.call('PUT', '/v2/projects/lent', { ttl_s: 3600 })
  expect(await patchbay.json(['ls'])).toMatchObject({ labs: [{ name: 'lent', stop_at: expect.any(String) }] })
  // What undo takes back is not the time.
  await service.call('POST', '/v2/projects/lent/nodes', { name: 'PC3', node_type: 'pc' })
  await service.call('POST', '/v2/projects/lent/undo')
  expect(await project()).toHaveProperty('stop_at')
  await patchbay.run(['down'])
  await expect.poll(async () => (await project()).stop_at).toBe(undefined)
  await service.call('PUT', '/v2/projects/lent', { ttl_s: 3600 })
  await service.call('POST', '/v2/projects/lent/close')
  expect(await project()).not.toHaveProperty('stop_at')

  for (const ttl of ['2', 'soon', '-1h'])
    expect(await patchbay.run(['up', `--ttl=${ttl}`])).toMatchObject({
      code: 64,
      err: expect.stringContaining('--ttl'),
    })
  expect(await patchbay.run(['up', '--ttl', '9999d'])).toMatchObject({ code: 3, err: expect.stringContaining('ttl_s') })
})

test('with ttl_deletes the service deletes the lab at that time', async () => {
  const { service, patchbay } = await lent()
  await patchbay.run(['up'])
  const refused = await service.fetch('/v2/projects/lent', {
    method: 'PUT',
    body: JSON.stringify({ ttl_deletes: true }),
  })
  expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('ttl_deletes: needs ttl_s')])
  await service.call('PUT', '/v2/projects/lent', { ttl_s: 7200, ttl_deletes: true })
  expect((await patchbay.run(['ls'])).out).toMatch(/lent +running +2 of 2 +is deleted in 2 h\n/)
  // Without a time there is nothing to delete, and the next time is one to stop again.
  await service.call('PUT', '/v2/projects/lent', { ttl_s: 0 })
  expect(await service.call('PUT', '/v2/projects/lent', { ttl_s: 7200 })).not.toHaveProperty('ttl_deletes')
  await service.call('PUT', '/v2/projects/lent', { ttl_s: 7200, ttl_deletes: true })
  // What is shown may be sent back.
  const shown = await service.call<Project>('GET', '/v2/projects/lent')
  expect(await service.call('PUT', '/v2/projects/lent', shown)).toMatchObject({ stop_at: shown.stop_at })
  // A renewal keeps it.
  expect(await service.call('PUT', '/v2/projects/lent', { ttl_s: 1 })).toMatchObject({ ttl_deletes: true })
  await service.kill('SIGKILL')
  await service.restart()
  await expect.poll(async () => (await service.fetch('/v2/projects/lent')).status, { timeout: hangMs }).toBe(404)
})

test('a renewal in time keeps a lab that was to be deleted, and its nodes keep running', async () => {
  const { service, patchbay, project } = await lent()
  await patchbay.run(['up'])
  const first = await service.call<Project>('PUT', '/v2/projects/lent', { ttl_s: 2, ttl_deletes: true })
  // As a test renews its lab: the time alone.
  const renewed = await service.call<Project>('PUT', '/v2/projects/lent', { ttl_s: 3600 })
  expect(Date.parse(renewed.stop_at ?? '')).toBeGreaterThan(Date.now() + 3_500_000)
  const over = Date.parse(first.stop_at ?? '')
  await expect.poll(() => Date.now(), { timeout: hangMs }).toBeGreaterThan(over)
  expect(await project()).toMatchObject({ status: 'opened', stop_at: renewed.stop_at, ttl_deletes: true })
  expect(await states(service)).toEqual(['started', 'started'])
  // An apply of its file renews it, too; an earlier time comes true.
  const body = { document: lab, ttl_s: 1 }
  await service.call('PUT', '/v2/projects/lent/topology', body)
  await expect.poll(async () => (await service.fetch('/v2/projects/lent')).status, { timeout: hangMs }).toBe(404)
})

test('a change that is refused does not change the time', async () => {
  const { service, patchbay, project } = await lent()
  await patchbay.run(['up', '--ttl', '2h'])
  const { stop_at } = await project()
  await service.call('POST', '/v2/projects', { name: 'other' })
  const put = (body: object) => service.fetch('/v2/projects/lent', { method: 'PUT', body: JSON.stringify(body) })
  expect((await put({ name: 'other', ttl_s: 60 })).status).toBe(409)
  expect((await put({ name: 'mine', ttl_deletes: true })).status).toBe(400)
  expect(await project()).toMatchObject({ name: 'lent', stop_at })
})

test('a file that is refused does not change the time', async () => {
  const { service, patchbay, project } = await lent()
  await patchbay.run(['up', '--ttl', '2h'])
  const { stop_at } = await project()
  const machine = 'nodes: { R1: { kind: machine-emulator, image: none.qcow2 } }\n'
  const refused = await service.fetch('/v2/projects/lent/topology', {
    method: 'PUT',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ document: `lab: lent\n${machine}`, ttl_s: 60 }),
  })
  expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('none.qcow2')])
  expect(await project()).toMatchObject({ stop_at })
})
