import { expect, test } from 'vitest'
import type { ImageUse } from '../../src/model/image.ts'
import { body, post, put, send } from '../support/api.ts'

const v2 = '/v2/compute/machine-emulator'
const images = `${v2}/images`
const one = `${images}/{filename}`

interface Listed {
  readonly filename: string
  readonly path: string
  readonly md5sum: string
  readonly sha256?: string
  readonly filesize: number
}

let last = 0
/** A name that no other test uses. */
const fresh = (extension = 'qcow2') => `image-${Date.now()}-${++last}.${extension}`
const store = (name: string, content: string, headers: Record<string, string> = {}, query = '') =>
  send(`${images}/${name}${query}`, { method: 'POST', body: content, headers })
const read = async (name: string, headers: Record<string, string> = {}) => send(`${images}/${name}`, { headers })
const listed = async (name: string, path = images) =>
  (await body<Listed[]>(send(path))).filter((image) => image.path === name)
const part = (name: string, range: string, content = '', more: Record<string, string> = {}) =>
  store(name, content, { 'content-range': `bytes ${range}`, ...more })

const md5OfHello = '5d41402abc4b2a76b9719d911017c592'
const sha256OfHello = '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824'
const helloInMd5 = 'XUFAKrxLKna5cZ2REBfFkg=='
const helloInSha256 = 'LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ='

test('an image is stored, listed with its sums and size, and read back', async () => {
  const name = fresh()
  const answer = await store(name, 'hello')
  expect(answer.status).toBe(204)
  expect(answer.headers.get('x-route')).toBe(one)
  const sums = { md5sum: md5OfHello, sha256: sha256OfHello }
  expect(await listed(name)).toEqual([{ filename: name, path: name, ...sums, filesize: 5 }])
  const stored = await read(name)
  expect(stored.status).toBe(200)
  expect(stored.headers.get('x-route')).toBe(one)
  expect(stored.headers.get('content-type')).toBe('application/octet-stream')
  expect(stored.headers.get('accept-ranges')).toBe('bytes')
  expect(await stored.text()).toBe('hello')
})

test('an image may be in one directory, written with a slash or with %2F, and is replaced as a whole', async () => {
  const name = fresh()
  expect((await store(`vendor%2F${name}`, 'the longer old one')).status).toBe(204)
  expect((await store(`vendor/${name}`, 'new')).status).toBe(204)
  expect(await listed(`vendor/${name}`)).toMatchObject([{ filename: name, filesize: 3 }])
  expect(await (await read(`vendor/${name}`)).text()).toBe('new')
  expect(await (await read(name)).text()).toBe('new')
  expect((await store(`a/b/${name}`, 'x')).status).toBe(400)
})

test('images that no node uses are shown as such', async () => {
  const name = fresh()
  await store(name, 'hello')
  const uses = await body<ImageUse[]>(send(`${v2}/image_uses`))
  expect(uses.find(({ path }) => path === name)).toMatchObject({ used_by: [] })
})

test('an image is deleted once, and nothing outside the images directory', async () => {
  const name = fresh()
  await store(`vendor/${name}`, 'hello')
  await store(name, 'other')
  const gone = await send(`${images}/vendor/${name}`, { method: 'DELETE' })
  expect([gone.status, gone.headers.get('x-route'), await gone.text()]).toEqual([204, one, ''])
  expect(await listed(`vendor/${name}`)).toEqual([])
  expect(await listed(name)).toHaveLength(1)
  const again = await send(`${images}/vendor/${name}`, { method: 'DELETE' })
  expect([again.status, (await body<{ message: string }>(again)).message]).toEqual([
    404,
    `image: there is no "vendor/${name}"; GET .../images lists the images`,
  ])
  expect((await send(`${images}/vendor`, { method: 'DELETE' })).status).toBe(404)
  for (const path of ['..%2Fiou', '.hidden', 'a%2F..%2Fb']) {
    expect((await send(`${images}/${path}`, { method: 'DELETE' })).status).toBe(403)
  }
  expect((await send(`${images}/${name}`, { method: 'DELETE' })).status).toBe(204)
})

