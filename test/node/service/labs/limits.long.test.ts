import { appendFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { LabProject } from '../../../../src/model/lab/project.ts'
import { TestService } from '../../../support/service.ts'

test('a service refuses what is above its limits, and starts with documents that it cannot read', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded', 'limits.lab_mb': 1, 'limits.open_labs_mb': 4 })
  const make = (name: string): Promise<LabProject> => service.call('POST', '/v2/projects', { name })
  const draw = (lab: string) =>
    service.fetch(`/v2/projects/${lab}/drawings`, {
      method: 'POST',
      body: JSON.stringify({ svg: `<svg>${'x'.repeat(600_000)}</svg>` }),
    })
  const [whole, damaged, closed] = [await make('whole'), await make('damaged'), await make('closed')]
  expect((await draw('whole')).status).toBe(201)
  const refused = await draw('whole')
  expect([refused.status, refused.headers.get('x-patchbay-error')]).toEqual([413, 'limit-reached'])
  expect((await refused.json()) as object).toMatchObject({
    message: expect.stringMatching(/limited to 1 MiB .*would have 1\.2 MiB.*\(limits\.lab_mb\)/),
  })
  await service.call('POST', '/v2/projects/closed/close')
  await service.kill('SIGKILL')

  const pathOf = ({ project_id }: LabProject) => join(service.data, 'labs', `${project_id}.jsonl`)
  await appendFile(pathOf(damaged), 'damaged\n{"ran":[]}\n')
  const before = await readFile(pathOf(damaged), 'utf8')
  await service.restart()
  const shown = async (name: string) => {
    const { status, status_reason } = await service.call<LabProject>('GET', `/v2/projects/${name}`)
    return [status, status_reason]
  }
  const reason = expect.stringMatching(/its document is damaged: its line \d+ is not JSON.*was left as it is/)
  expect(await shown('damaged')).toEqual(['closed', reason])
  expect([await shown('whole'), await shown('closed')]).toEqual([
    ['opened', undefined],
    ['closed', undefined],
  ])
  const list: LabProject[] = await service.call('GET', '/v2/projects')
  expect(list.map(({ name, status_reason }) => [name, status_reason])).toEqual([
    ['closed', undefined],
    ['damaged', reason],
    ['whole', undefined],
  ])
  for (const [method, path] of [
    ['POST', 'open'],
    ['GET', 'nodes'],
    ['GET', 'export'],
  ] as const)
    expect((await service.fetch(`/v2/projects/damaged/${path}`, { method })).status).toBe(409)
  expect(await readFile(pathOf(damaged), 'utf8')).toBe(before)
  expect((await service.fetch('/v2/projects/damaged', { method: 'DELETE' })).status).toBe(204)
  expect((await service.fetch(`/v2/projects/${whole.project_id}`, { method: 'DELETE' })).status).toBe(204)
  await service.call('POST', '/v2/projects/closed/open')
  expect(closed.name).toBe('closed')
})

test('the compute interface has the same limits: the number of nodes of a project', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded', 'limits.lab_mb': 1, 'limits.lab_objects': 3 })
  const { project_id }: LabProject = await service.call('POST', '/v2/projects', { name: 'one' })
  const at = `/v2/compute/projects/${project_id}`
  const send = async (method: string, path: string, body: object) => {
    const answer = await service.fetch(path, { method, body: JSON.stringify(body) })
    return [answer.status, answer.headers.get('x-patchbay-error')]
  }
  const node = (index: number) => send('POST', `${at}/pc/nodes`, { name: `PC${index}` })
  for (let index = 0; index < 3; index++) expect(await node(index)).toEqual([201, null])
  expect(await node(3)).toEqual([413, 'limit-reached'])
})
