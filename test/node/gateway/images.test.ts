import { expect, onTestFinished, test, vi } from 'vitest'
import type { KeptImage } from '../../../src/fleet/images/kept-images.ts'
import { splitStream } from '../../../src/fleet/members/shared-stream.ts'
import type { LocalHostAgent, StoredImage, UploadOptions } from '../../../src/host-agent.ts'
import {
  ApiError,
  badRequest,
  conflict,
  forbidden,
  missingImage,
  notFound,
  outOfSpace,
} from '../../../src/lib/errors/api-error.ts'
import type { NodeCreate } from '../../../src/model/kinds/node.ts'
import { startGateway, type TestGateway } from '../../support/gateway.ts'
import { sha256Of } from '../../support/memory-digests.ts'

const base64 = (hex: string) => Buffer.from(hex, 'hex').toString('base64')
const bytes = (text: string) => new TextEncoder().encode(text)

interface ImageCompute {
  readonly agent: LocalHostAgent
  readonly images: Map<string, string>
  /** Names that were written, in order. */
  readonly written: string[]
}

/** A compute with images, whose nodes need those of their disks. */
function compute(images: Record<string, string>, more: Partial<LocalHostAgent['images']> = {}): ImageCompute {
  const has = new Map(Object.entries(images))
  const written: string[] = []
  const require = (image: string | null | undefined) => {
    if (image && !has.has(image)) throw missingImage(`There is no image ${image}`, image)
  }
  const agent = {
    nodes: {
      async create(_: string, __: string, input: NodeCreate<'machine-emulator'>) {
        require(input.hda_disk_image)
        require(input.hdb_disk_image)
        return { node: { name: input.name }, created: true }
      },
    },
    images: {
      async read(_: string, name: string): Promise<Partial<StoredImage>> {
        require(name)
        const content = bytes(has.get(name) as string)
        return { content: new Blob([content]).stream(), size: content.byteLength }
      },
      async write(_: string, name: string, content: ReadableStream<Uint8Array>, { digests }: UploadOptions) {
        written.push(name)
        const text = await new Response(content).text()
        for (const { hex } of digests) if (hex !== sha256Of(text)) throw badRequest(`sha-256: expected ${hex}`)
        has.set(name, text)
        return { received: text.length, done: true }
      },
      uses: async () => [],
      async remove(_: string, name: string) {
        if (!has.delete(name)) throw notFound(`There is no image ${name}`)
      },
      async rename(_: string, name: string, to: string) {
        const content = has.get(name)
        if (content === undefined) throw notFound(`There is no image ${name}`)
        if (name !== to && has.has(to)) throw conflict(`There is an image ${to}`)
        has.delete(name)
        has.set(to, content)
      },
      ...more,
    },
  } as unknown as LocalHostAgent
  return { agent, images: has, written }
}

/** As if these had been uploaded through the gateway. */
function uploaded({ digests }: TestGateway, images: Record<string, string>): void {
  for (const [name, content] of Object.entries(images)) {
    void digests.put('machine-emulator', name, { sha256: sha256Of(content), byAdmin: false })
  }
}

/** Creates a node on the last of these computes. */
async function createOn(computes: readonly ImageCompute[]) {
  const gateway = startGateway(computes.map(({ agent }) => agent))
  const id = crypto.randomUUID()
  gateway.placements.set(id, `c${computes.length - 1}`)
  const input = { name: 'R1', platform: 'x86_64', hda_disk_image: 'a.qcow2', hdb_disk_image: 'b.qcow2' }
  const create = () => gateway.fetch('POST', `/v2/compute/projects/${id}/machine-emulator/nodes`, input)
  return { gateway, create }
}

