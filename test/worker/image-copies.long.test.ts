import { randomBytes } from 'node:crypto'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { requireProgram } from '../support/require.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'
import { WorkerGateway } from '../support/worker-gateway.ts'

const projects = '/v2/compute/projects'
const images = '/v2/compute/machine-emulator/images'
const embedded = { 'pc.engine': 'embedded' }

testWith(requireProgram('qemu-system-x86_64'))(
  'the Worker brings an image to a compute that lacks it, whether it has an address or has joined',
  async () => {
    const gateway = await WorkerGateway.start()
    const { token } = await gateway.call('POST', '/v2/tokens', { name: 'lab', purpose: 'join' })
    const register = async (compute_id: string, service: TestService) => {
      const port = Number(new URL(service.url).port)
      await gateway.call('POST', '/v2/computes', { compute_id, protocol: 'http', host: '127.0.0.1', port })
    }
    const [first, second, third] = await Promise.all([
      TestService.start({ ...embedded }),
      TestService.start({ ...embedded }),
      TestService.start({
        ...embedded,
        ...{ 'join.url': gateway.url.replace('http', 'ws'), 'join.token': token },
      }),
    ])
    const joined = (await readFile(join(third.data, 'compute-id'), 'utf8')).trim()
    await gateway.untilConnected(joined)
    await register('first', first)
    // Both that are there get the upload; then the one that has joined loses it, and another one is registered.
    const disk = randomBytes(300_000)
    expect((await gateway.fetch('POST', `${images}/disk.img`, undefined, { body: disk })).status).toBe(204)
    await third.end()
    await rm(join(third.data, 'images/machine-emulator/disk.img'))
    await third.restart()
    await gateway.untilConnected(joined)
    await register('second', second)
    for (const [compute_id, service] of [['second', second] as const, [joined, third] as const]) {
      const { project_id } = await gateway.call('POST', projects, { name: `lab ${compute_id}`, compute_id })
      const path = `${projects}/${project_id}/machine-emulator/nodes`
      const input = { name: 'R1', platform: 'x86_64', qemu_path: 'qemu-system-x86_64' }
      const missing = await gateway.fetch('POST', path, { ...input, hda_disk_image: 'nobody-has.img' })
      expect([missing.status, await missing.json()]).toMatchObject([409, { image: 'nobody-has.img' }])
      const answer = await gateway.fetch('POST', path, { ...input, hda_disk_image: 'disk.img' })
      expect([compute_id, answer.status, await answer.json()]).toMatchObject([compute_id, 201, { name: 'R1' }])
      const brought = await readFile(join(service.data, 'images/machine-emulator/disk.img'))
      expect(brought.equals(disk)).toBe(true)
      await rm(join(service.data, 'images/machine-emulator/disk.img'))
      const lab = `/v2/projects/named%20${compute_id}`
      await gateway.call('POST', '/v2/projects', { name: `named ${compute_id}`, compute_id })
      const { name: _, ...machine } = input
      const properties = { ...machine, hda_disk_image: 'disk.img' }
      const node = { name: 'R2', node_type: 'machine-emulator', compute_id, properties }
      expect(await gateway.call('POST', `${lab}/nodes`, node)).toMatchObject({ name: 'R2', compute_id })
    }
  },
)

testWith(requireProgram('qemu-system-x86_64'))(
  'the Worker brings no image to a compute with an address that was not uploaded through it, and says why',
  async () => {
    const [gateway, first, second] = await Promise.all([
      WorkerGateway.start(),
      TestService.start({ ...embedded }),
      TestService.start({ ...embedded }),
    ])
    for (const [compute_id, service] of [['first', first] as const, ['second', second] as const]) {
      const port = Number(new URL(service.url).port)
      await gateway.call('POST', '/v2/computes', { compute_id, protocol: 'http', host: '127.0.0.1', port })
    }
    await first.fetch(`${images}/own.img`, { method: 'POST', body: 'x' })
    const { project_id } = await gateway.call('POST', projects, { name: 'lab', compute_id: 'second' })
    const input = { name: 'R1', platform: 'x86_64', hda_disk_image: 'own.img' }
    const answer = await gateway.fetch('POST', `${projects}/${project_id}/machine-emulator/nodes`, input)
    const message = expect.stringContaining('the gateway has no digest of it')
    expect([answer.status, await answer.json()]).toMatchObject([409, { image: 'own.img', message }])

    // An upload to one compute through the Worker is one.
    const upload = await gateway.fetch('POST', '/v2/computes/first/machine-emulator/images/own.img', undefined, {
      body: 'y',
    })
    expect(upload.status).toBe(204)
    await gateway.call('POST', `${projects}/${project_id}/machine-emulator/nodes`, input)
    expect(await readFile(join(second.data, 'images/machine-emulator/own.img'), 'utf8')).toBe('y')
  },
)
