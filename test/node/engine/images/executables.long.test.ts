import { createHash } from 'node:crypto'
import { appendFile, copyFile, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { report } from '../../../stand-in/report/build.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { iourc, requireGcc } from '../../../support/iou.ts'
import { TestService } from '../../../support/service.ts'
import { describeWith, testWith } from '../../../support/test-with.ts'

const gcc = requireGcc()
const admin = 'the-token-of-the-administrator'
const name = 'i86bi-report.bin'
const images = '/v2/compute/iou/images'
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

interface Answer {
  readonly status: number
  readonly message: string
}

/** A user of a service, by a token. */
const user =
  (service: TestService, token: string, headers: Record<string, string> = {}) =>
  async (method: string, path: string, body?: unknown): Promise<Answer & Record<string, unknown>> => {
    const answer = await service.fetch(path, {
      method,
      headers: { authorization: `Bearer ${token}`, ...headers },
      ...(body !== undefined && { body: Buffer.isBuffer(body) ? new Uint8Array(body) : JSON.stringify(body) }),
    })
    const text = await answer.text()
    return { ...(text === '' ? {} : JSON.parse(text)), status: answer.status }
  }
type User = ReturnType<typeof user>

async function operator(service: TestService): Promise<User> {
  const { token } = await user(service, admin)('POST', '/v2/tokens', { name: 'student', role: 'operate' })
  return user(service, String(token))
}

/** A program that leaves a file behind wherever it is run, and whether it did. */
async function tellTale() {
  const trace = await freshDirectory()
  const bytes = await readFile(await report({ directories: [trace] }))
  return { bytes, trace, hasRun: async () => (await readdir(trace)).length > 0 }
}

/** A router of an image, which may refuse to start. */
async function router(as: User, more: Record<string, unknown> = {}): Promise<string> {
  const { project_id } = await as('POST', '/v2/compute/projects', { name: `lab ${Math.random()}` })
  const nodes = `/v2/compute/projects/${project_id}/iou/nodes`
  const made = await as('POST', nodes, { name: 'R1', path: name, iourc_content: iourc(), ...more })
  expect(made.status, made.message).toBe(201)
  return `${nodes}/${made.node_id}`
}

describeWith(gcc)('outside local mode', () => {
  const settings = { local: false, token: admin, sandbox: 'off' }

  test('only an administrator uploads programs, and only these are run or probed', async () => {
    const service = await TestService.start({ ...settings })
    const [root, student] = [user(service, admin), await operator(service)]
    const { bytes, hasRun } = await tellTale()
    const refused = await student('POST', `${images}/${name}`, bytes)
    expect(refused).toMatchObject({ status: 403, message: expect.stringContaining('only an administrator') })
    expect((await student('POST', `/v1/iou/vms/${name}`, bytes)).status).toBe(403)
    expect(await readdir(join(service.data, 'images/iou'))).toEqual([])

    // As a file that came there by another way.
    const file = join(service.data, 'images/iou', name)
    await writeFile(file, bytes, { mode: 0o755 })
    const node = await router(student)
    const message = expect.stringContaining(sha256(bytes))
    const start = { iourc_content: iourc(), license_check: false }
    expect(await student('POST', `${node}/start`, start)).toMatchObject({ status: 409, message })
    expect(await student('POST', `${node}/start`, {})).toMatchObject({ status: 409, message })
    expect((await student('PUT', node, { path: name, use_default_iou_values: true })).status).toBe(200)
    expect(await hasRun()).toBe(false)

    expect((await root('POST', `${images}/${name}`, bytes)).status).toBe(204)
    expect((await student('POST', `${node}/start`, start)).status).toBe(200)
    await expect.poll(hasRun).toBe(true)
    await student('POST', `${node}/stop`)

    // What the administrator brought is known after a restart, too.
    await service.end()
    await service.restart()
    await student('POST', '/v2/compute/projects', { project_id: node.split('/')[4], name: 'again' })
    expect((await student('POST', `${node}/start`, start)).status).toBe(200)
  })

  test('with a digest in the setting all users may upload and run that program, and no other', async () => {
    const { bytes, hasRun } = await tellTale()
    const settingsNow = { ...settings, executables: [sha256(bytes).toUpperCase()] }
    const service = await TestService.start(settingsNow)
    const student = await operator(service)
    const other = Buffer.concat([bytes, Buffer.from('x')])
    expect(await student('POST', `${images}/${name}`, other)).toMatchObject({
      status: 403,
      message: expect.stringContaining(sha256(other)),
    })
    expect(await readdir(join(service.data, 'images/iou'))).toEqual([])
    expect((await student('POST', `${images}/${name}`, bytes)).status).toBe(204)
    const node = await router(student)
    expect((await student('POST', `${node}/start`, {})).status).toBe(200)
    await expect.poll(hasRun).toBe(true)
    await student('POST', `${node}/stop`)
    await service.configure({ ...settingsNow, executables: [] })
    await service.end()
    await service.restart()
    const reopened = await student('POST', `${node}/start`, {})
    expect(reopened.status).toBe(409)
  })

  test('a program that is replaced or written to after the check does not run', async () => {
    const service = await TestService.start({ ...settings })
    const root = user(service, admin)
    const [good, evil] = [await tellTale(), await tellTale()]
    await root('POST', `${images}/${name}`, good.bytes)
    const node = await router(root)
    const { node_directory } = await root('GET', node)
    expect((await root('POST', `${node}/start`, {})).status).toBe(200)
    await root('POST', `${node}/stop`)
    const file = join(service.data, 'images/iou', name)
    await copyFile(file, `${file}.kept`)
    await writeFile(file, evil.bytes)
    expect((await root('POST', `${node}/start`, {})).status).toBe(409)
    await copyFile(`${file}.kept`, file)
    await appendFile(file, 'more')
    expect((await root('POST', `${node}/start`, {})).status).toBe(409)
    // An image of the project, which its users may write to at any time.
    await writeFile(join(String(node_directory), 'i86bi-own.bin'), evil.bytes, { mode: 0o755 })
    const own = await root('POST', node.slice(0, node.lastIndexOf('/')), {
      ...{ name: 'R2', path: join(String(node_directory), 'i86bi-own.bin'), iourc_content: iourc() },
    })
    expect((await root('POST', `${node.slice(0, node.lastIndexOf('/'))}/${own.node_id}/start`, {})).status).toBe(409)
    expect(await evil.hasRun()).toBe(false)
  })

  test('an administrator does not complete an upload in parts of another user', async () => {
    const { bytes } = await tellTale()
    const service = await TestService.start({ ...settings, executables: ['0'.repeat(64)] })
    const student = await operator(service)
    const { token } = await user(service, admin)('POST', '/v2/tokens', { name: 'other', role: 'operate' })
    const range = { 'content-range': `bytes 0-9/${bytes.length}` }
    const half = user(service, String(token), range)
    expect((await half('POST', `${images}/${name}`, bytes.subarray(0, 10))).status).toBe(308)
    const asked = { 'content-range': `bytes */${bytes.length}` }
    const progress = (as: string) =>
      service.fetch(`${images}/${name}`, { method: 'POST', headers: { authorization: `Bearer ${as}`, ...asked } })
    expect((await progress(String(token))).headers.get('range')).toBe('bytes=0-9')
    expect((await progress(admin)).headers.get('range')).toBeNull()
    expect((await student('GET', images)).status).toBe(200)
  })

  test('the parts of an administrator cannot be reached by the name of an image', async () => {
    const listed = sha256(Buffer.from('some other program'))
    const service = await TestService.start({ ...settings, executables: [listed] })
    const { bytes } = await tellTale()
    const half = bytes.length >> 1
    const partOf = (token: string, first: number, last: number): User =>
      user(service, token, { 'content-range': `bytes ${first}-${last}/${bytes.length}` })
    const { token } = await user(service, admin)('POST', '/v2/tokens', { name: 'student', role: 'operate' })
    const planted = partOf(String(token), 0, half - 1)
    for (const group of ['administrators', '.administrators', 'administrators/']) {
      const path = `${images}/${name}${encodeURIComponent(group)}`
      expect((await planted('POST', path, bytes.subarray(0, half))).status).toBeLessThan(500)
    }
    const rest = partOf(admin, half, bytes.length - 1)
    expect(await rest('POST', `${images}/${name}`, bytes.subarray(half))).toMatchObject({ status: 409 })
  })

  test('without credentials only the list counts', async () => {
    const service = await TestService.start({ local: false, sandbox: 'off' })
    const { bytes, hasRun } = await tellTale()
    const anybody = user(service, 'none')
    expect((await anybody('POST', `${images}/${name}`, bytes)).status).toBe(403)
    await writeFile(join(service.data, 'images/iou', name), bytes, { mode: 0o755 })
    expect((await anybody('POST', `${await router(anybody)}/start`, {})).status).toBe(409)
    expect(await hasRun()).toBe(false)
  })

  test('a gateway hands on the role of the client, on every way to a compute', async () => {
    const gateway = await TestService.start({ gateway: true, token: admin })
    const compute = await TestService.start({ user: 'gateway', password: 'secret-of-it' })
    const [root, student] = [user(gateway, admin), await operator(gateway)]
    const url = new URL(compute.url)
    const registered = await root('POST', '/v2/computes', {
      ...{ compute_id: 'c1', protocol: 'http', host: url.hostname, port: Number(url.port) },
      ...{ user: 'gateway', password: 'secret-of-it' },
    })
    expect(registered.status, registered.message).toBe(201)
    const { bytes } = await tellTale()
    for (const path of [`/v2/computes/c1/iou/images/${name}`, `${images}/${name}`, `/v1/iou/vms/${name}`]) {
      const answer = await student('POST', path, bytes)
      expect([path, answer.status, answer.message]).toEqual([
        path,
        403,
        expect.stringContaining('only an administrator'),
      ])
      expect([path, (await root('POST', path, bytes)).status]).toEqual([path, 204])
    }
  })
})

testWith(gcc)('in local mode any image is run, as before', async () => {
  const service = await TestService.start()
  const { bytes, hasRun } = await tellTale()
  const anybody = user(service, 'none')
  expect((await anybody('POST', `${images}/${name}`, bytes)).status).toBe(204)
  expect((await anybody('POST', `${await router(anybody)}/start`, {})).status).toBe(200)
  await expect.poll(hasRun).toBe(true)
})