test('with kept images an upload goes to one compute, and to those that have an image of the name', async () => {
  const kept = new Map<string, string>()
  const keeping = {
    kept: {
      has: async (sha256: string) => kept.has(sha256),
      async write(sha256: string, { content }: KeptImage) {
        kept.set(sha256, await new Response(content).text())
      },
      async read(sha256: string) {
        const content = bytes(kept.get(sha256) ?? '')
        return kept.has(sha256) ? { content: new Blob([content]).stream(), size: content.byteLength } : undefined
      },
      addressFor: async () => undefined,
    },
    unkept: { add() {}, remove() {} },
    waitUntil() {},
  }
  const computes = Array.from({ length: 4 }, () => compute({}))
  const gateway = startGateway(
    computes.map(({ agent }) => agent),
    { keeping },
  )
  const upload = async (name: string, body: string) =>
    (await gateway.fetch('POST', `/v2/compute/machine-emulator/images/${name}`, undefined, { body })).status
  const holders = (name: string) => computes.flatMap(({ images }, index) => (images.has(name) ? [index] : []))

  const names = Array.from({ length: 16 }, (_, index) => `disk${index}.img`)
  for (const name of names) expect([name, await upload(name, 'one')]).toEqual([name, 204])
  for (const name of names) expect([name, holders(name).length]).toEqual([name, 1])
  // They are spread over the computes.
  expect(new Set(names.flatMap(holders)).size).toBeGreaterThan(1)
  await vi.waitFor(() => expect(kept.get(sha256Of('one'))).toBe('one'))

  // One that takes no labs gets none.
  for (const member of gateway.members.slice(1)) member.acceptsProjects = false
  expect(await upload('other.img', 'x')).toBe(204)
  expect(holders('other.img')).toEqual([0])

  // Nobody is left with what was there before.
  for (const { images } of computes.slice(1)) images.set('old.img', 'before')
  expect(await upload('old.img', 'after')).toBe(204)
  expect(computes.map(({ images }) => images.get('old.img'))).toEqual([undefined, 'after', 'after', 'after'])
  expect(computes.map(({ written }) => written.filter((name) => name === 'old.img').length)).toEqual([0, 1, 1, 1])

  // One that no compute has any more can be removed from where it is kept, once.
  const remove = async () => (await gateway.fetch('DELETE', '/v2/compute/machine-emulator/images/other.img')).status
  computes[0]?.images.delete('other.img')
  expect([await remove(), await gateway.digests.get('machine-emulator', 'other.img')]).toEqual([204, undefined])
  expect(await remove()).toBe(404)

  // It is renamed there, too, but not to a name that only the gateway knows.
  expect(await upload('only.img', 'y')).toBe(204)
  for (const { images } of computes) images.delete('only.img')
  const rename = async (name: string, to: string) =>
    (await gateway.fetch('PUT', `/v2/compute/machine-emulator/images/${name}`, { path: to })).status
  expect([await rename('only.img', 'alone.img'), await rename('only.img', 'other.img')]).toEqual([204, 404])
  expect(await gateway.digests.get('machine-emulator', 'alone.img')).toMatchObject({ sha256: sha256Of('y') })
  expect([await rename('disk0.img', 'alone.img'), holders('disk0.img').length]).toEqual([409, 1])
})

/** Renames an image at a gateway of these computes: the status and the message. */
async function rename(gateway: TestGateway, name: string, to: string): Promise<[status: number, message: string]> {
  const answer = await gateway.fetch('PUT', `/v2/compute/machine-emulator/images/${name}`, { path: to })
  const text = await answer.text()
  return [answer.status, text === '' ? '' : JSON.parse(text).message]
}

