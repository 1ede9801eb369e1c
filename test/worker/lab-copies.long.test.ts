import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { LabDrawing } from '../../src/model/lab/drawing.ts'
import type { LabJob } from '../../src/model/lab/job.ts'
import type { LabLink } from '../../src/model/lab/link.ts'
import type { LabProject } from '../../src/model/lab/project.ts'
import type { LabSnapshot } from '../../src/model/lab/snapshot.ts'
import { portOf } from '../support/gateway-lab.ts'
import { labOver, linked, nodesOf } from '../support/lab-over-computes.ts'
import { hangMs } from '../support/limits.ts'
import { TestService } from '../support/service.ts'
import { WorkerGateway } from '../support/worker-gateway.ts'
import { type ZipMember, zipOf } from '../support/zip.ts'

const embedded = { 'pc.engine': 'embedded' }
const projects = '/v2/projects'

let gateway: WorkerGateway
/** Registered by its address. */
let near: TestService
/** Has joined by a tunnel. */
let far: TestService
let farId: string

beforeAll(async () => {
  gateway = await WorkerGateway.startForAll(await mkdtemp(join(tmpdir(), 'patchbay-')), { RATE_PER_S: '0' })
  const { token } = await gateway.call('POST', '/v2/tokens', { name: 'far', purpose: 'join' })
  const joined = { 'join.url': gateway.url.replace('http', 'ws'), 'join.token': token }
  ;[near, far] = await Promise.all([
    TestService.startForAll(embedded),
    TestService.startForAll({ ...embedded, ...joined }),
  ])
  const input = { compute_id: 'near', protocol: 'http', host: '127.0.0.1', port: portOf(near) }
  await gateway.call('POST', '/v2/computes', input)
  farId = (await readFile(join(far.data, 'compute-id'), 'utf8')).trim()
  await gateway.untilConnected(farId)
})

afterAll(async () => {
  await Promise.all([near, far].map((service) => service?.close()))
  await gateway?.stop()
  if (gateway !== undefined) await rm(gateway.data, { recursive: true, force: true })
})

/** A lab with two linked pcs, of which the second has a file. */
async function labWithFile(compute: string, second = compute): Promise<{ path: string; file: Buffer; name: string }> {
  const path = await labOver(gateway, [compute, second])
  if (compute === second) await linked(gateway, path, 'PC1', 'PC2')
  const file = Buffer.concat([randomBytes(3 << 20), Buffer.alloc(1 << 20)])
  await gateway.fetch('POST', `${path}/nodes/PC2/files/disk.img`, undefined, { body: new Uint8Array(file) })
  const { name } = await gateway.call<LabProject>('GET', path)
  return { path, file, name }
}

const fileOf = async (path: string): Promise<Buffer> =>
  Buffer.from(await (await gateway.fetch('GET', `${path}/nodes/PC2/files/disk.img`)).arrayBuffer())

const imported = (body: Uint8Array<ArrayBuffer>, { id = crypto.randomUUID() as string, query = '' } = {}) =>
  gateway.fetch('POST', `${projects}/${id}/import${query}`, undefined, { body })

