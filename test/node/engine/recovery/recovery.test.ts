import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { EngineNode } from '../../../../runtime/node/engine/nodes/engine-node.ts'
import type { RecoveryOptions } from '../../../../runtime/node/engine/recovery/options.ts'
import { createRecovery } from '../../../../runtime/node/engine/recovery/recovery.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { createPc, start, status } from '../../../support/lab.ts'
import { TestService } from '../../../support/service.ts'

test('a project that is opened again has the present states of the keeper, not earlier ones', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
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

test('a node that was deleted meanwhile gets no ports from a new keeper', async () => {
  const done: string[] = []
  const [stays, goes] = ['stays', 'goes'].map((key) => ({
    key,
    status: 'stopped',
    project: {},
    isReconciled: true,
  })) as [EngineNode, EngineNode]
  const table: Map<string, EngineNode> = new Map([stays, goes].map((node) => [node.key, node]))
  const lock = async (_: string, run: () => Promise<void>) => {
    table.delete(goes.key)
    await run()
  }
  const { reconciliation } = createRecovery({
    table: Object.assign(table, { lock }),
    lifecycle: { recordKeeperDeath() {}, onUnitGone: async ({ key }: EngineNode) => void done.push(key) },
    links: { restore: async () => [] },
  } as unknown as RecoveryOptions)
  await reconciliation.onKeeperDeath(() => true, true)
  expect(done).toEqual(['stays'])
})

test('a project is not deleted from disk while a guest of it keeps running, and a guest that ended late does not prevent it', async () => {
  const path = await freshDirectory()
  const name = `pc-${crypto.randomUUID()}.json`
  const key = name.replace(/^pc-(.+)\.json$/, 'pc:$1')
  await mkdir(join(path, '.patchbay/nodes'), { recursive: true })
  await writeFile(join(path, '.patchbay/nodes', name), '{}')
  let exit: object | null = null
  const quiet = () => {}
  const { reaper } = createRecovery({
    keeper: {
      inventory: async () => ({ units: [{ key, exit }], ports: [] }),
      call: () => Promise.reject(new Error('the keeper is busy')),
    },
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    kinds: {},
  } as unknown as RecoveryOptions)
  await expect(reaper.endNodes(path)).rejects.toMatchObject({
    status: 503,
    message: `Node state is unknown because the keeper is not responding (the keeper is busy). The project in ${path} was not deleted; try again`,
  })
  exit = { code: 0 }
  await reaper.endNodes(path)
})
