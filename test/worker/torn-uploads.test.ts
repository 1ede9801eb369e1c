import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { TestService } from '../support/service.ts'
import {
  everyWay,
  expectTornUploadsChangeNothing,
  imagesOf,
  projects,
  tear,
  untilInFlight,
} from '../support/torn-uploads.ts'
import { adminToken, WorkerGateway } from '../support/worker-gateway.ts'

const startWorker = async () => Object.assign(await WorkerGateway.start(), { token: adminToken })

test('an upload whose connection breaks changes nothing on computes with an address, and they stay connected', async () => {
  const [gateway, a, b] = await Promise.all([
    startWorker(),
    TestService.start({ 'pc.engine': 'embedded' }),
    TestService.start({ 'pc.engine': 'embedded' }),
  ])
  await expectTornUploadsChangeNothing(gateway, a, b)
})

test('an upload whose connection breaks changes nothing on a compute that has joined, and a download is not whole', async () => {
  const gateway = await startWorker()
  const { token } = await gateway.call('POST', '/v2/tokens', { name: 'lab', purpose: 'join' })
  const service = await TestService.start({
    ...{ 'pc.engine': 'embedded' },
    ...{ 'join.url': gateway.url.replace('http', 'ws'), 'join.token': token },
  })
  const id = (await readFile(join(service.data, 'compute-id'), 'utf8')).trim()
  await gateway.untilConnected(id)
  const { project_id } = await gateway.call('POST', projects, { name: 'lab' })
  const file = `${projects}/${project_id}/files/notes.txt`
  expect((await gateway.fetch('POST', file, undefined, { body: 'kept' })).ok).toBe(true)
  const reached = (count: number) => untilInFlight(() => service.fetch('/metrics'), count)
  const paths = [
    file,
    `/v1/projects/${project_id}/files/notes.txt`,
    '/v2/compute/machine-emulator/images/v2.img',
    `/v2/computes/${id}/machine-emulator/images/handed-on.img`,
  ]
  for (const path of paths)
    for (const way of everyWay) {
      await tear(gateway, { path, ...way }, () => reached(1))
      await reached(0)
      const kept = [await (await gateway.fetch('GET', file)).text(), await imagesOf([service])]
      expect([path, way, ...kept]).toEqual([path, way, 'kept', []])
    }
  expect((await gateway.fetch('POST', file, undefined, { body: 'whole' })).ok).toBe(true)
  expect(await (await gateway.fetch('GET', file)).text()).toBe('whole')

  // More than sockets and the window of the tunnel hold.
  const bytes = 24 * 2 ** 20
  const image = `/v2/computes/${id}/machine-emulator/images/large.img`
  expect((await gateway.fetch('POST', image, undefined, { body: new Uint8Array(bytes) })).status).toBe(204)
  const ways = [image, '/v2/compute/machine-emulator/images/large.img']
  for (const path of ways) expect((await (await gateway.fetch('GET', path)).arrayBuffer()).byteLength).toBe(bytes)
  const answers = await Promise.all(ways.map((path) => gateway.fetch('GET', path)))
  await service.kill('SIGKILL')
  for (const answer of answers) {
    expect(answer.headers.get('content-length')).toBe(String(bytes))
    await expect(answer.arrayBuffer()).rejects.toThrow()
  }
})