test('an image gets another name, with its content and digests, in its directory', async () => {
  const [name, other] = [fresh(), fresh()]
  await store(`vendor/${name}`, 'hello')
  await listed(`vendor/${name}`)
  const renamed = await put(`${images}/vendor%2F${name}`, { path: `vendor/${other}` })
  expect([renamed.status, renamed.headers.get('x-route'), await renamed.text()]).toEqual([204, one, ''])
  expect(await listed(`vendor/${name}`)).toEqual([])
  const sums = { md5sum: md5OfHello, sha256: sha256OfHello }
  expect(await listed(`vendor/${other}`)).toEqual([{ filename: other, path: `vendor/${other}`, ...sums, filesize: 5 }])
  expect(await (await read(`vendor/${other}`)).text()).toBe('hello')
  // Also a word that stands in paths.
  await store('vendor/rename', 'a name like others')
  expect((await put(`${images}/vendor/rename`, { path: `vendor/${name}` })).status).toBe(204)
  // The name that it has is no change.
  expect((await put(`${images}/vendor/${name}`, { path: `vendor/${name}` })).status).toBe(204)
  expect(await (await read(`vendor/${name}`)).text()).toBe('a name like others')
})

test('an image gets no name that another one has, or that no image can have', async () => {
  const [name, taken, below] = [fresh(), fresh(), fresh()]
  await store(name, 'hello')
  await store(taken, 'other')
  await store(`vendor/${below}`, 'below')
  const refusals: [from: string, to: string, status: number, word: string, message: string][] = [
    ['none.img', fresh(), 404, 'no-such-image', 'image: there is no "none.img"; GET .../images lists the images'],
    [name, taken, 409, 'name-taken', `path: an image "${taken}" already exists; choose another name`],
    // Nodes find that one by the name alone.
    [name, below, 409, 'name-taken', `path: an image "${below}" already exists`],
    [
      name,
      `vendor/${name}`,
      400,
      'invalid-request',
      `an image stays in its directory: expected "${name}", got "vendor/`,
    ],
    [
      name,
      'disk.bin',
      400,
      'invalid-request',
      'the file would not be an image of machine-emulator nodes; keep its extension',
    ],
    [name, '../x', 403, 'forbidden', 'path: "../x" is not a valid image name'],
    [name, '.hidden', 403, 'forbidden', 'is not a valid image name'],
    [name, 'a/b/c', 400, 'invalid-request', 'path: expected at most 1 directory before the name'],
    [name, 'x"', 400, 'invalid-request', 'contains a character that is not allowed in image names'],
    [name, '', 400, 'invalid-request', 'path: expected'],
    [name, 'x'.repeat(300), 409, 'conflict', 'path: the name is too long for the file system'],
  ]
  for (const [from, to, status, word, message] of refusals) {
    const answer = await put(`${images}/${from}`, { path: to })
    const said = [
      answer.status,
      answer.headers.get('x-patchbay-error'),
      (await body<{ message: string }>(answer)).message,
    ]
    expect([to, ...said]).toEqual([to, status, word, expect.stringContaining(message)])
  }
  const empty = await put(`${images}/${name}`, {})
  expect([empty.status, await body(empty)]).toMatchObject([400, { message: expect.stringContaining('path: missing') }])
  for (const [it, content] of [
    [name, 'hello'],
    [taken, 'other'],
  ] as const)
    expect(await (await read(it)).text()).toBe(content)
})

test('v1 has the same images', async () => {
  const name = fresh()
  const answer = await send(`/v1/machine-emulator/vms/${name}`, { method: 'POST', body: 'hello' })
  expect(answer.status).toBe(204)
  expect(answer.headers.get('x-route')).toBe('/v1/machine-emulator/vms/{path}')
  expect(await listed(name, '/v1/machine-emulator/vms')).toHaveLength(1)
  expect(await listed(name)).toHaveLength(1)
})

test('words that aliases replace are valid as names of images', async () => {
  expect((await store('vpcs', 'hello')).status).toBe(204)
  expect(await listed('vpcs')).toHaveLength(1)
  expect(await (await read('vpcs')).text()).toBe('hello')
})

test('a missing image is a conflict that says which one', async () => {
  const answer = await read('not-there.qcow2')
  expect(answer.status).toBe(409)
  expect(await answer.json()).toEqual({
    message: expect.stringContaining('not-there.qcow2'),
    status: 409,
    image: 'not-there.qcow2',
    exception: 'ImageMissingError',
  })
})

test.for([
  '..%2f..%2fetc%2fpasswd',
  'a%2f..%2f..%2fsums.json',
  '%2fetc%2fpasswd',
  '..%5c..%5cetc',
  'C:disk',
  '.hidden',
  'vendor/.hidden',
  'x%00',
  'x%0a',
  '%22x%22',
])('no file outside the images is reached by %s', async (name) => {
  for (const init of [{}, { method: 'POST', body: 'x' }]) {
    const answer = await send(`${images}/${name}`, init)
    expect([400, 403]).toContain(answer.status)
    expect(await answer.json()).toMatchObject({ status: answer.status })
  }
})