describe('an archive of a lab', () => {
  it.each([
    ['without compression, of a compute with an address', () => 'near', '?compression=none'],
    ['with compression, of a compute that has joined', () => farId, ''],
  ])('becomes the same lab again: %s', async (_, compute, query) => {
    const { path, file, name } = await labWithFile(compute())
    const answer = await gateway.fetch('GET', `${path}/export${query}`)
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/gns3project'])
    const archive = new Uint8Array(await answer.arrayBuffer())
    if (query === '') expect(archive.byteLength).toBeLessThan(file.byteLength)
    const made = await imported(archive)
    const { project_id, ...shown }: LabProject = await made.json()
    expect([made.status, shown]).toMatchObject([201, { status: 'closed' }])
    expect(shown.name).not.toBe(name)
    const copy = `${projects}/${project_id}`
    await gateway.call('POST', `${copy}/open`)
    expect((await nodesOf(gateway, copy)).map((node) => [node.name, node.status_reason])).toEqual([
      ['PC1', null],
      ['PC2', null],
    ])
    expect(await gateway.call<LabLink[]>('GET', `${copy}/links`)).toHaveLength(1)
    expect((await fileOf(copy)).equals(file)).toBe(true)
    for (const lab of [path, copy]) await gateway.call('DELETE', lab)
  })

  it('has its snapshots, which are those of the imported lab', async () => {
    const { path, file } = await labWithFile('near')
    const write = (text: string) => gateway.fetch('POST', `${path}/nodes/PC1/files/notes`, undefined, { body: text })
    await write('first')
    await gateway.call('POST', `${path}/snapshots`, { name: 'one' })
    await write('second')
    await gateway.call('POST', `${path}/snapshots`, { name: 'two' })
    await write('third')
    const archive = new Uint8Array(
      await (await gateway.fetch('GET', `${path}/export?include_snapshots=yes`)).arrayBuffer(),
    )
    const id = crypto.randomUUID()
    expect((await imported(archive, { id })).status).toBe(201)
    const copy = `${projects}/${id}`
    await gateway.call('POST', `${copy}/open`)
    const snapshots = await gateway.call<LabSnapshot[]>('GET', `${copy}/snapshots`)
    expect(snapshots.map(({ name }) => name)).toEqual(['one', 'two'])
    const notes = async () => (await gateway.fetch('GET', `${copy}/nodes/PC1/files/notes`)).text()
    expect(await notes()).toBe('third')
    for (const [at, text] of [
      [1, 'second'],
      [0, 'first'],
    ] as const) {
      await gateway.call('POST', `${copy}/snapshots/${snapshots[at]?.snapshot_id}/restore`)
      expect(await notes()).toBe(text)
    }
    expect((await fileOf(copy)).equals(file)).toBe(true)
    for (const lab of [path, copy]) await gateway.call('DELETE', lab)
  })

  it('is read by a service on Node, and the archive of one is read here', async () => {
    const { path, file, name } = await labWithFile('near')
    const archive = new Uint8Array(await (await gateway.fetch('GET', `${path}/export`)).arrayBuffer())
    const service = await TestService.start(embedded)
    const id = crypto.randomUUID()
    await service.fetch(`${projects}/${id}/import`, { method: 'POST', body: archive })
    await service.call('POST', `${projects}/${id}/open`)
    const there = await service.fetch(`${projects}/${id}/nodes/PC2/files/disk.img`)
    expect(Buffer.from(await there.arrayBuffer()).equals(file)).toBe(true)
    const back = await service.fetch(`${projects}/${id}/export`)
    const made = await imported(new Uint8Array(await back.arrayBuffer()), { query: '?name=back' })
    expect([made.status, await made.json()]).toMatchObject([201, { name: 'back' }])
    expect(name).not.toBe('back')
    for (const lab of [path, `${projects}/back`]) await gateway.call('DELETE', lab)
  })

  const document = { name: 'project.gns3', data: '{}' }
  const named = {
    name: 'project.gns3',
    data: '{"name":"x","type":"topology","revision":9,"version":"2.2.59","topology":{"nodes":[],"links":[],"drawings":[],"computes":[]}}',
  }
  it.each<[string, readonly ZipMember[], number, RegExp]>([
    ['a name that leaves it', [named, { name: '../x', data: 'x' }], 400, /not a valid file name/],
    ['a name twice', [document, document], 400, /twice/],
    ['a link', [document, { name: 'x', data: '/etc', mode: 0o120777 }], 400, /a link or a device/],
    ['an encrypted file', [{ ...document, flags: 0x801 }], 400, /encrypted/],
    ['a wrong sum', [{ ...document, crc: 1 }], 400, /damaged/],
    ['no document', [{ name: 'x', data: 'x' }], 400, /has no project\.gns3/],
  ])('with %s is refused, and nothing is left of it', async (_, members, status, says) => {
    const id = crypto.randomUUID()
    const answer = await imported(new Uint8Array(zipOf(members)), { id })
    expect([answer.status, await answer.json()]).toMatchObject([status, { message: expect.stringMatching(says) }])
    expect((await gateway.fetch('GET', `${projects}/${id}`)).status).toBe(404)
    const known = await near.call<{ project_id: string }[]>('GET', '/v2/compute/projects?status=all')
    expect(known.map(({ project_id }) => project_id)).not.toContain(id)
  })

  it('that is truncated, or not an archive, is refused', async () => {
    const whole = zipOf([document])
    for (const body of [whole.subarray(0, whole.length - 30), Buffer.from('no archive'), Buffer.alloc(0)])
      expect((await imported(new Uint8Array(body))).status).toBe(400)
  })

  it('that a restart of the program interrupts does not prevent the next one', async () => {
    const { path } = await labWithFile('near')
    const archive = new Uint8Array(await (await gateway.fetch('GET', `${path}/export?compression=none`)).arrayBuffer())
    await gateway.call('DELETE', path)
    const id = crypto.randomUUID()
    let isRead = () => {}
    const begun = new Promise<void>((resolve) => {
      isRead = resolve
    })
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(archive.subarray(0, 2 << 20)),
      async pull() {
        isRead()
        await new Promise(() => {})
      },
    })
    const cut = gateway.fetch('POST', `${projects}/${id}/import`, undefined, { body, duplex: 'half' } as RequestInit)
    const ended = cut.catch(() => undefined)
    await begun
    await gateway.restart()
    await ended
    await gateway.untilConnected(farId)
    expect((await gateway.fetch('GET', `${projects}/${id}`)).status).toBe(404)
    expect((await imported(archive, { id })).status).toBe(201)
    await gateway.call('DELETE', `${projects}/${id}`)
  })

  it('ends when its compute disconnects, and the received part is not an archive', async () => {
    const service = await TestService.start(embedded)
    const input = { compute_id: 'leaves', protocol: 'http', host: '127.0.0.1', port: portOf(service) }
    await gateway.call('POST', '/v2/computes', input)
    const path = await labOver(gateway, ['leaves'])
    const body = randomBytes(48 << 20)
    await gateway.fetch('POST', `${path}/nodes/PC1/files/disk.img`, undefined, { body: new Uint8Array(body) })
    const answer = await gateway.fetch('GET', `${path}/export?compression=none`)
    const pieces: Uint8Array[] = []
    const read = async () => {
      for await (const piece of answer.body as ReadableStream<Uint8Array>) {
        if (pieces.push(piece) === 1) await service.kill('SIGKILL')
      }
    }
    await read().catch(() => {})
    const came = Buffer.concat(pieces)
    expect(came.length).toBeLessThan(body.length)
    expect((await imported(new Uint8Array(came))).status).toBe(400)
    await gateway.call('DELETE', '/v2/computes/leaves')
    await gateway.call('DELETE', path)
  })

  it('does not replace a lab', async () => {
    const { path } = await labWithFile('near')
    const archive = new Uint8Array(await (await gateway.fetch('GET', `${path}/export`)).arrayBuffer())
    const answer = await imported(archive, { id: path.slice(projects.length + 1) })
    expect([answer.status, answer.headers.get('x-patchbay-error')]).toEqual([409, 'project-exists'])
    expect(await nodesOf(gateway, path)).toHaveLength(2)
    await gateway.call('DELETE', path)
  })
})

