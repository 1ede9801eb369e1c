import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { type Deletion, nodeRecordFile } from '../../../../runtime/node/engine/projects/project-record.ts'
import { renameDurable } from '../../../../runtime/node/engine/storage/durable-file.ts'
import { createPc, start } from '../../../support/lab.ts'
import { requireRoot } from '../../../support/require.ts'
import { TestService } from '../../../support/service.ts'
import { testWith } from '../../../support/test-with.ts'

/** Rewrites a record as a service leaves it that is killed right after it wrote down what it is about to do. */
async function amend(file: string, changes: object): Promise<void> {
  await writeFile(file, JSON.stringify({ ...JSON.parse(await readFile(file, 'utf8')), ...changes }))
}

async function lab() {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const { project_id, path } = await service.call<{ project_id: string; path: string }>('POST', '/v1/projects', {
    name: 'lab',
  })
  const project = `/v2/compute/projects/${project_id}`
  const pcs = await Promise.all([1, 2].map((number) => createPc(service, project, number)))
  await start(service, ...pcs)
  const record = (pc: string, deletion?: Deletion) => nodeRecordFile(path, 'pc', pc.split('/').at(-1) ?? '', deletion)
  const directory = (pc: string) => join(path, 'project-files/pc', pc.split('/').at(-1) ?? '')
  return { service, project, path, pcs: pcs as [string, string], record, directory }
}

test('a node whose deletion was begun by a killed service is gone when the next one is ready, and its guest ended', async () => {
  const { service, project, path, pcs, record, directory } = await lab()
  const [deleted, other] = pcs
  await service.kill('SIGKILL')
  await renameDurable(record(deleted), record(deleted, 'now'))
  await service.restart()
  const left = await service.call<{ status: string }[]>('GET', `${project}/pc/nodes`)
  expect(left).toHaveLength(1)
  expect(await service.call('GET', other)).toMatchObject({ status: 'started' })
  expect((await service.fetch(deleted)).status).toBe(404)
  expect(await readdir(join(path, '.patchbay/nodes'))).toEqual([
    basename(record(other)),
    `${basename(record(other))}.bak`,
  ])
  expect(existsSync(directory(deleted))).toBe(false)
})

test('a v1 instance whose deletion was begun by a killed service is gone, and its files wait for a commit', async () => {
  const { service, project, pcs, record, directory } = await lab()
  const [deleted] = pcs
  await service.kill('SIGKILL')
  await renameDurable(record(deleted), record(deleted, 'later'))
  await service.restart()
  expect(await service.call('GET', `${project}/pc/nodes`)).toHaveLength(1)
  expect(existsSync(directory(deleted))).toBe(true)
  await service.call('POST', `${project.replace('/v2/compute', '/v1')}/commit`)
  expect(existsSync(directory(deleted))).toBe(false)
})

test('a project whose deletion was begun by a killed service is gone when the next one is ready, and its id is free', async () => {
  const { service, project, path } = await lab()
  await service.kill('SIGKILL')
  await amend(join(path, '.patchbay/project.json'), { ending: 'remove' })
  await service.restart()
  expect((await service.fetch(project)).status).toBe(404)
  expect(existsSync(path)).toBe(false)
  const [project_id] = project.split('/').slice(-1)
  expect(await service.call('POST', '/v2/compute/projects', { project_id, name: 'anew' })).toMatchObject({ project_id })
  expect(await service.call('GET', `${project}/pc/nodes`)).toEqual([])
})

test('a project whose close was begun by a killed service is closed by the next one, and has its nodes when it is opened', async () => {
  const { service, project, path, pcs } = await lab()
  await service.kill('SIGKILL')
  await amend(join(path, '.patchbay/project.json'), { ending: 'close' })
  await service.restart()
  expect(await service.call('GET', '/v1/projects')).toEqual([])
  const [project_id] = project.split('/').slice(-1)
  await service.call('POST', '/v2/compute/projects', { project_id, name: null })
  expect(await service.call('GET', pcs[0])).toMatchObject({ status: 'stopped', status_reason: null })
})

test('a directory of a project that is only half deleted is deleted to its end', async () => {
  const { service, project, path } = await lab()
  await service.end()
  await amend(join(path, '.patchbay/project.json'), { ending: 'remove' })
  // The marker is what goes last.
  for (const name of ['project-files', '.patchbay/nodes']) await rm(join(path, name), { recursive: true })
  await service.restart()
  expect((await service.fetch(project)).status).toBe(404)
  expect(existsSync(path)).toBe(false)
})

testWith(requireRoot())(
  'a project that cannot be deleted is refused with the reason, and deleted when it is asked for again',
  async () => {
    const { service, project, path } = await lab()
    const mounted = join(path, 'project-files/mounted')
    await mkdir(mounted)
    execFileSync('mount', ['-t', 'tmpfs', 'none', mounted])
    const refused = await service.fetch(project, { method: 'DELETE' })
    execFileSync('umount', [mounted])
    expect([refused.status, await refused.json()]).toEqual([
      409,
      { status: 409, message: expect.stringMatching(/^The directory of the project: .*try again$/) },
    ])
    expect((await service.fetch(project)).status).toBe(404)
    expect((await service.fetch(project, { method: 'DELETE' })).status).toBe(204)
    expect(existsSync(path)).toBe(false)
    expect((await service.fetch(project, { method: 'DELETE' })).status).toBe(404)
  },
)
