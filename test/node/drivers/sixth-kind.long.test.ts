import { execFile } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { freshDirectory } from '../../support/directory.ts'
import { figure, parseExposition } from '../../support/exposition.ts'
import { extended, lists, programWithMirror, settingsPageWithMirror } from '../../support/more-kinds.ts'
import { freePort } from '../../support/ports.ts'
import { TestService } from '../../support/service.ts'

// test/fixtures/mirror is a kind of node that is in no list: the program is bundled with it in both. Everything else follows.

const mirrorProgram = join(import.meta.dirname, '../../fixtures/mirror/program.js')
let program = ''
beforeAll(async () => {
  program = await programWithMirror()
})

const start = (settings: Record<string, unknown> = {}) =>
  TestService.startProgram(program, { 'mirror.program': mirrorProgram, ...settings })

interface Mirror {
  readonly node_id: string
  readonly polished: number
}

/** A service with a project, and a glass to make mirrors of. */
async function lab() {
  const service = await start()
  await service.fetch('/v2/compute/mirror/images/clear.glass', { method: 'POST', body: 'GLASS clear' })
  const { project_id } = await service.call('POST', '/v2/compute/projects', { name: 'hall' })
  const [v1, v2] = [`/v1/projects/${project_id}/mirror/vms`, `/v2/compute/projects/${project_id}/mirror/nodes`]
  return { service, project_id: String(project_id), v1, v2 }
}

test('a kind needs one import and one entry in each of two lists', async () => {
  for (const list of lists) {
    const before = await readFile(list.file, 'utf8')
    const lines = (text: string) => text.split('\n')
    const added = lines(extended(before, list)).filter((line) => !lines(before).includes(line))
    expect(added).toEqual([expect.stringMatching(/^import /), expect.stringContaining(`, ${list.name}] as const`)])
  }
})

test('its nodes are created, shown and changed in both API versions, each with its own members', async () => {
  const { service, v1, v2 } = await lab()
  const one = await service.call<Mirror>('POST', v2, { name: 'left', glass: 'clear.glass' })
  expect(one).toMatchObject({ name: 'left', glass: 'clear.glass', turns: false, polished: 0, console_type: 'telnet' })
  expect(one).not.toHaveProperty('kind')
  const { node_id, console_type, node_directory, ...rest } = one as Mirror & Record<string, unknown>
  const shown = { vm_id: node_id, vm_directory: node_directory, ...rest }
  expect(await service.call('GET', `${v1}/${node_id}`)).toEqual(shown)
  expect(await service.call('PUT', `${v1}/${node_id}`, { turns: true })).toEqual({ ...shown, turns: true })
  const other = await service.call('POST', v1, { name: 'right', glass: 'clear.glass' })
  expect(await service.call('GET', v2)).toMatchObject([{ name: 'left', turns: true }, { node_id: other.vm_id }])
  const wrong = await service.fetch(v2, { method: 'POST', body: '{"name": "x", "glass": "clear.glass", "turn": 1}' })
  expect([wrong.status, await wrong.json()]).toMatchObject([
    400,
    { message: 'turn: unknown field, did you mean turns?' },
  ])
  const missing = await service.fetch(v2, { method: 'POST', body: '{"name": "x", "glass": "no.glass"}' })
  expect([missing.status, await missing.json()]).toMatchObject([409, { image: 'no.glass' }])
})

test('a node of it runs, has a console and is linked', async () => {
  const { service, v2 } = await lab()
  const { node_id } = await service.call('POST', v2, { name: 'left', glass: 'clear.glass', turns: true })
  const node = `${v2}/${node_id}`
  const [here, there] = [freePort(), freePort()]
  const socket = createSocket('udp4')
  onTestFinished(() => void socket.close())
  socket.bind(there, '127.0.0.1')
  await once(socket, 'listening')
  const nio = { type: 'nio_udp', lport: here, rhost: '127.0.0.1', rport: there }
  await service.call('POST', `${node}/adapters/0/ports/0/nio`, nio)
  expect(await service.call('POST', `${node}/start`)).toMatchObject({ status: 'started' })
  const frame = Buffer.concat([Buffer.alloc(6, 0xaa), Buffer.alloc(6, 0xbb), Buffer.from('0800 and its packet')])
  socket.send(frame, here, '127.0.0.1')
  let back: Buffer = Buffer.alloc(0)
  // The service asks the other end of a link whether it is there, too.
  while (!back.includes('and its packet')) [back] = (await once(socket, 'message')) as [Buffer]
  expect(back.subarray(0, 12)).toEqual(Buffer.concat([Buffer.alloc(6, 0xbb), Buffer.alloc(6, 0xaa)]))
  const metrics = parseExposition(await (await service.fetch('/metrics')).text())
  expect(figure(metrics, 'patchbay_nodes', { kind: 'mirror', status: 'started' })).toBe(1)
  expect((await service.fetch(`${node}/suspend`, { method: 'POST' })).status).toBe(204)
  expect(await service.call('GET', node)).toMatchObject({ status: 'started' })
})

