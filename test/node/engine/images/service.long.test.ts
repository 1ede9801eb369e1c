import { execFileSync } from 'node:child_process'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { requireProgram } from '../../../support/require.ts'
import { TestService } from '../../../support/service.ts'
import { testWith } from '../../../support/test-with.ts'

const images = '/v2/compute/machine-emulator/images'

/** An upload that was begun; `drop` breaks its connection. */
function begin(service: TestService, name: string, headers: Record<string, string>, first: string) {
  const upload = request(`${service.url}${images}/${name}`, { method: 'POST', headers })
  upload.on('error', () => {})
  upload.write(first)
  return { drop: () => upload.destroy() }
}

const hidden = async (own: string) => (await readdir(own)).filter((name) => name.startsWith('.'))

test('a service that is killed in the middle of uploads leaves the old image, and the next one cleans up', async () => {
  const service = await TestService.start()
  const own = join(service.data, 'images/machine-emulator')
  await service.fetch(`${images}/disk`, { method: 'POST', body: 'old' })
  begin(service, 'disk', { 'content-length': '1000' }, 'half')
  begin(service, 'vendor/disk', { 'content-length': '1000' }, 'half')
  begin(service, 'disk', { 'content-length': '1000', 'content-range': 'bytes 0-999/1000' }, 'half')
  await expect.poll(() => hidden(own)).toHaveLength(2)
  await expect.poll(() => hidden(join(own, 'vendor')).catch(() => [])).toHaveLength(1)
  await writeFile(join(own, '.mine'), 'not of the service')
  await mkdir(join(own, '.patchbay-0123456789abcdef.disk'))
  await service.kill('SIGKILL')
  expect(await hidden(own)).toHaveLength(4)
  await service.restart()
  expect(await hidden(own)).toEqual(['.mine'])
  expect(await readdir(join(own, 'vendor'))).toEqual([])
  expect(await readFile(join(own, 'disk'), 'utf8')).toBe('old')
  expect(await service.call('GET', images)).toMatchObject([{ path: 'disk', filesize: 3 }])
})

test('an upload whose connection broke is continued, also one that was not in parts', async () => {
  const service = await TestService.start()
  const own = join(service.data, 'images/machine-emulator')
  const { drop } = begin(service, 'disk', { 'content-length': '8', 'content-range': 'bytes 0-7/8' }, 'half')
  const ask = () => service.fetch(`${images}/disk`, { method: 'POST', headers: { 'content-range': 'bytes */8' } })
  await expect.poll(async () => (await ask()).headers.get('range')).toBe('bytes=0-3')
  drop()
  const rest = { method: 'POST', body: 'half', headers: { 'content-range': 'bytes 4-7/8' } }
  expect((await service.fetch(`${images}/disk`, rest)).status).toBe(204)
  expect(await (await service.fetch(`${images}/disk`)).text()).toBe('halfhalf')
  const whole = begin(service, 'other', { 'content-length': '8' }, 'half')
  await expect.poll(() => hidden(own)).toHaveLength(1)
  whole.drop()
  const other = (range: string, body?: string) =>
    service.fetch(`${images}/other`, { method: 'POST', ...(body && { body }), headers: { 'content-range': range } })
  await expect.poll(async () => (await other('bytes */8')).headers.get('range')).toBe('bytes=0-3')
  expect((await other('bytes 4-7/8', 'rest')).status).toBe(204)
  expect(await (await service.fetch(`${images}/other`)).text()).toBe('halfrest')
  // Of what came without its length nobody can say what is missing.
  const endless = begin(service, 'third', { 'transfer-encoding': 'chunked' }, 'half')
  await expect.poll(() => hidden(own)).toHaveLength(1)
  endless.drop()
  await expect.poll(() => hidden(own)).toEqual([])
})

testWith(requireProgram('qemu-system-x86_64'))(
  'an image that a node of an open project or another image needs is neither deleted nor renamed',
  async () => {
    const service = await TestService.start()
    const own = join(service.data, 'images/machine-emulator')
    const make = (...args: string[]) => execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', ...args])
    make(join(own, 'base.qcow2'), '1M')
    make('-F', 'qcow2', '-b', 'base.qcow2', join(own, 'child.qcow2'))
    const remove = async (name: string) => {
      const answer = await service.fetch(`${images}/${name}`, { method: 'DELETE' })
      return answer.status === 204 ? 'deleted' : ((await answer.json()) as { message: string }).message
    }
    const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
    const nodes = `/v2/compute/projects/${project_id}/machine-emulator/nodes`
    const input = { name: 'R1', platform: 'x86_64', hda_disk_image: 'child.qcow2' }
    await service.call('POST', nodes, input)
    const rename = async (name: string) => {
      const answer = await service.fetch(`${images}/${name}`, { method: 'PUT', body: '{"path": "other.qcow2"}' })
      return answer.status === 204 ? 'renamed' : ((await answer.json()) as { message: string }).message
    }
    for (const change of [remove, rename]) {
      expect(await change('child.qcow2')).toBe('image: "child.qcow2" is needed by the node R1')
      expect(await change('base.qcow2')).toBe('image: "base.qcow2" is needed by the image child.qcow2')
    }
    await service.call('POST', `/v2/compute/projects/${project_id}/close`)
    expect(await rename('child.qcow2')).toBe('renamed')
    make('-F', 'qcow2', '-b', 'base.qcow2', join(own, 'child.qcow2'))
    expect(await remove('other.qcow2')).toBe('deleted')
    expect(await remove('child.qcow2')).toBe('deleted')
    expect(await remove('base.qcow2')).toBe('deleted')
    expect(await service.call('GET', images)).toEqual([])
  },
)

test('an image larger than the limit is refused before it is sent, and a range has its length', async () => {
  const service = await TestService.start({ 'limits.image_gb': 1 })
  const headers = { 'content-range': `bytes 0-3/${2 ** 30 + 1}` }
  const answer = await service.fetch(`${images}/disk`, { method: 'POST', body: 'half', headers })
  expect(answer.status).toBe(413)
  expect(await answer.json()).toMatchObject({ message: expect.stringContaining('limits.image_gb') })
  await service.fetch(`${images}/disk`, { method: 'POST', body: 'hello' })
  const range = await service.fetch(`${images}/disk`, { headers: { range: 'bytes=1-3' } })
  expect(range.headers.get('content-length')).toBe('3')
  expect(await range.text()).toBe('ell')
})

test('outside local mode an absolute path of a disk is refused', async () => {
  const service = await TestService.start({ local: false })
  const input = { path: join(service.data, 'disk'), format: 'raw', size: 1 }
  const answer = await service.fetch('/v2/compute/machine-emulator/img', {
    method: 'POST',
    body: JSON.stringify(input),
  })
  expect(answer.status).toBe(403)
  expect(await answer.json()).toEqual({ message: expect.stringContaining('local mode'), status: 403 })
})
