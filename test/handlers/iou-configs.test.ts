import { utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { nvramName } from '../../runtime/node/drivers/iou/configs.ts'
import { writeConfigs } from '../../runtime/node/drivers/iou/nvram.ts'
import { body, del, newProject, post, put, send } from '../support/api.ts'
import { fileText, iouImage, type NewRouter, newRouter, uploadIouImage } from '../support/iou-http.ts'

beforeAll(uploadIouImage)

const key = '0123456789abcdef'

/** Leaves what a router has stored, as it would. */
function store({ view }: NewRouter, startup: string | null, own: string | null = null): Promise<void> {
  const { nvram } = writeConfigs(undefined, { startup, private: own }, 64)
  return writeFile(join(view.node_directory, nvramName(view.application_id)), nvram)
}

const startupOf = ({ files }: NewRouter) => fileText(`${files}/startup-config.cfg`)
const privateOf = ({ files }: NewRouter) => fileText(`${files}/private-config.cfg`)

test('configurations are files of the node with its name, and change with its name', async () => {
  const router = await newRouter(await newProject(), {
    startup_config_content: 'hostname %h\nbanner R1 of %h%h\n',
    private_config_content: 'key of %h\n',
  })
  expect(await startupOf(router)).toBe('hostname R1\nbanner R1 of R1R1\n')
  expect(await privateOf(router)).toBe('key of R1\n')
  expect((await put(router.v2, { name: 'R2' })).status).toBe(200)
  expect(await startupOf(router)).toBe('hostname R2\nbanner R1 of R1R1\n')
  expect((await put(router.v1, { name: 'R3', startup_config_content: 'hostname %h\n' })).status).toBe(200)
  expect(await startupOf(router)).toBe('hostname R3\n')
})

test('an update overwrites a configuration, VLANs included; an empty text and null change nothing', async () => {
  const router = await newRouter(await newProject(), {
    startup_config_content: 'one\n',
    private_config_content: 'mine\n',
  })
  const vlans = `${router.files}/vlan.dat-00001`
  const upload = async () => expect((await send(vlans, { method: 'POST', body: 'vlans' })).ok).toBe(true)
  await upload()
  for (const at of [router.v1, router.v2]) {
    for (const text of ['', null]) {
      const answer = await put(at, { startup_config_content: text, private_config_content: text, ram: 300 })
      expect(answer.status).toBe(200)
    }
  }
  expect((await put(router.v1, { initial_config_content: '' })).status).toBe(200)
  expect([await startupOf(router), await privateOf(router), await fileText(vlans)]).toEqual([
    'one\n',
    'mine\n',
    'vlans',
  ])
  for (const [at, field, text] of [
    [router.v1, 'startup_config_content', 'two\n'],
    [router.v1, 'initial_config_content', 'three\n'],
    [router.v2, 'startup_config_content', 'four\n'],
  ] as const) {
    await upload()
    expect((await put(at, { [field]: text })).status).toBe(200)
    expect([await startupOf(router), await fileText(vlans)]).toEqual([text, null])
  }
  await upload()
  expect((await put(router.v1, { private_config_content: 'other of %h\n' })).status).toBe(200)
  expect([await privateOf(router), await fileText(vlans)]).toEqual(['other of R1\n', 'vlans'])
})

test('a create keeps the configurations of a saved lab, also when it is repeated after a failure', async () => {
  const project = await newProject()
  const id = crypto.randomUUID()
  const files = `${project.v2}/files/project-files/iou/${id}`
  for (const [name, text] of [
    ['startup-config.cfg', 'hostname saved\n'],
    ['private-config.cfg', ''],
    ['nvram_00042', 'kept'],
  ]) {
    expect((await send(`${files}/${name}`, { method: 'POST', body: text ?? '' })).ok).toBe(true)
  }
  const input = {
    ...{ name: 'R1', startup_config_content: 'hostname other\n', private_config_content: 'given\n' },
    node_id: id,
  }
  const failed = await post(`${project.v2}/iou/nodes`, { ...input, path: 'missing.bin' })
  expect(failed.status).toBe(409)
  expect((await send(`${project.v2}/iou/nodes/${id}`)).status).toBe(404)
  expect(await fileText(`${files}/startup-config.cfg`)).toBe('hostname saved\n')
  expect(await fileText(`${files}/nvram_00042`)).toBe('kept')
  const router = await newRouter(project, input)
  expect([await startupOf(router), await privateOf(router)]).toEqual(['hostname saved\n', 'given\n'])
  // Again, as the client of a lab that was closed does it.
  expect((await post(`${project.v2}/close`)).status).toBe(204)
  expect((await post('/v2/compute/projects', { name: 'lab', project_id: project.id })).status).toBe(201)
  const { node_id: vm_id, ...wanted } = input
  expect((await post(`${project.v1}/iou/vms`, { ...wanted, vm_id, path: iouImage })).status).toBe(201)
  expect(await startupOf(router)).toBe('hostname saved\n')
  // Deleted, and not committed.
  expect((await del(router.v1)).status).toBe(204)
  const { node_id: _, ...older } = input
  const text = { startup_config_content: undefined, initial_config_content: 'hostname new\n' }
  expect((await post(`${project.v1}/iou/vms`, { ...older, ...text, vm_id: id, path: iouImage })).status).toBe(201)
  expect(await startupOf(router)).toBe('hostname saved\n')
})

test('a router without a stored configuration shows its files, and one with it the stored one', async () => {
  const router = await newRouter(await newProject(), { startup_config_content: 'in the file\n' })
  const shown = async () => [
    await body(send(`${router.v1}/configs`)),
    await body(send(`${router.v2}/configs`)),
    await body(send(`${router.v1}/initial_config`)),
  ]
  const all = (startup_config_content: string, more = {}) => [
    { startup_config_content, ...more },
    { startup_config_content, ...more },
    { content: startup_config_content },
  ]
  expect(await shown()).toEqual(all('in the file\n'))
  await store(router, 'stored!\n', 'own\n')
  expect(await shown()).toEqual(all('stored!\n', { private_config_content: 'own\n' }))
  expect([await startupOf(router), await privateOf(router)]).toEqual(['in the file\n', ''])
  const saved = await post(`${router.v1}/configs/save`)
  expect([saved.status, await saved.text()]).toEqual([200, ''])
  expect([await startupOf(router), await privateOf(router)]).toEqual(['stored!\n', 'own\n'])
  await store(router, 'stored anew\n')
  expect((await post(`${router.v2}/configs/save`, {})).status).toBe(200)
  expect([await startupOf(router), await privateOf(router)]).toEqual(['stored anew\n', 'own\n'])
})

test('the last write counts: a configuration that a client sent later is not replaced by the stored one', async () => {
  const project = await newProject()
  const router = await newRouter(project)
  await store(router, 'stored!\n', 'own\n')
  const early = new Date(Date.now() - 60_000)
  await utimes(join(router.view.node_directory, nvramName(router.view.application_id)), early, early)
  expect((await put(router.v1, { startup_config_content: 'given\n' })).status).toBe(200)
  const given = { startup_config_content: 'given\n', private_config_content: 'own\n' }
  expect(await body(send(`${router.v2}/configs`))).toEqual(given)
  for (const path of [`${router.v1}/configs/save`, `${project.v1}/commit`]) expect((await post(path)).ok).toBe(true)
  expect([await startupOf(router), await privateOf(router)]).toEqual(['given\n', 'own\n'])
})

test('a router with an unreadable NVRAM keeps its files, and this is reported', async () => {
  const router = await newRouter(await newProject(), { startup_config_content: 'in the file\n' })
  await writeFile(join(router.view.node_directory, nvramName(router.view.application_id)), Buffer.alloc(65_536, 1))
  for (const at of [router.v1, router.v2]) {
    expect((await post(`${at}/configs/save`)).status).toBe(409)
    expect(await body(send(`${at}/configs`))).toEqual({ startup_config_content: 'in the file\n' })
  }
  expect(await startupOf(router)).toBe('in the file\n')
})

test('no message shows any part of a licence, whatever is wrong with it', async () => {
  const project = await newProject()
  const good = `[license]\nhost = ${key};\n`
  const { v1, v2, view, files } = await newRouter(project, { iourc_content: good })
  expect(view.iourc_path).toMatch(/iourc$/)
  const long = key.repeat(200)
  const requests: readonly (readonly [method: string, path: string, body: string])[] = [
    ['PUT', v1, JSON.stringify({ iourc_content: good })],
    ['PUT', v2, JSON.stringify({ iourc_content: long })],
    ['PUT', v2, JSON.stringify({ iourc_content: 'é'.repeat(40_000) + key })],
    ['PUT', v1, JSON.stringify({ iourc_content: { [key]: key } })],
    ['PUT', v1, JSON.stringify({ iourc_content: [key] })],
    ['PUT', v2, `{"iourc_content": ${key}}`],
    ['PUT', v1, `{"iourc_content": "${key}" ${key}}`],
    ['POST', `${v1}/start`, `{"iourc_content": "${key}"; "${key}"}`],
    ['POST', `${v2}/start`, JSON.stringify({ iourc_content: `[license]\n${key}` })],
    ['POST', `${v2}/start`, JSON.stringify({ iourc_content: long })],
    ['POST', `${project.v1}/iou/vms`, JSON.stringify({ name: 'R2', path: 'missing.bin', iourc_content: good })],
  ]
  for (const [method, path, input] of requests) {
    const answer = await send(path, { method, body: input })
    expect([200, 400, 409, 413]).toContain(answer.status)
    expect(await answer.text(), input.slice(0, 60)).not.toContain(key.slice(0, 6))
  }
  for (const path of [v1, v2, `${v1}/configs`, `${project.v2}/files`, files.replace(/\/project-files.*/, '')]) {
    expect(await (await send(path)).text()).not.toContain(key.slice(0, 6))
  }
})