test('an image is renamed on every compute that has it, with its digest, and nodes are brought it by its new name only', async () => {
  const [one, two, none] = [compute({ 'old.img': 'A', 'b.qcow2': 'B' }), compute({ 'old.img': 'A' }), compute({})]
  const { create, gateway } = await createOn([one, two, none])
  uploaded(gateway, { 'old.img': 'A', 'b.qcow2': 'B' })
  expect(await rename(gateway, 'old.img', 'a.qcow2')).toEqual([204, ''])
  expect([one, two, none].map(({ images }) => images.get('a.qcow2'))).toEqual(['A', 'A', undefined])
  expect([...gateway.digests.map.keys()].sort()).toEqual(['machine-emulator/a.qcow2', 'machine-emulator/b.qcow2'])
  expect((await create()).status).toBe(201)
  expect(none.images.get('a.qcow2')).toBe('A')
  expect(await rename(gateway, 'old.img', 'c.img')).toEqual([404, 'There is no image old.img'])
  // The name that it has.
  expect(await rename(gateway, 'a.qcow2', 'a.qcow2')).toEqual([204, ''])
  expect(gateway.digests.map.get('machine-emulator/a.qcow2')).toMatchObject({ sha256: sha256Of('A') })
})

test('an image that is being renamed is copied by neither name', async () => {
  let renamed = () => {}
  const mayRename = new Promise<void>((resolve) => {
    renamed = resolve
  })
  const one = compute({ 'a.qcow2': 'A', 'b.qcow2': 'B' }, { rename: () => mayRename })
  const newcomer = compute({})
  const { create, gateway } = await createOn([one, newcomer])
  uploaded(gateway, { 'a.qcow2': 'A', 'b.qcow2': 'B' })
  const renaming = rename(gateway, 'a.qcow2', 'c.qcow2')
  expect((await create()).status).toBe(409)
  expect(newcomer.written).toEqual([])
  renamed()
  expect(await renaming).toEqual([204, ''])
})

test('where one compute refuses, no other one has the image by its new name, or the error says so', async () => {
  const refuse = { rename: () => Promise.reject(conflict('image: "a" is needed by the node R1')) }
  const [one, used, none] = [compute({ a: 'A' }), compute({ a: 'A' }, refuse), compute({})]
  const gateway = startGateway([one.agent, used.agent, none.agent])
  uploaded(gateway, { a: 'A' })
  const why = 'Compute Compute 1: image: "a" is needed by the node R1'
  expect(await rename(gateway, 'a', 'b')).toEqual([409, `${why}; it has its old name on all computes`])
  expect([...one.images.keys(), ...used.images.keys(), ...none.images.keys()]).toEqual(['a', 'a'])
  expect([...gateway.digests.map.keys()]).toEqual(['machine-emulator/a'])

  // A node needs it by its new name at once.
  const names: string[] = []
  const stuck = compute(
    { a: 'A' },
    {
      async rename(_, name) {
        names.push(name)
        if (names.length > 1) throw conflict('image: "b" is needed by the node R2')
      },
    },
  )
  const second = startGateway([stuck.agent, used.agent])
  const where = 'it is "b" on the compute Compute 0 now: image: "b" is needed by the node R2'
  expect(await rename(second, 'a', 'b')).toEqual([409, `${why}; ${where}`])
  expect(names).toEqual(['a', 'b'])
})

test('a compute that is lost in the middle has its old name, or the error says that it may not', async () => {
  const lost = () => Promise.reject(new ApiError(504, 'the connection ended'))
  const [one, gone] = [compute({ a: 'A' }), compute({ a: 'A' }, { rename: lost })]
  const [status, message] = await rename(startGateway([one.agent, gone.agent]), 'a', 'b')
  expect([status, message]).toEqual([
    504,
    expect.stringMatching(/; it may be "b" on the compute Compute 1 now: .*ended$/),
  ])
  expect([...one.images.keys()]).toEqual(['a'])
  // It was lost before it got the request.
  let calls = 0
  const late = compute(
    { a: 'A' },
    { rename: () => (calls++ === 0 ? lost() : Promise.reject(notFound('There is no image b'))) },
  )
  const [, other] = await rename(startGateway([one.agent, late.agent]), 'a', 'b')
  expect(other).toMatch(/the connection ended; it has its old name on all computes$/)
})