test('its actions are endpoints of the API versions that it names, and their changes outlive the service', async () => {
  const { service, v1, v2, project_id } = await lab()
  const { node_id } = await service.call('POST', v2, { name: 'left', glass: 'clear.glass' })
  const polish = (nodes: string, times: number) =>
    service.fetch(`${nodes}/${node_id}/polish`, { method: 'POST', body: JSON.stringify({ times }) })
  expect(await (await polish(v2, 3)).json()).toEqual({ polished: 3 })
  expect((await polish(v2, 0)).status).toBe(400)
  expect((await polish(v1, 1)).status).toBe(404)
  for (const base of ['/v1', '/v2/compute']) {
    expect(await service.call('GET', `${base}/mirror/glasses`)).toEqual([{ name: 'clear.glass' }])
  }
  await service.call('POST', `${v2}/${node_id}/start`)
  expect((await polish(v2, 1)).status).toBe(409)
  await service.end()
  await service.restart()
  await service.call('POST', '/v2/compute/projects', { name: 'hall', project_id })
  expect(await service.call('GET', `${v2}/${node_id}`)).toMatchObject({ status: 'stopped', polished: 3 })
})

test('its images, aliases and capabilities are known', async () => {
  const { service, project_id } = await lab()
  await service.fetch('/v2/compute/mirror/images/wood.glass', { method: 'POST', body: 'WOOD' })
  expect(await service.call('GET', '/v2/compute/mirror/images')).toMatchObject([{ filename: 'clear.glass' }])
  const { node_types } = await service.call('GET', '/v2/compute/capabilities')
  expect(node_types).toContain('mirror')
  const foreign = await service.fetch(`/v2/compute/projects/${project_id}/looking-glass/nodes`)
  expect([foreign.status, await foreign.json()]).toMatchObject([
    404,
    { message: expect.stringContaining('"looking-glass" is called "mirror" here') },
  ])
})

test('the reference has its endpoints and schemas, and its group stands with those of the other kinds', async () => {
  const service = await start()
  const { paths, components, tags } = await service.call<{
    paths: Record<string, object>
    components: { schemas: object }
    tags: { name: string }[]
  }>('GET', '/openapi.json')
  const own = Object.keys(paths).filter((path) => path.includes('/mirror/'))
  expect(own).toEqual(
    expect.arrayContaining([
      '/v1/projects/{project_id}/mirror/vms/{vm_id}/start',
      '/v2/compute/projects/{project_id}/mirror/nodes/{node_id}/adapters/{adapter_number}/ports/{port_number}/nio',
      '/v2/compute/projects/{project_id}/mirror/nodes/{node_id}/polish',
      '/v2/compute/mirror/images/{filename}',
    ]),
  )
  expect(own).not.toContain('/v1/projects/{project_id}/mirror/vms/{vm_id}/polish')
  expect(Object.keys(components.schemas)).toEqual(
    expect.arrayContaining(['MirrorNode', 'MirrorNodeCreate', 'MirrorInstance', 'MirrorInstanceUpdate', 'Glass']),
  )
  const names = tags.map(({ name }) => name)
  expect(names.indexOf('v2 mirror nodes')).toBeLessThan(names.indexOf('v2 links'))
})

test('its settings are flags, variables and rows of the table, and the doctor checks what it needs', async () => {
  const run = async (...args: string[]) => (await promisify(execFile)(process.execPath, [program, ...args])).stdout
  expect(await run('serve', '--help')).toContain('--mirror-program VALUE')
  expect(await run('config', '--mirror-program', mirrorProgram)).toMatch(/^mirror\.program +\S+program\.js +flag/m)
  expect(await settingsPageWithMirror(await freshDirectory())).toContain(
    '\n| `mirror.program` | `mirror` | Path of the mirror program',
  )
  const service = await start()
  const { checks } = await service.call<{ checks: object[] }>('GET', '/v2/compute/doctor')
  const found = `mirror 1.0, ${mirrorProgram}`
  expect(checks).toContainEqual({ name: 'mirror', status: 'ok', found, fix: null })
})

test('a gateway of the same program hands on its nodes, and merges what its computes say', async () => {
  const { service, v1, v2, project_id } = await lab()
  const { node_id } = await service.call('POST', v2, { name: 'left', glass: 'clear.glass' })
  const gateway = await start({ gateway: true })
  const { hostname, port } = new URL(service.url)
  await gateway.call('POST', '/v2/computes', { protocol: 'http', host: hostname, port: Number(port) })
  expect(await gateway.call('GET', `${v1}/${node_id}`)).toMatchObject({ vm_id: node_id, project_id })
  expect(await gateway.call('POST', `${v2}/${node_id}/polish`, { times: 2 })).toEqual({ polished: 2 })
  expect(await gateway.call('GET', '/v2/compute/mirror/glasses')).toEqual([{ name: 'clear.glass' }])
})
