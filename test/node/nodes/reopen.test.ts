import { expect, test } from 'vitest'
import { createPc, start, status } from '../../support/lab.ts'
import { portRanges, TestService } from '../../support/service.ts'

test('a project that is opened again is what the keeper says now, not what it said at another one', async () => {
  const service = await TestService.start({ ...portRanges(95), 'pc.engine': 'embedded' })
  const projects = await Promise.all(
    ['a', 'b'].map((name) => service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name })),
  )
  const [a = '', b = ''] = projects.map(({ project_id }) => project_id)
  const reopen = async (project_id: string) => {
    await service.call('POST', `/v2/compute/projects/${project_id}/close`)
    await service.call('POST', '/v2/compute/projects', { project_id, name: 'again' })
  }
  const [, pc] = await Promise.all([a, b].map((id) => createPc(service, `/v2/compute/projects/${id}`, 1)))
  await start(service, pc ?? '')
  await reopen(a)
  await reopen(b)
  expect(await status(service, pc ?? '')).toBe('stopped')
  await start(service, pc ?? '')
  expect(await status(service, pc ?? '')).toBe('started')
})