test('no image gets a name that another one has on any compute, also when two get it at once', async () => {
  const [one, two] = [compute({ a: 'A' }), compute({ b: 'B', c: 'C' })]
  const gateway = startGateway([one.agent, two.agent])
  expect(await rename(gateway, 'a', 'b')).toEqual([
    409,
    'Compute Compute 1: path: an image "b" already exists; choose another name',
  ])
  const both = await Promise.all([rename(gateway, 'a', 'd'), rename(gateway, 'c', 'd')])
  expect(both.map(([status]) => status).sort()).toEqual([204, 409])
  expect([...one.images.values(), ...two.images.values()].sort()).toEqual(['A', 'B', 'C'])
})

test('a compute of an earlier version is in the way only when it has the image', async () => {
  const rename405 = () => Promise.reject(new ApiError(501, 'It has no such operation'))
  const [one, older] = [compute({ a: 'A', b: 'B' }), compute({ b: 'B' }, { rename: rename405 })]
  const gateway = startGateway([one.agent, older.agent])
  expect(await rename(gateway, 'a', 'c')).toEqual([204, ''])
  expect(await rename(gateway, 'b', 'd')).toEqual([
    501,
    'Compute Compute 1: It has no such operation; it has its old name on all computes',
  ])
  expect([...one.images.keys()].sort()).toEqual(['b', 'c'])
  expect(await rename(gateway, 'x', 'y')).toEqual([404, expect.stringContaining('There is no image x')])
})

test('an image is deleted on every compute that has it', async () => {
  const deleted: string[] = []
  const having = (id: string, has: boolean, refusal?: Error) =>
    compute(
      {},
      {
        async remove(_, name) {
          if (refusal !== undefined) throw refusal
          if (!has) throw notFound('image: there is no such image')
          deleted.push(`${id} ${name}`)
        },
      },
    ).agent
  const path = '/v2/compute/machine-emulator/images/a.qcow2'
  const remove = async (...agents: LocalHostAgent[]) => startGateway(agents).fetch('DELETE', path)
  expect((await remove(having('one', true), having('two', false), having('three', true))).status).toBe(204)
  expect(deleted.sort()).toEqual(['one a.qcow2', 'three a.qcow2'])
  expect((await remove(having('one', false), having('two', false))).status).toBe(404)
  const refused = await remove(having('one', true), having('two', true, conflict('it is needed by the node R1')))
  expect([refused.status, await refused.json()]).toMatchObject([
    409,
    { message: expect.stringContaining('the node R1') },
  ])
})

test('where a node of one compute needs an image, it is deleted and renamed on none', async () => {
  const used_by = [{ project_id: crypto.randomUUID(), nodes: ['R1', 'R2', 'R3', 'R4', 'R5', 'R6'] }]
  const [one, used] = [compute({ a: 'A' }), compute({ a: 'A' }, { uses: async () => [{ path: 'a', used_by }] })]
  const gateway = startGateway([one.agent, used.agent])
  uploaded(gateway, { a: 'A' })
  const nodes = 'the node R1, the node R2, the node R3, the node R4, the node R5 and 1 more'
  const why = `Compute Compute 1: image: "a" is needed by ${nodes}`
  const removed = await gateway.fetch('DELETE', '/v2/compute/machine-emulator/images/a')
  expect([removed.status, await removed.json()]).toMatchObject([409, { message: why }])
  expect(await rename(gateway, 'a', 'b')).toEqual([409, why])
  expect([one.images.get('a'), used.images.get('a')]).toEqual(['A', 'A'])
  expect([...gateway.digests.map.keys()]).toEqual(['machine-emulator/a'])
})

test('an image that one compute refuses to delete in spite of that is gone on the others, and the error says so', async () => {
  const refuse = { remove: () => Promise.reject(conflict('image: "a" is needed by the node R1')) }
  const computes = [compute({ a: 'A' }), compute({ a: 'A' }, refuse), compute({})]
  const gateway = startGateway(computes.map(({ agent }) => agent))
  const removed = await gateway.fetch('DELETE', '/v2/compute/machine-emulator/images/a')
  const message = 'Compute Compute 1: image: "a" is needed by the node R1; it was deleted on Compute 0'
  expect([removed.status, await removed.json()]).toMatchObject([409, { message }])
})

