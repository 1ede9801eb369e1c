import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { KeeperClient } from '../../runtime/node/keeper/client/client.ts'
import { createPc, start } from '../support/lab.ts'
import { TestService } from '../support/service.ts'

async function directory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'patchbay-place-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  return path
}
const send = (service: TestService, method: string, path: string, body: object = {}) =>
  service.fetch(path, { method, ...(method !== 'GET' && { body: JSON.stringify(body) }) })

test('a project in another directory is found after a restart, moved with its files, and deleted there', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const place = await directory()
  const project = await service.call('POST', '/v1/projects', { name: 'lab', path: join(place, 'one') })
  const path = `/v1/projects/${project.project_id}`
  expect(project.path).toBe(join(place, 'one'))
  const pc = await createPc(service, `/v2/compute/projects/${project.project_id}`, 1)
  await service.kill('SIGKILL')
  await service.restart()
  expect(await service.call('GET', path)).toEqual(project)
  await start(service, pc)
  expect((await send(service, 'PUT', path, { path: join(place, 'two') })).status).toBe(409)
  await service.call('POST', `${pc}/stop`)
  expect(await service.call('PUT', path, { path: join(place, 'two') })).toMatchObject({ path: join(place, 'two') })
  expect(await readdir(place)).toEqual(['two'])
  expect(await service.call('GET', pc)).toMatchObject({ startup_script: 'set pcname PC1\nip 10.0.0.1/24\n' })
  await start(service, pc)
  expect((await send(service, 'DELETE', path)).status).toBe(204)
  expect(await readdir(place)).toEqual([])
})

test('forbidden directories for a project are refused, and nothing is created or deleted there', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const place = await directory()
  await writeFile(join(place, 'precious'), 'mine')
  const cases: readonly (readonly [path: string, status: number])[] = [
    ['/', 403],
    [process.env.HOME ?? '/root', 403],
    [service.data, 403],
    [join(service.data, '..'), 403],
    [join(service.data, 'run', 'x'), 403],
    [join(service.data, 'projects'), 403],
    ['/proc/self/x', 403],
    ['relative', 400],
    [`${place}/a"b`, 403],
    [`${place}/a\u0000b`, 400],
    [place, 409],
    [join(place, 'precious'), 409],
    [join(place, 'precious', 'below'), 409],
  ]
  for (const [path, status] of cases)
    expect([path, (await send(service, 'POST', '/v1/projects', { path })).status]).toEqual([path, status])
  expect(await readdir(place)).toEqual(['precious'])
  expect(await service.call('GET', '/v1/projects')).toEqual([])
})

test('symbolic links do not lead out of a project', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const outside = await directory()
  await writeFile(join(outside, 'secret'), 'secret')
  const project = await service.call<{ project_id: string; path: string }>('POST', '/v1/projects', {})
  const files = `/v2/compute/projects/${project.project_id}/files`
  await symlink(outside, join(project.path, 'out'))
  await symlink(join(outside, 'secret'), join(project.path, 'link'))
  await mkdir(join(project.path, 'in'))
  await writeFile(join(project.path, 'in/file'), 'fine')
  await symlink('in', join(project.path, 'alias'))
  for (const path of ['out/secret', 'link', 'out/new']) {
    expect([path, (await service.fetch(`${files}/${path}`)).status]).toEqual([path, 403])
    expect([path, (await service.fetch(`${files}/${path}`, { method: 'POST', body: 'x' })).status]).toEqual([path, 403])
  }
  expect(await (await service.fetch(`${files}/alias/file`)).text()).toBe('fine')
  expect(await service.call('GET', files)).toEqual([{ path: 'in/file', md5sum: expect.any(String) }])
  expect(await readdir(outside)).toEqual(['secret'])
  expect(await readFile(join(outside, 'secret'), 'utf8')).toBe('secret')
})

test('a temporary project is gone when it is closed, and when the service starts', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const create = () => service.call<{ project_id: string; path: string }>('POST', '/v1/projects', { temporary: true })
  const [one, two] = [await create(), await create()]
  await service.call('POST', `/v1/projects/${one.project_id}/close`, {})
  expect(existsSync(one.path)).toBe(false)
  const pc = await createPc(service, `/v2/compute/projects/${two.project_id}`, 1)
  await start(service, pc)
  await service.kill('SIGKILL')
  await service.restart()
  expect(await service.call('GET', '/v1/projects')).toEqual([])
  expect(existsSync(two.path)).toBe(false)
})