it('a copy has the nodes where they were, over two computes, and ids of its own', async () => {
  const { path, file, name } = await labWithFile('near', farId)
  const copied = await gateway.call<LabProject>('POST', `${path}/duplicate`, { name: `${name} copy` })
  expect(copied).toMatchObject({ name: `${name} copy`, status: 'closed' })
  const copy = `${projects}/${copied.project_id}`
  await gateway.call('POST', `${copy}/open`)
  const [before, after] = [await nodesOf(gateway, path), await nodesOf(gateway, copy)]
  expect(after.map((node) => [node.name, node.compute_id])).toEqual(before.map((node) => [node.name, node.compute_id]))
  expect(after.map(({ node_id }) => node_id)).not.toEqual(before.map(({ node_id }) => node_id))
  expect((await fileOf(copy)).equals(file)).toBe(true)
  const taken = await gateway.fetch('POST', `${path}/duplicate`, { name: `${name} copy` })
  expect([taken.status, taken.headers.get('x-patchbay-error')]).toEqual([409, 'name-taken'])
  expect((await gateway.call<LabProject[]>('GET', projects)).filter((it) => it.name.startsWith(name))).toHaveLength(2)
  for (const lab of [path, copy]) await gateway.call('DELETE', lab)
})

it('a snapshot restores a lab over two computes', async () => {
  const { path, file } = await labWithFile('near', farId)
  // The document is longer than a row of the object may be.
  const svg = `<svg>${'<rect/>'.repeat(100_000)}</svg>`
  for (const x of [1, 2, 3]) await gateway.call('POST', `${path}/drawings`, { svg, x })
  const { snapshot_id } = await gateway.call('POST', `${path}/snapshots`, { name: 'before' })
  await gateway.fetch('POST', `${path}/nodes/PC2/files/disk.img`, undefined, { body: 'changed' })
  await gateway.call('DELETE', `${path}/nodes/PC1`)
  for (const { drawing_id } of await gateway.call<LabDrawing[]>('GET', `${path}/drawings`))
    await gateway.call('DELETE', `${path}/drawings/${drawing_id}`)
  await gateway.call('POST', `${path}/snapshots/${snapshot_id}/restore`)
  const nodes = (await nodesOf(gateway, path)).map(({ name, status_reason }) => [name, status_reason])
  expect(nodes.sort()).toEqual([
    ['PC1', null],
    ['PC2', null],
  ])
  expect((await fileOf(path)).equals(file)).toBe(true)
  expect((await gateway.call<LabDrawing[]>('GET', `${path}/drawings`)).map((it) => it.svg)).toEqual([svg, svg, svg])
  await gateway.call('DELETE', `${path}/snapshots/${snapshot_id}`)
  expect(await gateway.call('GET', `${path}/snapshots`)).toEqual([])
  await gateway.call('DELETE', path)
})

