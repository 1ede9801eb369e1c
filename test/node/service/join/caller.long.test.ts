import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import type { Compute } from '../../../../src/model/compute.ts'
import { hangMs } from '../../../support/limits.ts'
import { expectNotLocal } from '../../../support/not-local.ts'
import { requireProgram } from '../../../support/require.ts'
import { TestService } from '../../../support/service.ts'
import { testWith } from '../../../support/test-with.ts'

const token = 'tunnel-test-0123456789'
const embedded = { 'pc.engine': 'embedded' }
const basic = (user: string) => `Basic ${btoa(`${user}:geheim-geheim`)}`
const credentials = { user: 'anna', password: 'geheim-geheim' }

let gateway: TestService
/** Computes in local mode: one that has joined the gateway, and one that is registered by its address. */
let joined: TestService
let registered: TestService
/** Their ids. */
let computes: string[]

const ask = (path: string, init: RequestInit = {}) =>
  gateway.fetch(path, { ...init, headers: { authorization: basic('anna'), ...init.headers } })

beforeAll(async () => {
  gateway = await TestService.startForAll({ gateway: true, ...credentials, 'fleet.join_tokens': [token] })
  joined = await TestService.startForAll({
    ...embedded,
    'join.url': gateway.url,
    'join.token': token,
    local: true,
  })
  registered = await TestService.startForAll({ ...embedded, ...credentials })
  const { hostname: host, port } = new URL(registered.url)
  const input = { compute_id: 'near', protocol: 'http', host, port: Number(port), ...credentials }
  expect((await ask('/v2/computes', { method: 'POST', body: JSON.stringify(input) })).status).toBe(201)
  const id = (await readFile(join(joined.data, 'compute-id'), 'utf8')).trim()
  const isThere = async () => ((await (await ask(`/v2/computes/${id}`)).json()) as Compute).connected
  await vi.waitFor(async () => expect(await isThere()).toBe(true), { timeout: hangMs, interval: 50 })
  computes = [id, 'near']
})

afterAll(async () => {
  await Promise.all([gateway, joined, registered].map((service) => service?.close()))
})

const post = (body: unknown): RequestInit => ({ method: 'POST', body: JSON.stringify(body) })

test('a compute in local mode is not local for requests of a gateway, through a tunnel or by its address', async () => {
  const outside = await mkdtemp(join(tmpdir(), 'patchbay-outside-'))
  onTestFinished(() => rm(outside, { recursive: true, force: true }))
  for (const id of computes) {
    // By the gateway's own interface, and handed on as it is.
    const wanted = { name: 'x', path: join(outside, 'lab'), compute_id: id }
    expect((await ask('/v2/compute/projects', post(wanted))).status).toBe(403)
    const { project_id } = (await (await ask('/v2/compute/projects', post({ name: 'y', compute_id: id }))).json()) as {
      project_id: string
    }
    const path = JSON.stringify({ path: join(outside, 'moved') })
    expect((await ask(`/v2/compute/projects/${project_id}`, { method: 'PUT', body: path })).status).toBe(403)
    const through = `/v2/computes/${id}/projects/${project_id}`
    expect((await ask(through, { method: 'PUT', body: path })).status).toBe(403)
    expect(await (await ask(`/v2/computes/${id}/config/reload`, { method: 'POST' })).json()).toMatchObject({
      status: 403,
    })
  }
  // Whoever asks the computes themselves is at their machine.
  for (const service of [joined, registered]) {
    const headers = { authorization: basic('anna') }
    const path = join(outside, service.url.slice(-5))
    const answer = await service.fetch('/v2/compute/projects', { ...post({ name: 'z', path }), headers })
    expect(answer.status).toBe(201)
    const version = await service.fetch('/v2/compute/version', { headers })
    expect(await version.json()).toMatchObject({ local: true })
  }
})

testWith(requireProgram('qemu-system-x86_64'))(
  'options that read files of the host are refused to requests of a gateway, through a tunnel or by its address',
  async () => {
    for (const compute_id of computes) {
      const made = await ask('/v2/compute/projects', post({ name: 'x', compute_id }))
      const { project_id } = (await made.json()) as { project_id: string }
      const nodes = `/v2/computes/${compute_id}/projects/${project_id}/machine-emulator/nodes`
      const options = '-fsdev local,id=a,path=/,security_model=none'
      const answer = await ask(nodes, post({ name: 'M', platform: 'x86_64', options }))
      expect([answer.status, (await answer.json()) as object]).toMatchObject([400, { message: /local mode/ }])
    }
  },
)

test('a gateway is not in local mode, and refuses requests that need it', async () => {
  const send = (method: string, path: string, body?: unknown) =>
    ask(path, { method, ...(body !== undefined && { body: JSON.stringify(body) }) })
  await expectNotLocal(send, computes)
})

test('a client that claims to be a gateway only loses local mode', async () => {
  const service = await TestService.start({ ...embedded })
  for (const via of ['admin', 'user', 'x']) {
    const headers = { 'x-patchbay-via': via }
    expect(await (await service.fetch('/v2/compute/version', { headers })).json()).toMatchObject({ local: false })
  }
})

test('a compute that joins a gateway is not in local mode unless its settings say so', async () => {
  const settings = { ...embedded, 'join.url': 'ws://127.0.0.1:9', 'join.token': token }
  const service = await TestService.start(settings)
  expect(await service.call('GET', '/v2/compute/version')).toMatchObject({ local: false })
})
