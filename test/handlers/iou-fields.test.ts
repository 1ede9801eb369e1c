import { copyFile, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { body, newProject, post, put, send } from '../support/api.ts'
import { freshDirectory } from '../support/directory.ts'
import { iouImage, newRouter, uploadIouImage } from '../support/iou-http.ts'

beforeAll(uploadIouImage)

const create = { name: 'R1', path: iouImage }

/** What v1 shows of a router, each member with the type that it has. */
const instance = {
  vm_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
  project_id: expect.any(String),
  name: 'R1',
  path: iouImage,
  md5sum: expect.stringMatching(/^[0-9a-f]{32}$/),
  console: expect.any(Number),
  ethernet_adapters: 2,
  serial_adapters: 2,
  ram: 256,
  nvram: 128,
  l1_keepalives: false,
  use_default_iou_values: true,
  startup_config: 'startup-config.cfg',
  private_config: 'private-config.cfg',
  vm_directory: expect.stringMatching(/^\/.*\/project-files\/iou\//),
  command_line: '',
}

test('v1 shows a router with the fields and types of the specification', async () => {
  const project = await newProject()
  const answer = await post(`${project.v1}/iou/vms`, create)
  expect(answer.status).toBe(201)
  expect(answer.headers.get('X-ROUTE')).toBe('/v1/projects/{project_id}/iou/vms')
  const shown = await body<Record<string, unknown> & { vm_id: string }>(answer)
  expect(shown).toMatchObject({
    ...instance,
    project_id: project.id,
    initial_config: `project-files/iou/${shown.vm_id}/startup-config.cfg`,
  })
  expect([null, 'string']).toContain(shown.iourc_path === null ? null : typeof shown.iourc_path)
  expect(Object.keys(shown)).not.toContain('status')
  expect(Object.keys(shown).filter((it) => it.endsWith('content'))).toEqual([])
  const at = `${project.v1}/iou/vms/${shown.vm_id}`
  expect(await body(send(at))).toEqual(shown)
  expect(await body(send(`${project.v1}/iou/vms`))).toEqual([shown])
  expect(await body(put(at, {}))).toEqual(shown)
  expect(await body(send(`${project.v2}/iou/nodes/${shown.vm_id}`))).toMatchObject({ name: 'R1', status: 'stopped' })
  expect((await post(`${project.v1}/iou/vms`, { ...create, vm_id: shown.vm_id })).status).toBe(409)
  expect((await post(`${project.v2}/iou/nodes`, { ...create, node_id: shown.vm_id, ram: 99 })).status).toBe(201)
  expect(await body(send(at))).toMatchObject({ ram: 99 })
})

test('a missing configuration is null in both API versions', async () => {
  const { v1, v2, view } = await newRouter(await newProject())
  await rm(join(view.node_directory, 'startup-config.cfg'))
  // The service hears of the file from the kernel.
  await expect.poll(() => body(send(v1))).toMatchObject({ startup_config: null, initial_config: null })
  expect(await body(send(v2))).toMatchObject({ startup_config: null, private_config: 'private-config.cfg' })
  expect(await body(send(`${v1}/initial_config`))).toEqual({ content: null })
})

describe('the input of a create', () => {
  const adapters = ['ethernet_adapters', 'serial_adapters'] as const
  const mayBeNull = ['console', 'ram', 'nvram', 'l1_keepalives', 'use_default_iou_values', 'md5sum'] as const
  const texts = ['startup_config_content', 'private_config_content', 'iourc_content'] as const
  const olderTexts = ['initial_config', 'initial_config_content', 'startup_config', 'private_config'] as const

  test('v1: null is the default where the specification has null, and nowhere else', async () => {
    const project = await newProject()
    const nulls = Object.fromEntries([...mayBeNull, ...texts, ...olderTexts].map((name) => [name, null]))
    const answer = await post(`${project.v1}/iou/vms`, { ...create, ...nulls })
    expect(answer.status).toBe(201)
    const shown = await body<Record<string, unknown>>(answer)
    expect(shown).toMatchObject(instance)
    const at = `${project.v1}/iou/vms/${shown.vm_id}`
    for (const name of ['name', 'path', ...adapters]) {
      const refused = await post(`${project.v1}/iou/vms`, { ...create, [name]: null })
      const { message } = await body<{ message: string }>(refused)
      expect([refused.status, message]).toEqual([400, expect.stringMatching(`^${name}: expected`)])
    }
    // In an update it is "leave as it is", for all of them.
    const changes = Object.fromEntries(
      ['name', 'path', ...adapters, ...mayBeNull, ...texts, ...olderTexts].map((it) => [it, null]),
    )
    expect(await body(put(at, changes))).toEqual(shown)
  })

  test('v2: null is the default of every field but the name and the image', async () => {
    const project = await newProject()
    const names = [...adapters, ...mayBeNull, ...texts, 'console_type', 'application_id', 'usage', 'node_id']
    const nulls = Object.fromEntries(names.map((name) => [name, null]))
    const shown = await body(post(`${project.v2}/iou/nodes`, { ...create, ...nulls }))
    expect(shown).toMatchObject({ name: 'R1', ethernet_adapters: 2, serial_adapters: 2, console_type: 'telnet' })
    for (const name of ['name', 'path']) {
      expect((await post(`${project.v2}/iou/nodes`, { ...create, [name]: null })).status).toBe(400)
    }
  })

  test('a value of a wrong type or out of range is refused with the name of the member, and changes nothing', async () => {
    const project = await newProject()
    const { v1, v2, view } = await newRouter(project)
    const bad: readonly (readonly [field: string, ...values: unknown[]])[] = [
      ['name', '', 1, 'a\nb', 'x'.repeat(256)],
      ['path', '', 1, 'a\nb'],
      ['console', 0, 65_536, '2000', 1.5],
      ['ethernet_adapters', -1, 17, '2', 1.5],
      ['serial_adapters', -1, 17, true],
      ['ram', 0, '256', 2 ** 20 + 1],
      ['nvram', 7, 1025, '128'],
      ['l1_keepalives', 'yes', 1],
      ['use_default_iou_values', 'yes', 1],
      ['md5sum', 7],
      ['startup_config_content', 7, ['a']],
      ['private_config_content', 7],
      ['iourc_content', 7, {}],
      ['surprise', 1],
    ]
    for (const [field, ...values] of bad) {
      for (const value of values) {
        const input = { ...create, [field]: value }
        const answers = [
          await post(`${project.v1}/iou/vms`, input),
          await post(`${project.v2}/iou/nodes`, input),
          await put(v1, { [field]: value }),
          await put(v2, { [field]: value }),
        ]
        for (const answer of answers) {
          const { message, ...rest } = await body<{ message: string }>(answer)
          expect([rest, message]).toEqual([{ status: 400 }, expect.stringContaining(`${field}:`)])
        }
      }
    }
    expect((await post(`${project.v1}/iou/vms`, { path: iouImage })).status).toBe(400)
    expect((await post(`${project.v1}/iou/vms`, { name: 'R1' })).status).toBe(400)
    for (const vm_id of ['R1', -1, 1.5, true]) {
      expect((await post(`${project.v1}/iou/vms`, { ...create, vm_id })).status).toBe(400)
    }
    expect(await body(send(`${project.v2}/iou/nodes`))).toEqual([view])
  })
})

test('the id is that of the client in lower case, or a new one for an integer', async () => {
  const project = await newProject()
  const id = crypto.randomUUID()
  expect(await body(post(`${project.v1}/iou/vms`, { ...create, vm_id: id.toUpperCase() }))).toMatchObject({ vm_id: id })
  const { vm_id } = await body<{ vm_id: string }>(post(`${project.v1}/iou/vms`, { ...create, vm_id: 7 }))
  expect(vm_id).toMatch(/^[0-9a-f-]{36}$/)
})

test('a v2 client may send back all members that it has read', async () => {
  const project = await newProject()
  const { v2, view, id } = await newRouter(project, { usage: 'notes' })
  const answer = await put(v2, { ...view, name: 'R2' })
  expect([answer.status, await body(answer)]).toEqual([200, { ...view, name: 'R2' }])
  const again = await post(`${project.v2}/iou/nodes`, { ...view, ram: 300 })
  expect([again.status, await body(again)]).toEqual([201, { ...view, ram: 300 }])
  // What changes by itself may have been shown before, and what is computed stays, whatever is sent.
  const changes = { status: 'started', application_id: 500, command_line: 'rm' }
  expect(await body(put(v2, changes))).toEqual({ ...view, ram: 300 })
  expect((await put(v2, { node_id: crypto.randomUUID() })).status).toBe(400)
  expect(await body(send(`${project.v2}/iou/nodes`))).toMatchObject([{ node_id: id }])
})

test('an image that was uploaded by one API version can be used by the other at once', async () => {
  const project = await newProject()
  const [one, two] = [`${crypto.randomUUID()}.bin`, `nested/${crypto.randomUUID()}.bin`]
  const content = await (await send(`/v2/compute/iou/images/${iouImage}`)).arrayBuffer()
  const stored = [
    await send(`/v1/iou/vms/${one}`, { method: 'POST', body: content }),
    await send(`/v2/compute/iou/images/${two}`, { method: 'POST', body: content }),
  ]
  for (const answer of stored) expect([answer.status, await answer.text()]).toEqual([204, ''])
  expect(stored[0]?.headers.get('X-ROUTE')).toBe('/v1/iou/vms/{path}')
  for (const list of ['/v1/iou/vms', '/v2/compute/iou/images']) {
    const images = await body<Record<string, unknown>[]>(send(list))
    for (const path of [one, two]) {
      const image = { filename: path.split('/').at(-1), path, filesize: 64, md5sum: expect.any(String) }
      expect(images).toContainEqual(expect.objectContaining(image))
    }
  }
  for (const path of [one, two]) {
    expect(await body(post(`${project.v1}/iou/vms`, { name: 'R1', path }))).toMatchObject({ path })
    expect((await send(`/v2/compute/iou/images/${path}`)).status).toBe(200)
  }
  for (const path of ['..%2fx.bin', '%2fetc%2fx.bin', '.hidden.bin']) {
    expect((await send(`/v1/iou/vms/${path}`, { method: 'POST', body: content })).status).toBe(403)
    expect((await send(`/v2/compute/iou/images/${path}`, { method: 'POST', body: content })).status).toBe(403)
  }
})

test('the image is shown relative to the images directory, whichever path a client sent', async () => {
  const project = await newProject()
  const { v1, v2, view } = await newRouter(project)
  const images = join(view.node_directory, '../../../../../images/iou')
  await mkdir(join(images, 'nested'), { recursive: true })
  await copyFile(join(images, iouImage), join(images, 'nested/deep.bin'))
  for (const [given, shown] of [
    [join(images, iouImage), iouImage],
    [join(images, 'nested/deep.bin'), 'nested/deep.bin'],
    ['nested/deep.bin', 'nested/deep.bin'],
    [`${images}/./nested/../${iouImage}`, iouImage],
  ]) {
    expect(await body(post(`${project.v1}/iou/vms`, { name: 'R1', path: given }))).toMatchObject({ path: shown })
    expect(await body(put(v1, { path: given }))).toMatchObject({ path: shown })
    expect(await body(put(v2, { path: given }))).toMatchObject({ path: shown })
  }
  const elsewhere = join(await freshDirectory(), 'other.bin')
  await copyFile(join(images, iouImage), elsewhere)
  // What a gateway hands on is never in local mode.
  const outside = inject('isWorker') ? { status: 409, image: elsewhere } : { path: elsewhere }
  expect(await body(put(v1, { path: elsewhere }))).toMatchObject(outside)
  for (const path of ['missing.bin', '../iou/handlers.bin', '/etc', 'C:\\images\\x.bin', 'nested']) {
    for (const answer of [await put(v1, { path }), await post(`${project.v1}/iou/vms`, { name: 'R1', path })]) {
      expect([answer.status, await body(answer)]).toMatchObject([409, { image: path }])
    }
  }
  expect(await body(send(v1))).toMatchObject({ path: inject('isWorker') ? iouImage : elsewhere })
})
