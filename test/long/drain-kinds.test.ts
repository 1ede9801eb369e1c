import { createHash } from 'node:crypto'
import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { LabJob } from '../../src/model/lab/job.ts'
import type { LabProject } from '../../src/model/lab/project.ts'
import { idling } from '../stand-in/mips/programs.ts'
import { freshDirectory } from '../support/directory.ts'
import { portOf } from '../support/gateway-lab.ts'
import { iourc, standIn } from '../support/iou.ts'
import { nodesOf } from '../support/lab-over-computes.ts'
import { hangMs } from '../support/limits.ts'
import { runRoutersAlone } from '../support/routers-alone.ts'
import { TestService } from '../support/service.ts'

runRoutersAlone()

it('moves the linked clone of a machine and the configurations of routers, also in an archive', async () => {
  const sha256 = createHash('sha256')
    .update(await readFile(await standIn()))
    .digest('hex')
  // A licence belongs to a host, and does not move.
  const licence = join(await freshDirectory(), 'iourc')
  await writeFile(licence, iourc())
  const allowing = { executables: [sha256], 'iou.iourc_path': licence }
  const [gateway, a, b] = await Promise.all([
    TestService.start({ gateway: true, 'fleet.keep_archives': true, 'rate_limit.per_s': 0 }),
    TestService.start(allowing),
    TestService.start(allowing),
  ])
  for (const [compute_id, service] of Object.entries({ a, b })) {
    // Images that an administrator has put there.
    const images = join(service.data, 'images')
    await copyFile(await standIn(), join(images, 'iou/stand-in.bin'))
    await writeFile(join(images, 'dynamips/router.image'), Buffer.from(idling))
    await writeFile(join(images, 'machine-emulator/disk.img'), Buffer.alloc(1 << 20, 7))
    const input = { compute_id, protocol: 'http', host: '127.0.0.1', port: portOf(service) }
    await gateway.call('POST', '/v2/computes', input)
  }
  const { project_id } = await gateway.call<LabProject>('POST', '/v2/projects', { name: 'lab', compute_id: 'a' })
  const path = `/v2/projects/${project_id}`
  const kinds = {
    M: ['machine-emulator', { platform: 'x86_64', ram: 64, hda_disk_image: 'disk.img', console_type: 'none' }],
    I: ['iou', { path: 'stand-in.bin' }],
    D: ['dynamips', { platform: 'c7200', image: 'router.image' }],
  } as const
  for (const [name, [node_type, properties]] of Object.entries(kinds))
    await gateway.call('POST', `${path}/nodes`, { name, node_type, compute_id: 'a', properties })
  const configs = [
    ['I', 'startup'],
    ['D', 'startup'],
    ['D', 'private'],
  ] as const
  const configOf = ([node, name]: (typeof configs)[number]) => `${path}/nodes/${node}/config?name=${name}`
  const textOf = ([node, name]: (typeof configs)[number]) => `hostname ${node}\n! ${name} ${project_id}`
  for (const config of configs) {
    const answer = await gateway.fetch(configOf(config), { method: 'PUT', body: textOf(config) })
    expect(answer.status).toBe(204)
  }
  // Its first start makes the linked clone.
  const runs = async (...names: string[]) => {
    for (const name of names) await gateway.call('POST', `${path}/nodes/${name}/start`)
    for (const name of names) await gateway.call('POST', `${path}/nodes/${name}/stop`)
  }
  await runs('M')
  const clone = async () => {
    const answer = await gateway.fetch(`${path}/nodes/M/files/hda_disk.qcow2`)
    expect(answer.status).toBe(200)
    return Buffer.from(await answer.arrayBuffer())
  }
  const before = await clone()

  const isAt = async (compute: string) => {
    expect((await nodesOf(gateway, path)).map(({ compute_id }) => compute_id)).toEqual([compute, compute, compute])
    // A router that has run ends its configuration with empty lines.
    for (const config of configs)
      expect((await (await gateway.fetch(configOf(config))).text()).trimEnd()).toBe(textOf(config))
    expect((await clone()).subarray(0, 4).toString('latin1')).toBe('QFI\xfb')
    await runs('M', 'I')
  }
  const drained = async (id: string) => {
    const { job_id } = await gateway.call<LabJob>('POST', `/v2/computes/${id}/drain`)
    const job = () => gateway.call<LabJob>('GET', `/v2/jobs/${job_id}`)
    await expect.poll(async () => (await job()).status, { timeout: 2 * hangMs }).not.toBe('running')
    expect(await job()).toMatchObject({ status: 'done', done: 1, reason: null })
  }
  await drained('a')
  expect((await clone()).byteLength).toBe(before.byteLength)
  await isAt('b')

  await gateway.call('POST', `${path}/close`)
  const shown = () => gateway.call<LabProject>('GET', path)
  await expect.poll(async () => (await shown()).archived, { timeout: hangMs }).toBe(true)
  await gateway.call('PUT', '/v2/computes/a', { accepts_projects: true })
  await b.kill('SIGKILL')
  await expect.poll(async () => (await shown()).status_reason, { timeout: 2 * hangMs }).toMatch(/not been connected/)
  await drained('b')
  await gateway.call('POST', `${path}/open`)
  await isAt('a')
})
