import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { recordVersion } from '../../../runtime/node/engine/storage/newer-record.ts'
import { protocolVersion } from '../../../runtime/node/keeper/protocol/protocol.ts'
import type { Compute } from '../../../src/model/compute.ts'
import { patch, portOf } from '../../support/gateway-lab.ts'
import { attach, createPc, reserve, start, status } from '../../support/lab.ts'
import { nextProgram, program010 } from '../../support/old-program.ts'
import { readPcap } from '../../support/pcap.ts'
import { bundledProgram, TestService } from '../../support/service.ts'
import { openSocketConsole } from '../../support/socket-console.ts'

const token = 'mixed-versions-0123456789'

const programs = {
  'this version': async () => bundledProgram(),
  '0.1.0': program010,
  'the next version': () => nextProgram(protocolVersion, recordVersion),
}

test.for([
  ['this version', '0.1.0'],
  ['0.1.0', 'this version'],
  ['this version', 'the next version'],
] as const)('a gateway of %s runs labs on computes of %s, by an address and by a tunnel', async ([ours, theirs]) => {
  const gateway = await TestService.startProgram(await programs[ours](), {
    gateway: true,
    'fleet.join_tokens': [token],
  })
  const program = await programs[theirs]()
  const [near, far] = await Promise.all([
    TestService.startProgram(program, { 'pc.engine': 'embedded' }),
    TestService.startProgram(program, { 'pc.engine': 'embedded', 'join.url': gateway.url, 'join.token': token }),
  ])
  const address = { protocol: 'http', host: '127.0.0.1', port: portOf(near) }
  await gateway.call('POST', '/v2/computes', { compute_id: 'near', name: 'near', ...address })
  const farId = (await readFile(join(far.data, 'compute-id'), 'utf8')).trim()
  const connected = async () =>
    (await gateway.call<Compute[]>('GET', '/v2/computes')).filter((it) => it.connected).map((it) => it.compute_id)
  await expect.poll(connected).toEqual(expect.arrayContaining(['near', farId]))
  for (const compute_id of ['near', farId]) await expectLab(gateway, compute_id)
  await expectLink(gateway, ['near', farId], ours === '0.1.0' || theirs === '0.1.0')
})

/** A link to a compute that has joined, which the version 0.1.0 refuses, and has no part in. */
async function expectLink(gateway: TestService, computes: readonly string[], isRefused: boolean): Promise<void> {
  const pcs: string[] = []
  for (const [index, compute_id] of computes.entries()) {
    const input = { name: 'linked', compute_id }
    const { project_id } = await gateway.call<{ project_id: string }>('POST', '/v2/compute/projects', input)
    pcs.push(await createPc(gateway, `/v2/compute/projects/${project_id}`, index + 1))
  }
  const answer = await patch(gateway, ...(pcs as [string, string]))
  const { message } = (await answer.json()) as { message?: string }
  if (!isRefused) return expect(answer.status).toBe(201)
  expect([answer.status, message]).toEqual([409, expect.stringMatching(/no address of (it|the compute)/)])
}

/** Everything that a lab is used for, at a gateway. */
async function expectLab(gateway: TestService, compute_id: string): Promise<void> {
  const input = { name: 'lab', compute_id }
  const { project_id } = await gateway.call<{ project_id: string }>('POST', '/v2/compute/projects', input)
  const project = `/v2/compute/projects/${project_id}`
  const [one, two] = [await createPc(gateway, project, 1), await createPc(gateway, project, 2)]
  const [a, b] = [await reserve(gateway, project), await reserve(gateway, project)]
  await attach(gateway, one, a, b)
  await attach(gateway, two, b, a)
  const port = `${one}/adapters/0/ports/0`
  const { pcap_file_path } = await gateway.call<{ pcap_file_path: string }>('POST', `${port}/start_capture`, {
    capture_file_name: 'mixed.pcap',
  })

  const feed = await gateway.fetch(`${project}/notifications`)
  const lines = feed.body?.pipeThrough(new TextDecoderStream()).getReader()
  await start(gateway, one, two)
  let told = ''
  while (!/"node\.updated".*"started"/.test(told)) {
    const { done, value } = (await lines?.read()) ?? { done: true }
    if (done) throw new Error(`the feed ended after ${told}`)
    told += value
  }
  await lines?.cancel()

  const console = await openSocketConsole(gateway, one)
  await console.expect('PC1> ')
  console.socket.send('ping 10.0.0.2 -c 2 -i 50\r')
  await console.expect('icmp_seq=2 ttl=64')
  await gateway.call('POST', `${port}/stop_capture`)
  const captured = await gateway.fetch(`${project}/files/project-files/captures/${pcap_file_path.split('/').at(-1)}`)
  expect(readPcap(Buffer.from(await captured.arrayBuffer())).records.length).toBeGreaterThanOrEqual(4)

  const file = `${project}/files/notes.txt`
  expect((await gateway.fetch(file, { method: 'POST', body: 'what was done' })).ok).toBe(true)
  expect(await (await gateway.fetch(file)).text()).toBe('what was done')
  const nodes = await gateway.call<{ name: string }[]>('GET', `${project}/pc/nodes`)
  expect(nodes.map(({ name }) => name).sort()).toEqual(['PC1', 'PC2'])
  const missing = await gateway.fetch(`${project}/pc/nodes/${project_id}`)
  expect([missing.status, await missing.json()]).toMatchObject([404, { message: expect.any(String), status: 404 }])
  const wrong = await gateway.fetch(`${project}/pc/nodes`, { method: 'POST', body: '{"name": 7}' })
  expect([wrong.status, await wrong.json()]).toMatchObject([
    400,
    { message: expect.stringContaining('name: '), status: 400 },
  ])

  await gateway.call('POST', `${one}/stop`)
  await console.closed
  expect(await status(gateway, one)).toBe('stopped')
  await gateway.call('DELETE', project)
  expect((await gateway.fetch(project)).status).toBe(404)
}

test('an image keeps its name where a compute of 0.1.0 has it, and gets another one where that one lacks it', async () => {
  const gateway = await TestService.startProgram(await programs['this version'](), { gateway: true })
  const [older, newer] = [
    await TestService.startProgram(await program010(), { 'pc.engine': 'embedded' }),
    await TestService.startProgram(await programs['this version'](), { 'pc.engine': 'embedded' }),
  ]
  for (const [name, service] of [['older', older] as const, ['newer', newer] as const]) {
    const address = { protocol: 'http', host: '127.0.0.1', port: portOf(service) }
    await gateway.call('POST', '/v2/computes', { compute_id: name, name, ...address })
  }
  const images = '/v2/compute/machine-emulator/images'
  const store = (service: TestService, name: string) =>
    service.fetch(`${images}/${name}`, { method: 'POST', body: name })
  await store(gateway, 'both.img')
  await store(newer, 'one.img')
  const rename = async (name: string, path: string) => {
    const answer = await gateway.fetch(`${images}/${name}`, { method: 'PUT', body: JSON.stringify({ path }) })
    return [answer.status, await answer.text()]
  }
  expect(await rename('one.img', 'new.img')).toEqual([204, ''])
  const why = /Compute older: .* no such operation.*; it has its old name on all computes/
  expect(await rename('both.img', 'other.img')).toEqual([501, expect.stringMatching(why)])
  const names = async (service: TestService) =>
    (await service.call<{ path: string }[]>('GET', images)).map(({ path }) => path)
  expect([await names(older), await names(newer)]).toEqual([['both.img'], ['both.img', 'new.img']])
})