test('a project that is created, closed and deleted by many requests at once is complete or gone', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const project_id = crypto.randomUUID()
  const path = `/v2/compute/projects/${project_id}`
  const actions = [
    () => send(service, 'POST', '/v2/compute/projects', { project_id, name: 'lab' }),
    () => send(service, 'POST', `${path}/pc/nodes`, { name: 'PC' }),
    () => send(service, 'POST', `${path}/close`),
    () => send(service, 'DELETE', path),
  ]
  const answers = await Promise.all(Array.from({ length: 60 }, (_, index) => actions[index % 4]?.()))
  for (const answer of answers) expect([201, 204, 404, 409]).toContain(answer?.status)
  await send(service, 'POST', '/v2/compute/projects', { project_id, name: 'lab' })
  expect((await send(service, 'DELETE', path)).status).toBe(204)
  expect(existsSync(join(service.data, 'projects', project_id))).toBe(false)
  const { console_ports, udp_ports } = await service.call<{ console_ports: number[]; udp_ports: number[] }>(
    'GET',
    '/v2/compute/network/ports',
  )
  expect([console_ports, udp_ports]).toEqual([[], []])
})

test('a project with a node without a record is opened, and reports what is wrong', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  const project = `/v2/compute/projects/${project_id}`
  const [fine, broken] = [await createPc(service, project, 1), await createPc(service, project, 2)]
  await service.kill('SIGKILL')
  const records = join(service.data, 'projects', project_id, '.patchbay/nodes')
  const id = broken.split('/').at(-1) ?? ''
  for (const name of await readdir(records)) if (name.includes(id)) await writeFile(join(records, name), '')
  await service.restart()
  expect(await service.call('GET', fine)).toMatchObject({ name: 'PC1', status_reason: null })
  expect(await service.call('GET', broken)).toMatchObject({
    status: 'stopped',
    status_reason: expect.stringContaining('damaged'),
  })
})

test('a truncated record is replaced by the version before', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v1/projects', { name: 'first' })
  await service.call('PUT', `/v1/projects/${project_id}`, { name: 'second' })
  await service.kill('SIGKILL')
  await writeFile(join(service.data, 'projects', project_id, '.patchbay/project.json'), '{"version":1,')
  await service.restart()
  expect(await service.call('GET', `/v1/projects/${project_id}`)).toMatchObject({ name: 'first' })
})

test('on a nearly full disk creations are refused, and nodes can still be stopped and deleted', async () => {
  const settings = { 'pc.engine': 'embedded' }
  const service = await TestService.start(settings)
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  const project = `/v2/compute/projects/${project_id}`
  const pc = await createPc(service, project, 1)
  await start(service, pc)
  await service.configure({ ...settings, min_free_space_mb: 1_000_000_000 })
  await service.call('POST', '/v2/compute/config/reload', {})
  expect((await send(service, 'POST', '/v2/compute/projects', { name: 'no' })).status).toBe(507)
  expect((await send(service, 'POST', `${project}/pc/nodes`, { name: 'no' })).status).toBe(507)
  expect((await service.fetch(`${project}/files/a`, { method: 'POST', body: 'x' })).status).toBe(507)
  expect((await send(service, 'POST', `${pc}/stop`)).status).toBe(204)
  expect((await send(service, 'DELETE', pc)).status).toBe(204)
  expect((await send(service, 'DELETE', project)).status).toBe(204)
})

test('an upload that stalls leaves nothing', async () => {
  const service = await TestService.start({ 'limits.body_timeout_ms': 300 })
  const { project_id, path } = await service.call<{ project_id: string; path: string }>('POST', '/v1/projects', {})
  const stream = new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode('half')) })
  const answer = await service
    .fetch(`/v2/compute/projects/${project_id}/files/upload`, {
      method: 'POST',
      body: stream,
      duplex: 'half',
    } as RequestInit)
    .then(
      ({ status }) => status,
      () => 'closed',
    )
  expect([408, 400, 'closed']).toContain(answer)
  await expect.poll(async () => readdir(path)).toEqual(['.patchbay'])
})

test('a temporary project of a killed service is deleted, and its units are ended', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const { project_id } = await service.call('POST', '/v1/projects', { temporary: true })
  await start(service, await createPc(service, `/v2/compute/projects/${project_id}`, 1))
  await service.kill('SIGKILL')
  await service.restart()
  expect(await service.call('GET', '/v1/projects')).toEqual([])
  expect(await readdir(join(service.data, 'projects'))).toEqual([])
  const keeper = await KeeperClient.connect(service.data)
  onTestFinished(() => keeper.disconnect())
  await expect.poll(() => keeper.call('inventory', {})).toMatchObject({ units: [], ports: [] })
})

test('what a service that was killed while it made a project left is removed, and a directory with files stays', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  await service.kill('SIGKILL')
  const projects = join(service.data, 'projects')
  const [begun, foreign] = [crypto.randomUUID(), crypto.randomUUID()]
  await mkdir(join(projects, begun, '.patchbay/nodes'), { recursive: true })
  await writeFile(join(projects, begun, '.patchbay/.writing-project.json-20584acd5d88'), '{"vers')
  await mkdir(join(projects, foreign))
  await writeFile(join(projects, foreign, 'notes.txt'), 'of a person')
  await service.restart()
  expect(await service.call('GET', '/v1/projects')).toEqual([])
  expect(await readdir(projects)).toEqual([foreign])
})
