import { expect, test } from 'vitest'
import type { Compute } from '../../../src/model/compute.ts'
import type { Project } from '../../../src/model/project.ts'
import { json, openFleet, StandIn } from '../../support/fleet.ts'
import { startFleetGateway } from '../../support/gateway.ts'
import { GatewayLab } from '../../support/gateway-lab.ts'
import { openSocketConsole } from '../../support/socket-console.ts'

const lab = GatewayLab.forAll()
const local = '/v2/computes/local'

test('at a gateway requests to the compute local follow the placements, and no list has it', async () => {
  const { gateway } = lab
  const listed = await gateway.call<Compute[]>('GET', '/v2/computes')
  expect(listed.map(({ compute_id }) => compute_id)).not.toContain('local')
  const made = await gateway.fetch(`${local}/projects`, { method: 'POST', body: '{"name": "lab"}' })
  expect([made.status, made.headers.get('x-patchbay-compute')]).toEqual([
    201,
    expect.stringMatching(new RegExp(`^(a|b|${lab.farId})$`)),
  ])
  const { project_id } = (await made.json()) as Project
  // Also as where a project is wanted.
  const wanted = await gateway.call<Project>('POST', '/v2/compute/projects', { name: 'x', compute_id: 'local' })
  const all = (await gateway.call<Project[]>('GET', `${local}/projects`)).map((it) => it.project_id)
  expect(all).toEqual(expect.arrayContaining([project_id, wanted.project_id]))

  const nodes = `${local}/projects/${project_id}/pc/nodes`
  const { node_id } = await gateway.call<{ node_id: string }>('POST', nodes, { name: 'PC1' })
  await gateway.call('POST', `${nodes}/${node_id}/start`)
  const console = await openSocketConsole(gateway, `${nodes}/${node_id}`)
  await console.expect('PC1> ')
  const upload = await gateway.fetch(`${local}/machine-emulator/images/x.img`, { method: 'POST', body: 'content' })
  expect(upload.status).toBe(204)
  const held = lab.computes.map((it) => it.call<object[]>('GET', '/v2/compute/machine-emulator/images'))
  expect((await Promise.all(held)).map((images) => images.length)).toEqual([1, 1, 1])
  expect(await (await gateway.fetch(`${local}/machine-emulator/images/x.img`)).text()).toBe('content')
  const images = await gateway.call<{ filename: string }[]>('GET', `${local}/machine-emulator/images`)
  expect(images).toMatchObject([{ filename: 'x.img' }])
  expect(await gateway.call('GET', `${local}/ports`)).toMatchObject({ udp_ports: expect.any(Array) })
  const place = await gateway.call<{ endpoint: string }>('GET', `/v2/computes/endpoint/local/pc/nodes`)
  expect(place.endpoint).toBe(`${gateway.url}/v2/compute/pc/nodes`)
  const missing = await gateway.fetch(`${local}/auto_idlepc`, {
    method: 'POST',
    body: JSON.stringify({ platform: 'c3745', image: 'nothing.bin', ram: 256 }),
  })
  expect([missing.status, await missing.json()]).toMatchObject([409, { image: 'nothing.bin' }])
  await gateway.call('DELETE', `/v2/compute/projects/${project_id}`)
})

test('the idle PC of local is found by a compute that has the image', async () => {
  const [without, holder] = [await StandIn.start(), await StandIn.start()]
  holder.answer = (req, res) => {
    if (req.url === '/v2/compute/dynamips/images/c3745.bin') {
      const part = { 'Content-Range': 'bytes 0-0/9', 'Content-Length': '1', ETag: '"1"' }
      res.writeHead(206, { ...part, 'Last-Modified': new Date(0).toUTCString() })
      return void res.end('x')
    }
    if (req.url === '/v2/computes/local/auto_idlepc') return json(res, 200, { idlepc: '0x60608040' })
    json(res, 404, { message: 'There is nothing', status: 404 })
  }
  const { fleet } = await openFleet()
  await fleet.create(without.input())
  await fleet.create(holder.input({ compute_id: 'two' }))
  const { app } = startFleetGateway(fleet)
  const body = JSON.stringify({ platform: 'c3745', image: 'c3745.bin', ram: 256 })
  const answer = await app.fetch(new Request(`http://localhost${local}/auto_idlepc`, { method: 'POST', body }))
  expect([answer.status, await answer.json()]).toEqual([200, { idlepc: '0x60608040' }])
  expect(answer.headers.get('x-patchbay-compute')).toBe('two')
  expect(without.asked).not.toContain('POST /v2/computes/local/auto_idlepc')
})