describe('placement by the Worker', () => {
  it('finds labels, and moves the labs of a compute in the objects of these labs when it is drained', async () => {
    await gateway.call('PUT', '/v2/computes/near', { labels: ['site=here'] })
    const asks = { name: 'PC3', node_type: 'pc', placement: { labels: ['site=here'] } }
    const elsewhere = { ...asks, placement: { labels: ['site=oslo'] } }
    const { path, file } = await labWithFile('near')
    expect(await gateway.call('POST', `${path}/nodes`, asks)).toMatchObject({ compute_id: 'near' })
    const refused = await gateway.fetch('POST', `${path}/nodes`, elsewhere)
    expect([refused.status, await refused.json()]).toMatchObject([
      409,
      { message: expect.stringContaining('no compute has site=oslo; there are') },
    ])
    await gateway.call('DELETE', `${path}/nodes/PC3`)
    const before = await nodesOf(gateway, path)

    const { job_id } = await gateway.call<LabJob>('POST', '/v2/computes/near/drain')
    const job = () => gateway.call<LabJob>('GET', `/v2/jobs/${job_id}`)
    await expect.poll(async () => (await job()).status, { timeout: hangMs }).not.toBe('running')
    const project_id = path.split('/').at(-1)
    const moved = (await job()).projects?.find((it) => it.project_id === project_id)
    expect(moved).toMatchObject({ state: 'done', compute_id: farId })
    const nodes = await nodesOf(gateway, path)
    expect(nodes.map(({ compute_id }) => compute_id)).toEqual([farId, farId])
    expect(nodes.map(({ node_id }) => node_id)).toEqual(before.map(({ node_id }) => node_id))
    expect((await fileOf(path)).equals(file)).toBe(true)
    const left = await near.call<{ project_id: string }[]>('GET', '/v2/compute/projects?status=all')
    expect(left.map((it) => it.project_id)).not.toContain(project_id)
    await gateway.call('PUT', '/v2/computes/near', { accepts_projects: true, labels: [] })
    await gateway.call('DELETE', path)
  })
})