test('the digest of an image is kept when the computes refuse to delete it, and forgotten when one has deleted it', async () => {
  const image = 'iou/router.bin'
  const path = '/v2/compute/iou/images/router.bin'
  const known = { sha256: sha256Of('router'), byAdmin: true }
  const remove = async (...removals: (() => Promise<void>)[]) => {
    const gateway = startGateway(removals.map((it) => compute({}, { remove: it }).agent))
    gateway.digests.map.set(image, known)
    const { status } = await gateway.fetch('DELETE', path)
    return [status, gateway.digests.map.get(image)]
  }
  const refuse = (error: Error) => () => Promise.reject(error)
  const refused = refuse(forbidden('router.bin: only an administrator deletes it'))
  expect(await remove(refused, refused)).toEqual([403, known])
  expect(await remove(refused, refuse(notFound('image: there is no such image')))).toEqual([403, known])
  expect(await remove(refuse(notFound('image: there is no such image')))).toEqual([404, known])
  expect(await remove(async () => {}, refused)).toEqual([403, undefined])
  expect(await remove(async () => {})).toEqual([204, undefined])
})

test('an image that is being deleted is not copied', async () => {
  let deleted = () => {}
  const mayDelete = new Promise<void>((resolve) => {
    deleted = resolve
  })
  const one = compute({ 'a.qcow2': 'A', 'b.qcow2': 'B' }, { remove: () => mayDelete })
  const newcomer = compute({})
  const { create, gateway } = await createOn([one, newcomer])
  uploaded(gateway, { 'a.qcow2': 'A', 'b.qcow2': 'B' })
  newcomer.agent.images.remove = async () => {}
  const removal = gateway.fetch('DELETE', '/v2/compute/machine-emulator/images/a.qcow2')
  expect((await create()).status).toBe(409)
  expect(newcomer.written).toEqual([])
  deleted()
  expect((await removal).status).toBe(204)
})

test('a missing image is copied to a compute from one that has it, once', async () => {
  const [none, one, newcomer] = [compute({}), compute({ 'a.qcow2': 'A', 'b.qcow2': 'B' }), compute({})]
  const { create, gateway } = await createOn([none, one, newcomer])
  uploaded(gateway, { 'a.qcow2': 'A', 'b.qcow2': 'B' })
  const answers = await Promise.all([create(), create()])
  expect(answers.map(({ status }) => status)).toEqual([201, 201])
  expect(newcomer.images).toEqual(one.images)
  expect(newcomer.written).toEqual(['a.qcow2', 'b.qcow2'])
  expect(none.written).toEqual([])
})

test('an image that no compute has, or that cannot be copied, is missing as on a single compute', async () => {
  const [one, newcomer] = [compute({ 'a.qcow2': 'A' }), compute({})]
  const { create, gateway } = await createOn([one, newcomer])
  uploaded(gateway, { 'a.qcow2': 'A' })
  const answer = await create()
  expect([answer.status, await answer.json()]).toMatchObject([409, { image: 'b.qcow2' }])

  const full = compute({}, { write: () => Promise.reject(outOfSpace('full')) })
  const second = await createOn([one, full])
  uploaded(second.gateway, { 'a.qcow2': 'A' })
  const refused = await second.create()
  expect([refused.status, await refused.json()]).toMatchObject([409, { image: 'a.qcow2' }])
})

test('an image that was not uploaded through the gateway is not copied, and the error says what to do', async () => {
  const [one, newcomer] = [compute({ 'a.qcow2': 'A', 'b.qcow2': 'B' }), compute({})]
  const { create } = await createOn([one, newcomer])
  const refused = await create()
  const why =
    /not on the compute Compute 1, and it cannot be copied from other computes because the gateway has no digest of it; upload it to the gateway with POST /
  expect([refused.status, await refused.json()]).toMatchObject([
    409,
    { image: 'a.qcow2', message: expect.stringMatching(why) },
  ])
  expect(newcomer.written).toEqual([])
})

