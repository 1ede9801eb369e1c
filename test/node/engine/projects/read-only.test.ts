import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { expect, onTestFinished } from 'vitest'
import { createPc, start } from '../../../support/lab.ts'
import { requireRoot } from '../../../support/require.ts'
import { TestService } from '../../../support/service.ts'
import { testWith } from '../../../support/test-with.ts'

testWith(requireRoot())(
  'on a disk that is read-only what creates, changes or deletes says so with the disk, nodes can be stopped, and the log and feed tell once',
  async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const { project_id, path } = await service.call<{ project_id: string; path: string }>('POST', '/v1/projects', {})
    const project = `/v2/compute/projects/${project_id}`
    const pc = await createPc(service, project, 1)
    await start(service, pc)
    const feed = await service.fetch(`${project}/notifications`)
    execFileSync('mount', ['--bind', path, path])
    onTestFinished(() => void execFileSync('umount', [path]))
    execFileSync('mount', ['-o', 'remount,ro,bind', path])

    const refused = async (method: string, at: string, body?: object) => {
      const answer = await service.fetch(at, { method, ...(body !== undefined && { body: JSON.stringify(body) }) })
      const { message } = (await answer.json()) as { message: string }
      expect([answer.status, message]).toEqual([507, expect.stringContaining(`${path}`)])
      expect(message).toContain('read-only')
    }
    await refused('DELETE', pc)
    await refused('DELETE', `${pc.replace('/v2/compute', '/v1').replace('/nodes/', '/vms/')}`)
    await refused('POST', `${project}/pc/nodes`, { name: 'PC2' })
    await refused('POST', `${project}/ports/udp`)
    await refused('POST', `${project}/files/a`, { text: 'x' })
    await refused('PUT', pc, { name: 'PC3' })
    await refused('DELETE', project)
    expect(await service.call('GET', pc)).toMatchObject({ name: 'PC1', status: 'started' })

    await service.call('POST', `${pc}/stop`)
    await service.call('POST', `${pc}/stop`)
    expect(await service.call('GET', pc)).toMatchObject({ status: 'stopped' })
    await service.call('POST', `${project}/close`)
    const told = (await feed.text()).split('\n').filter((line) => line.includes('"log.error"'))
    expect(told.map((line) => (JSON.parse(line) as { event: { message: string } }).event.message)).toEqual([
      expect.stringMatching(/^PC1 could not be saved.*read-only/),
      expect.stringMatching(/project could not be saved.*read-only/i),
    ])
    expect(existsSync(path)).toBe(true)
  },
)