test.for([
  ['bytes=1-3', 'ell', 'bytes 1-3/5'],
  ['bytes=3-', 'lo', 'bytes 3-4/5'],
  ['bytes=-2', 'lo', 'bytes 3-4/5'],
  ['bytes=-99', 'hello', 'bytes 0-4/5'],
  ['bytes=2-99', 'llo', 'bytes 2-4/5'],
] as const)('%s is answered with those bytes', async ([range, text, contentRange]) => {
  const name = fresh()
  await store(name, 'hello')
  const answer = await read(name, { range })
  expect(answer.status).toBe(206)
  expect(answer.headers.get('content-range')).toBe(contentRange)
  expect(await answer.text()).toBe(text)
})

test.for(['bytes=3-1', 'bytes=0-1,3-4', 'lines=1-2', 'bytes=x'])('%s is not a range to follow', async (range) => {
  const name = fresh()
  await store(name, 'hello')
  const answer = await read(name, { range })
  expect(answer.status).toBe(200)
  expect(await answer.text()).toBe('hello')
})

test('a range past the end is refused with the size', async () => {
  const name = fresh()
  await store(name, 'hello')
  for (const range of ['bytes=5-', 'bytes=-0']) {
    const answer = await read(name, { range })
    expect(answer.status).toBe(416)
    expect(answer.headers.get('content-range')).toBe('bytes */5')
    expect(await answer.json()).toMatchObject({ status: 416 })
  }
})

test('an image that did not change is not sent again, and a range of another one is sent whole', async () => {
  const name = fresh()
  await store(name, 'hello')
  const first = await read(name)
  const etag = first.headers.get('etag') ?? ''
  const modified = first.headers.get('last-modified') ?? ''
  await first.text()
  expect((await read(name, { 'if-none-match': `"other", W/${etag}` })).status).toBe(304)
  expect((await read(name, { 'if-modified-since': modified })).status).toBe(304)
  expect((await read(name, { range: 'bytes=0-1', 'if-range': etag })).status).toBe(206)
  expect((await read(name, { range: 'bytes=0-1', 'if-range': modified })).status).toBe(206)
  await store(name, 'HELLO')
  const changed = await read(name, { range: 'bytes=0-1', 'if-range': etag, 'if-none-match': etag })
  expect(changed.status).toBe(200)
  expect(changed.headers.get('etag')).not.toBe(etag)
  expect(await changed.text()).toBe('HELLO')
})

test('HEAD has the size and no body', async () => {
  const name = fresh()
  await store(name, 'hello')
  const answer = await send(`${images}/${name}`, { method: 'HEAD', headers: { range: 'bytes=0-1' } })
  expect(answer.status).toBe(200)
  expect(answer.headers.get('etag')).toMatch(/^".+"$/)
  expect(await answer.text()).toBe('')
})

test('an upload in parts reports the stored bytes, continues after them, and is an image when it is complete', async () => {
  const name = fresh()
  const begun = await part(name, '0-1/5', 'he')
  expect(begun.status).toBe(308)
  expect(begun.headers.get('range')).toBe('bytes=0-1')
  expect(await listed(name)).toEqual([])
  const asked = await part(name, '*/5')
  expect(asked.status).toBe(308)
  expect(asked.headers.get('range')).toBe('bytes=0-1')
  const gap = await part(name, '3-4/5', 'lo')
  expect(gap.status).toBe(409)
  expect(gap.headers.get('range')).toBe('bytes=0-1')
  expect((await part(name, '1-3/5', 'ell', { 'repr-digest': `md5=:${helloInMd5}:` })).status).toBe(308)
  expect((await part(name, '4-4/5', 'o')).status).toBe(204)
  expect(await (await read(name)).text()).toBe('hello')
  expect((await part(name, '*/5')).headers.get('range')).toBeNull()
})

test.for(['0-5/5', '3-1/5', '0-1/*', '0-1', 'x', '0-1/5 '])(
  'the part %s is refused, as it is not possible',
  async (range) => {
    const answer = await part(fresh(), range, '1234')
    expect(answer.status).toBe(400)
    expect(await body(answer)).toMatchObject({ message: expect.stringContaining('Content-Range') })
  },
)

