import { afterAll, beforeAll, expect, test } from 'vitest'
import { ConfigDraft } from '../../../runtime/browser/editing/config-draft.ts'
import { Patchbay } from '../../../src/client/patchbay.ts'
import { TestService } from '../../support/service.ts'

const config = 'hostname pc\nip 10.0.0.1/24\n'

let service: TestService
let count = 0
beforeAll(async () => {
  service = await TestService.startForAll({ 'pc.engine': 'embedded' })
})
afterAll(() => service.close())

async function pcWith(startup_script: string) {
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/projects', {
    name: `Configs ${++count}`,
  })
  const nodes = `/v2/projects/${project_id}/nodes`
  const { node_id } = await service.call<{ node_id: string }>('POST', nodes, {
    ...{ name: 'PC1', node_type: 'pc', compute_id: 'local', properties: { startup_script } },
  })
  const client = new Patchbay({ server: service.url })
  const path = `${nodes}/${node_id}/config`
  const stored = async () => (await service.fetch(path)).text()
  const put = (text: string) =>
    service.fetch(path, { method: 'PUT', headers: { 'content-type': 'application/octet-stream' }, body: text })
  const remove = () => service.call('DELETE', `${nodes}/${node_id}`)
  return { stored, put, remove, draft: new ConfigDraft(client, { project_id, node_id, name: 'startup' }) }
}

test('a draft is compared with the configuration of the service, and saved', async () => {
  const { draft, stored } = await pcWith(config)
  await draft.read()
  expect([draft.text.value, draft.isChanged.value]).toEqual([config, false])
  draft.type(`${config}save\n`)
  expect([draft.saved.value, draft.isChanged.value]).toEqual([config, true])
  await draft.save()
  expect([await stored(), draft.isChanged.value, draft.failure.value]).toEqual([`${config}save\n`, false, ''])
})

test('a configuration that another client changed meanwhile is not replaced, and the draft stays', async () => {
  const { draft, stored, put } = await pcWith(config)
  await draft.read()
  draft.type('mine\n')
  await put('theirs\n')
  await draft.save()
  expect([await stored(), draft.saved.value, draft.text.value]).toEqual(['theirs\n', 'theirs\n', 'mine\n'])
  expect(draft.failure.value).toMatch('The configuration was changed meanwhile.')
  await draft.save()
  expect([await stored(), draft.failure.value]).toEqual(['mine\n', ''])
})

test('a refused configuration stays in the editor with the reason', async () => {
  const { draft, stored } = await pcWith(config)
  await draft.read()
  draft.type('x'.repeat(2 << 20))
  await draft.save()
  expect([await stored(), draft.isChanged.value]).toEqual([config, true])
  expect(draft.failure.value).toMatch('1048576')
  draft.discard()
  expect([draft.text.value, draft.failure.value]).toEqual([config, ''])
})

test('the ends of lines stay as they are on the service', async () => {
  const { draft, stored } = await pcWith('one\r\ntwo\r\n')
  await draft.read()
  expect(draft.text.value).toBe('one\ntwo\n')
  draft.type('one\nthree\n')
  await draft.save()
  expect(await stored()).toBe('one\r\nthree\r\n')
})

test('the editor says why a configuration cannot be read', async () => {
  const { draft, remove } = await pcWith(config)
  await remove()
  await draft.read()
  expect([draft.saved.value, draft.failure.value]).toEqual([undefined, expect.stringMatching('node')])
})
