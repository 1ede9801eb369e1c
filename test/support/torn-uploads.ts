import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect } from 'vitest'
import { figure, parseExposition } from './exposition.ts'
import type { TestService } from './service.ts'

/** A gateway, asked as its administrator. */
export interface Gateway {
  readonly url: string
  readonly token: string
  fetch(method: string, path: string, body?: unknown, init?: RequestInit): Promise<Response>
  call<T = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<T>
}

export const projects = '/v2/compute/projects'
const announced = 1_000_000
const sent = 300_000

interface Torn {
  readonly path: string
  /** How the length of the body is said. */
  readonly framing: 'length' | 'chunked'
  /** How the connection breaks. */
  readonly end: 'reset' | 'close'
}

type Half = Omit<Torn, 'end'>

/** A connection by which a part of a body was sent to the gateway; `begun` has resolved. */
async function sendPart(gateway: Gateway, { path, framing }: Half, begun: () => Promise<void>): Promise<Socket> {
  const { host, port } = new URL(gateway.url)
  const client = connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {})
  await once(client, 'connect')
  const length = framing === 'length' ? `Content-Length: ${announced}` : 'Transfer-Encoding: chunked'
  client.write(`POST ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${gateway.token}\r\n${length}\r\n\r\n`)
  const bytes = Buffer.alloc(sent, 'x')
  client.write(
    framing === 'length' ? bytes : Buffer.concat([Buffer.from(`${sent.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]),
  )
  await begun()
  return client
}

/** Sends a part of a body to the gateway, waits until `begun`, and breaks the connection off. */
async function tear(gateway: Gateway, { end, ...half }: Torn, begun: () => Promise<void>): Promise<void> {
  const client = await sendPart(gateway, half, begun)
  const closed = once(client, 'close')
  if (end === 'reset') client.resetAndDestroy()
  else client.destroy()
  await closed
}

/** Sends a part of a body to the gateway, waits until `begun`, and sends no more; the answer, as it came. */
export async function halfSent(gateway: Gateway, half: Half, begun: () => Promise<void>): Promise<string> {
  const client = await sendPart(gateway, half, begun)
  client.end()
  let answer = ''
  for await (const data of client) answer += data
  return answer
}

/** Sends a whole body in chunks, with another length in the headers; the answer, as it came. */
export async function sentWithTwoLengths({ url, token }: Gateway, path: string): Promise<string> {
  const { host, port } = new URL(url)
  const client = connect({ port: Number(port), host: '127.0.0.1' }).on('error', () => {})
  await once(client, 'connect')
  const lengths = 'Content-Length: 9\r\nTransfer-Encoding: chunked\r\nConnection: close'
  let answer = ''
  client.on('data', (data) => (answer += data))
  // It is refused before its body is read: the connection may end with that.
  const closed = new Promise((resolve) => client.once('close', resolve))
  const head = `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\n${lengths}\r\n\r\n`
  client.write(`${head}4\r\nhalf\r\n0\r\n\r\n`)
  await closed
  return answer
}

/** Requests that are being answered. */
const inFlight = async (metrics: Promise<Response>) =>
  (figure(parseExposition(await (await metrics).text()), 'patchbay_http_requests_in_flight') ?? 0) - 1

/** Resolves when so many requests are being answered. */
export const untilInFlight = (metrics: () => Promise<Response>, count: number) =>
  expect.poll(() => inFlight(metrics())).toBe(count)

/** The names of the images of computes; what came of those that broke off is kept beside them, to be gone on with. */
const imagesOf = async (services: readonly TestService[]) =>
  (await Promise.all(services.map(({ data }) => readdir(join(data, 'images/machine-emulator')))))
    .flat()
    .filter((name) => !name.startsWith('.'))

/** Each path has both framings and both ends, each framing has both ends. */
const waysOf = (index: number): readonly Pick<Torn, 'framing' | 'end'>[] =>
  index % 2 === 0
    ? [
        { framing: 'length', end: 'reset' },
        { framing: 'chunked', end: 'close' },
      ]
    : [
        { framing: 'length', end: 'close' },
        { framing: 'chunked', end: 'reset' },
      ]

/** Registers two computes by their addresses: `a` and `b`. */
export async function registerBoth(gateway: Gateway, a: TestService, b: TestService): Promise<void> {
  for (const [compute_id, service] of [['a', a] as const, ['b', b] as const]) {
    const port = Number(new URL(service.url).port)
    await gateway.call('POST', '/v2/computes', { compute_id, protocol: 'http', host: '127.0.0.1', port })
  }
}

interface Computes {
  readonly a: TestService
  readonly b: TestService
  /** One that has joined, if there is one. */
  readonly joined?: { readonly id: string; readonly service: TestService }
}

/** Sees that no upload which breaks off changes anything on the computes of a gateway. */
export async function expectTornUploadsChangeNothing(gateway: Gateway, { a, b, joined }: Computes): Promise<void> {
  const all = [a, b, ...(joined === undefined ? [] : [joined.service])]
  const uploads: [string, TestService[]][] = [
    ['/v2/compute/machine-emulator/images/v2.img', all],
    ['/v1/machine-emulator/vms/v1.img', all],
  ]
  const files: string[] = []
  for (const { id, service } of [{ id: 'a', service: a }, ...(joined === undefined ? [] : [joined])]) {
    const { project_id } = await gateway.call('POST', projects, { name: 'lab', compute_id: id })
    const file = `${projects}/${project_id}/files/notes.txt`
    files.push(file)
    expect((await gateway.fetch('POST', file, undefined, { body: 'kept' })).ok).toBe(true)
    uploads.push(
      [file, [service]],
      [`/v1/projects/${project_id}/files/notes.txt`, [service]],
      [`/v2/computes/${id}/machine-emulator/images/handed-on.img`, [service]],
      [`/v2/computes/${id}/projects/${project_id}/files/notes.txt`, [service]],
    )
  }
  const kept = async () => Promise.all(files.map(async (file) => (await gateway.fetch('GET', file)).text()))
  for (const [index, [path, services]] of uploads.entries())
    for (const way of waysOf(index)) {
      const reached = async (count: number) => {
        for (const service of services) await untilInFlight(() => service.fetch('/metrics'), count)
      }
      await tear(gateway, { path, ...way }, () => reached(1))
      await reached(0)
      expect([path, way, ...(await kept()), await imagesOf(all)]).toEqual([path, way, ...files.map(() => 'kept'), []])
    }
  expect(await gateway.call('GET', '/v2/computes')).toMatchObject(all.map(() => ({ connected: true })))
  // What comes whole is stored as ever.
  for (const [path] of uploads) {
    const content = new Blob(['whole, ', path]).stream()
    const answer = await gateway.fetch('POST', path, undefined, { body: content, duplex: 'half' } as RequestInit)
    expect([path, answer.ok]).toEqual([path, true])
  }
  const expected = [...files.map(() => 'handed-on.img'), ...all.map(() => 'v1.img'), ...all.map(() => 'v2.img')]
  expect((await imagesOf(all)).toSorted()).toEqual(expected)
  for (const name of new Set(expected)) await gateway.call('DELETE', `/v2/compute/machine-emulator/images/${name}`)
}
