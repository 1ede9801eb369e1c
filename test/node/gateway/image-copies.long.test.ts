import { randomBytes } from 'node:crypto'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Compute } from '../../../src/model/compute.ts'
import { requireProgram } from '../../support/require.ts'
import { TestService } from '../../support/service.ts'
import { testWith } from '../../support/test-with.ts'

const images = '/v2/compute/machine-emulator/images'
const embedded = { 'pc.engine': 'embedded' }

testWith(requireProgram('qemu-system-x86_64'))(
  'an image is brought to a compute as it was uploaded, also after a restart of the gateway, and never as another has it',
  async () => {
    const gateway = await TestService.start({ gateway: true })
    const [first, second] = await Promise.all([TestService.start({ ...embedded }), TestService.start({ ...embedded })])
    const register = (compute_id: string, { url }: TestService) => {
      const port = Number(new URL(url).port)
      return gateway.call('POST', '/v2/computes', { compute_id, protocol: 'http', host: '127.0.0.1', port })
    }
    await register('first', first)
    const disk = randomBytes(300_000)
    expect((await gateway.fetch(`${images}/disk.img`, { method: 'POST', body: disk })).status).toBe(204)
    await register('second', second)
    await gateway.end()
    await gateway.restart()
    const connected = async () =>
      (await gateway.call<Compute[]>('GET', '/v2/computes')).filter(({ connected }) => connected).length
    await expect.poll(connected).toBe(2)

    const there = (service: TestService) => join(service.data, 'images/machine-emulator/disk.img')
    const { project_id } = await gateway.call('POST', '/v2/compute/projects', { name: 'lab', compute_id: 'second' })
    const create = async () => {
      const input = { name: 'R1', platform: 'x86_64', hda_disk_image: 'disk.img' }
      const path = `/v2/compute/projects/${project_id}/machine-emulator/nodes`
      const answer = await gateway.fetch(path, { method: 'POST', body: JSON.stringify(input) })
      return [answer.status, await answer.json()]
    }
    await writeFile(there(first), randomBytes(300_000))
    const message = expect.stringContaining('no compute has the version that was uploaded through the gateway')
    expect(await create()).toMatchObject([409, { image: 'disk.img', message }])
    await expect(readFile(there(second))).rejects.toThrow('ENOENT')
    await writeFile(there(first), disk)
    expect(await create()).toMatchObject([201, { name: 'R1' }])
    expect((await readFile(there(second))).equals(disk)).toBe(true)

    // A node of a lab, too, whose image its compute has lost since.
    await rm(there(second))
    await gateway.call('POST', '/v2/projects', { name: 'named', compute_id: 'second' })
    const properties = { platform: 'x86_64', hda_disk_image: 'disk.img' }
    const node = { name: 'R1', node_type: 'machine-emulator', compute_id: 'second', properties }
    expect(await gateway.call('POST', '/v2/projects/named/nodes', node)).toMatchObject({ compute_id: 'second' })
    expect((await readFile(there(second))).equals(disk)).toBe(true)
    const unknown = { ...node, properties: { ...properties, hda_disk_image: 'nobody-has.img' } }
    const refused = await gateway.fetch('/v2/projects/named/nodes', { method: 'POST', body: JSON.stringify(unknown) })
    expect([refused.status, await refused.json()]).toMatchObject([409, { image: 'nobody-has.img' }])
  },
)

testWith(requireProgram('qemu-system-x86_64'))(
  'an image that was uploaded to one compute through the gateway is brought to another, whole or in parts, by any spelling',
  async () => {
    const gateway = await TestService.start({ gateway: true, 'aliases.qemu': 'machine-emulator' })
    const [first, second] = await Promise.all([TestService.start({ ...embedded }), TestService.start({ ...embedded })])
    for (const [compute_id, { url }] of [['first', first] as const, ['second', second] as const]) {
      const port = Number(new URL(url).port)
      await gateway.call('POST', '/v2/computes', { compute_id, protocol: 'http', host: '127.0.0.1', port })
    }
    const disk = randomBytes(300_000)
    const at = (name: string) => `/v2/computes/first/qemu/images/${name}`
    expect((await gateway.fetch(at('whole%20disk.img'), { method: 'POST', body: disk })).status).toBe(204)
    for (const [from, to, status] of [
      [0, 200_000, 308],
      [200_000, 300_000, 204],
    ] as const) {
      const headers = { 'content-range': `bytes ${from}-${to - 1}/300000` }
      const answer = await gateway.fetch(at('parts.img'), { method: 'POST', headers, body: disk.subarray(from, to) })
      expect(answer.status).toBe(status)
    }
    const { project_id } = await gateway.call('POST', '/v2/compute/projects', { name: 'lab', compute_id: 'second' })
    const node = { name: 'R1', platform: 'x86_64', hda_disk_image: 'whole disk.img', hdb_disk_image: 'parts.img' }
    await gateway.call('POST', `/v2/compute/projects/${project_id}/machine-emulator/nodes`, node)
    for (const name of ['whole disk.img', 'parts.img'])
      expect((await readFile(join(second.data, 'images/machine-emulator', name))).equals(disk)).toBe(true)
  },
)