test('a digest is checked before the image is stored, in each way it can be given', async () => {
  const name = fresh()
  const good: [Record<string, string>, string][] = [
    [{ 'repr-digest': `sha-256=:${helloInSha256}:` }, ''],
    [{ 'repr-digest': `unknown=:AAAA:, md5=:${helloInMd5}:` }, ''],
    [{ 'content-md5': helloInMd5 }, ''],
    [{}, `?md5sum=${md5OfHello.toUpperCase()}`],
  ]
  for (const [headers, query] of good) expect((await store(name, 'hello', headers, query)).status).toBe(204)
  for (const [headers, query] of good) {
    const answer = await store(name, 'jello', headers, query)
    expect(answer.status).toBe(400)
    expect(await body(answer)).toMatchObject({ message: expect.stringContaining('nothing was stored') })
  }
  expect(await (await read(name)).text()).toBe('hello')
})

test('a digest in an unsupported form is refused', async () => {
  for (const header of ['unknown=:AAAA:', 'sha-256=:AAAA:', 'sha-256=AAAA', 'md5=:===:', '']) {
    expect((await store(fresh(), 'hello', { 'repr-digest': header })).status).toBe(400)
  }
  expect((await store(fresh(), 'hello', {}, '?md5sum=123')).status).toBe(400)
})

test('files of other kinds are not listed as images', async () => {
  const stem = fresh('')
  for (const extension of ['bin', 'image', 'md5sum']) await store(stem + extension, 'x')
  const all = await body<Listed[]>(send(images))
  expect(all.filter(({ path }) => path.startsWith(stem))).toEqual([])
})

test('an image of an iou router is listed when it is a program for this kind of processor', async () => {
  const programs = '/v2/compute/iou/images'
  const header = Buffer.alloc(64)
  Buffer.from('7f454c46010101', 'hex').copy(header)
  const [program, text] = [fresh('bin'), fresh('bin')]
  for (const [name, content] of [
    [program, header],
    [text, Buffer.from('#!/bin/sh')],
    [`i86bi_${program}.old`, header],
    [`${program}.other`, header],
  ] as const) {
    expect((await send(`${programs}/${name}`, { method: 'POST', body: content })).status).toBe(204)
  }
  for (const list of [programs, '/v1/iou/vms']) {
    const names = (await body<Listed[]>(send(list))).map(({ filename }) => filename)
    expect(names.filter((name) => name.includes(program) || name === text).sort()).toEqual(
      [program, `i86bi_${program}.old`].sort(),
    )
  }
})

test('a disk needs a known format, and options of that format', async () => {
  const create = (input: object) => post(`${v2}/img`, { path: fresh(), size: 8, ...input })
  const refusals: [object, string][] = [
    [{}, 'format: missing, expected one of qcow2, qcow, raw, vmdk, vdi, vpc, qed, parallels'],
    [{ format: 'toString' }, 'format: got "toString"'],
    [{ format: 'raw', cluster_size: 512 }, 'cluster_size: the format raw has no such option, it has preallocation'],
    [{ format: 'qcow', static: 'on' }, 'static: the format qcow has no such option, it has none'],
    [{ format: 'qcow2', backing_file: '/etc/passwd' }, 'backing_file: unknown field'],
    [{ format: 'qcow2', refcount_bits: 3 }, 'refcount_bits: expected a power of two from 1 to 64'],
    [{ format: 'vmdk', subformat: 'fixed' }, 'subformat: expected "monolithicSparse"'],
    [{ format: 'vpc', size: 0 }, 'size: expected an integer from 1'],
  ]
  for (const [input, message] of refusals) {
    const answer = await create(input)
    expect(await body(answer)).toMatchObject({ message: expect.stringContaining(message), status: 400 })
  }
})

test('only a tool that was found in PATH is run', async () => {
  for (const qemu_img of ['/bin/sh', 'sh', '../qemu-img']) {
    const answer = await post(`${v2}/img`, { path: fresh(), format: 'raw', size: 1, qemu_img })
    expect(answer.status).toBe(409)
    expect(await body(answer)).toMatchObject({ message: expect.stringMatching(/^(Compute .*: )?qemu_img: /) })
  }
  for (const path of [`${v2}/img-binaries`, '/v1/machine-emulator/img-binaries']) {
    for (const tool of await body<object[]>(send(path))) {
      expect(tool).toEqual({ path: expect.stringMatching(/^\/.*qemu-img$/), version: expect.stringMatching(/^\d/) })
    }
  }
})

test('a missing disk cannot be extended', async () => {
  const answer = await put(`${v2}/img`, { path: 'no-such.qcow2', extend: 1 })
  expect(answer.status).toBe(409)
  expect(await body(answer)).toMatchObject({ image: 'no-such.qcow2' })
})