test('a different image of the same name is not copied', async () => {
  const [fake, newcomer] = [compute({ 'a.qcow2': 'malware', 'b.qcow2': 'B' }), compute({})]
  const { create, gateway } = await createOn([fake, newcomer])
  uploaded(gateway, { 'a.qcow2': 'A', 'b.qcow2': 'B' })
  const refused = await create()
  const message = expect.stringContaining('no compute has the version that was uploaded through the gateway')
  expect([refused.status, await refused.json()]).toMatchObject([409, { image: 'a.qcow2', message }])
  expect(newcomer.images.size).toBe(0)

  // One that has the right one gives it, whoever was asked before, and however that one failed.
  const read = async () => ({
    content: new ReadableStream({ pull: (controller) => controller.error(new ApiError(502, 'it broke off')) }),
    ...{ size: 1, modified: 0, etag: '"1"' },
  })
  const broken = compute({}, { read })
  const [liar, honest, third] = [
    compute({ 'a.qcow2': 'malware' }),
    compute({ 'a.qcow2': 'A', 'b.qcow2': 'B' }),
    compute({}),
  ]
  const second = await createOn([broken, liar, honest, third])
  uploaded(second.gateway, { 'a.qcow2': 'A', 'b.qcow2': 'B' })
  expect((await second.create()).status).toBe(201)
  expect(third.images).toEqual(honest.images)
})

test('the digest of an upload, whole or in consecutive parts, is recorded, and replaces the earlier one', async () => {
  const gateway = startGateway([compute({}).agent, compute({}).agent])
  const path = '/v2/compute/machine-emulator/images/x.img'
  const post = async (body: string, headers: Record<string, string> = {}) =>
    (await gateway.fetch('POST', path, undefined, { body, headers })).status
  const recorded = () => gateway.digests.map.get('machine-emulator/x.img')
  expect(await post('content')).toBe(204)
  expect(recorded()).toEqual({ sha256: sha256Of('content'), byAdmin: false })
  // The stand-ins take every part for the last one.
  const part = (first: number, text: string, total: number) => ({
    'content-range': `bytes ${first}-${first + text.length - 1}/${total}`,
  })
  expect(await post('wor', part(3, 'wor', 6))).toBe(204)
  expect(recorded()).toBeUndefined()
  expect(await post('wor', { ...part(3, 'wor', 6), 'repr-digest': `sha-256=:${base64(sha256Of('hhwor'))}:` })).toBe(400)
  expect(recorded()).toBeUndefined()
})

test('the digest of an upload in parts is that of the image', async () => {
  const stored: string[] = []
  const inParts = compute(
    {},
    {
      async write(_, __, content, { part }) {
        stored.push(await new Response(content).text())
        const done = part === undefined || part.last + 1 === part.total
        return { received: stored.join('').length, done }
      },
    },
  )
  const gateway = startGateway([inParts.agent])
  const path = '/v2/compute/machine-emulator/images/x.img'
  for (const [first, body] of [
    [0, 'abc'],
    [3, 'def'],
    [6, 'g'],
  ] as const) {
    const headers = { 'content-range': `bytes ${first}-${first + body.length - 1}/7` }
    await gateway.fetch('POST', path, undefined, { body, headers })
  }
  expect(gateway.digests.map.get('machine-emulator/x.img')).toEqual({ sha256: sha256Of('abcdefg'), byAdmin: false })
  // A part that was sent again is not seen twice: then nothing is known, unless the client says it.
  for (const [first, body] of [
    [0, 'abc'],
    [0, 'ab'],
    [3, 'def'],
    [6, 'g'],
  ] as const) {
    const headers = { 'content-range': `bytes ${first}-${first + body.length - 1}/7` }
    await gateway.fetch('POST', path, undefined, { body, headers })
  }
  expect(gateway.digests.map.size).toBe(0)
  const named = { 'content-range': 'bytes 6-6/7', 'repr-digest': `sha-256=:${base64(sha256Of('abcdefg'))}:` }
  await gateway.fetch('POST', path, undefined, { body: 'g', headers: named })
  expect(gateway.digests.map.get('machine-emulator/x.img')).toEqual({ sha256: sha256Of('abcdefg'), byAdmin: false })
})

