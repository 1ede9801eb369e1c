import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createPc, start } from '../support/lab.ts'
import { TestService } from '../support/service.ts'

/** How often a service is killed in each test. */
const kills = 8

/** Sends a request and kills the service at some moment of its work; spread over it from kill to kill. */
async function killDuring(service: TestService, path: string, round: number, method = 'DELETE'): Promise<void> {
  const answered = service.fetch(path, { method }).then(
    (answer) => answer.status,
    () => undefined,
  )
  await Promise.race([answered, delay(round * 8)])
  await service.kill('SIGKILL')
  await answered
  await service.restart()
}

test('a node that a service was deleting when it was killed keeps running as before, or is gone with all its files', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const { project_id, path } = await service.call<{ project_id: string; path: string }>('POST', '/v1/projects', {})
  const project = `/v2/compute/projects/${project_id}`
  for (let round = 0; round < kills; round++) {
    const pc = await createPc(service, project, 1)
    await start(service, pc)
    await killDuring(service, pc, round)
    const answer = await service.fetch(pc)
    const id = pc.split('/').at(-1)
    const left = [`project-files/pc/${id}`, `.patchbay/nodes/pc-${id}.json`].filter((it) => existsSync(`${path}/${it}`))
    if (answer.status === 404) expect(left).toEqual([])
    else expect(await answer.json()).toMatchObject({ status: 'started' })
    if (answer.status === 200) await service.call('DELETE', pc)
  }
})

test.each([
  { what: 'project', temporary: false, method: 'DELETE', action: '' },
  { what: 'temporary project', temporary: true, method: 'POST', action: '/close' },
])(
  'a $what that a service was deleting when it was killed is unchanged, or gone with its directory, and its id is free',
  async ({ temporary, method, action }) => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const project_id = crypto.randomUUID()
    const project = `/v2/compute/projects/${project_id}`
    for (let round = 0; round < kills; round++) {
      const { path } = await service.call<{ path: string }>('POST', '/v1/projects', { project_id, temporary })
      const pcs = await Promise.all([1, 2, 3].map((number) => createPc(service, project, number)))
      await start(service, ...pcs)
      await killDuring(service, project + action, round, method)
      const answer = await service.fetch(project)
      // A temporary one ends with its service in any case.
      if (temporary) expect(answer.status).toBe(404)
      if (answer.status === 404) expect(existsSync(path)).toBe(false)
      else for (const pc of pcs) expect(await service.call('GET', pc)).toMatchObject({ status: 'started' })
      if (answer.status === 200) await service.call('DELETE', project)
    }
  },
)