test('an upload that one compute refuses is refused with its name, and the others have it', async () => {
  const [one, full] = [compute({}), compute({}, { write: () => Promise.reject(outOfSpace('full')) })]
  const off = compute({})
  const gateway = startGateway([one.agent, full.agent, off.agent])
  const [, , third] = gateway.members
  if (third !== undefined) third.isConnected = false
  const upload = () => gateway.fetch('POST', '/v2/compute/machine-emulator/images/x', undefined, { body: 'content' })
  const refused = await upload()
  expect([refused.status, await refused.json()]).toMatchObject([507, { message: 'Compute Compute 1: full' }])
  expect(refused.headers.get('X-Patchbay-Unreachable')).toBe('Compute%202')
  expect(one.images.get('x')).toBe('content')
})

test('a receiver that does not read is dropped, and the others go on', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const source = new Blob([new Uint8Array(10).fill(7)]).stream()
  const [quick, slow] = splitStream(source, 2) as [ReadableStream<Uint8Array>, ReadableStream<Uint8Array>]
  const read = new Response(quick).text()
  const late = slow.getReader()
  await vi.advanceTimersByTimeAsync(20_000)
  expect(await read).toHaveLength(10)
  await expect(late.read()).rejects.toMatchObject({ status: 504 })
})

test('a list waits a limited time for checksums that are being computed', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const image = { filename: 'x', path: 'x', md5sum: '0'.repeat(32), filesize: 1 }
  const slow = compute({}, { list: () => new Promise((resolve) => setTimeout(() => resolve([image]), 60_000)) })
  const never = compute({}, { list: () => new Promise(() => {}) })
  const gateway = startGateway([slow.agent, never.agent])
  const listed = gateway.fetch('GET', '/v2/compute/machine-emulator/images')
  await vi.advanceTimersByTimeAsync(120_000)
  const answer = await listed
  expect(await answer.json()).toEqual([image])
  expect(answer.headers.get('X-Patchbay-Unreachable')).toBe('Compute%201')
})

test('a gateway shows which computes have an image, and which of their nodes need it', async () => {
  const [campus, branch] = [crypto.randomUUID(), crypto.randomUUID()]
  const users = (project_id: string, ...nodes: string[]) => ({ project_id, nodes })
  const one = compute({}, { uses: async () => [{ path: 'a', used_by: [users(campus, 'R1')] }] })
  const two = compute(
    {},
    {
      uses: async () => [
        { path: 'a', used_by: [users(campus, 'R2'), users(branch, 'R1')] },
        { path: 'b', used_by: [] },
      ],
    },
  )
  const gateway = startGateway([one.agent, two.agent])
  expect(await gateway.call('GET', '/v2/compute/machine-emulator/image_uses')).toEqual([
    { path: 'a', used_by: [users(campus, 'R1', 'R2'), users(branch, 'R1')], compute_ids: ['c0', 'c1'] },
    { path: 'b', used_by: [], compute_ids: ['c1'] },
  ])
})

test('which nodes need an image is not known when a compute of an earlier version has it', async () => {
  const image = { filename: 'a', path: 'a', md5sum: '0'.repeat(32), filesize: 1 }
  const uses = async () => {
    throw notFound('There is no such path')
  }
  const earlier = compute({}, { uses, list: async () => [image] })
  const present = compute({}, { uses: async () => [{ path: 'a', used_by: [] }] })
  const gateway = startGateway([earlier.agent, present.agent])
  expect(await gateway.call('GET', '/v2/compute/machine-emulator/image_uses')).toEqual([
    { path: 'a', compute_ids: ['c0', 'c1'] },
  ])
})
