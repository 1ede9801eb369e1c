import { expect, test } from 'vitest'
import { RemoteHostAgent } from '../../../../src/compute/remote/remote-host-agent.ts'
import { ConnectionLost } from '../../../../src/compute/remote/transport.ts'
import { ApiError, conflict } from '../../../../src/lib/errors/api-error.ts'
import { unusedPort } from '../../../support/fleet.ts'
import { type Answer, agentAt, dies, lyingCompute, refusal, says } from '../../../support/lying-compute.ts'

const ports = {
  ...{ console_port_range: [1, 2], vnc_port_range: [3, 4], udp_port_range: [5, 6] },
  ...{ console_ports: [1], vnc_ports: [], udp_ports: [] },
}
const ref = {
  project_id: '10000000-0000-4000-8000-000000000000',
  kind: 'pc',
  node_id: '10000000-0000-4000-8000-000000000001',
} as const
const html: Answer = (_, res) => res.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><p>hello')

test('unknown members of a newer compute are accepted in an answer', async () => {
  const { agent } = await lyingCompute(says({ ...ports, quantum_ports: [7] }))
  expect(await agent.host.ports()).toMatchObject(ports)
})

test.for<[name: string, answer: Answer, message: string]>([
  ['a page', html, 'not JSON'],
  ['nothing', (_, res) => res.end(), 'an empty answer'],
  ['half of it', (_, res) => res.end('{"udp_ports": [1,'), 'not JSON'],
  ['a list', says([ports]), 'answer: expected an object, got a list'],
  ['another type', says({ ...ports, udp_ports: 'none' }), 'udp_ports: expected a list, got "none"'],
  ['less', says({ ...ports, vnc_ports: undefined }), 'vnc_ports: missing, expected a list'],
])('%s instead of an answer is a bad gateway', async ([, answer, message]) => {
  const { agent, requests } = await lyingCompute(answer)
  const error = await refusal(agent.host.ports())
  expect(error).toMatchObject({ status: 502, message: expect.stringContaining(message) })
  expect(error.message).toContain('The compute one sent a malformed answer: ')
  expect(requests).toHaveLength(1)
})

test('an answer that is too large is cancelled, with and without its length', async () => {
  const large: Answer = (_, res) => {
    res.on('error', () => {})
    const more = () => res.write(Buffer.alloc(64 << 10, ' ')) && setImmediate(more)
    res.on('drain', more)
    more()
  }
  for (const answer of [large, says({ ...ports, udp_ports: Array(50_000).fill(5000) })]) {
    const { agent } = await lyingCompute(answer, { limits: { answerBytes: 100_000 } })
    const error = await refusal(agent.host.ports())
    expect(error).toMatchObject({
      status: 502,
      message: expect.stringContaining('more than 100000 bytes'),
    })
  }
  const endless = await lyingCompute(large, { limits: { answerBytes: 100_000 } })
  await refusal(endless.agent.host.ports())
  await endless.left
})

test('an answer that breaks off is not requested again', async () => {
  const { agent, requests } = await lyingCompute((_, res) => {
    res.writeHead(200, { 'content-length': '100' })
    res.write('{"udp_ports":')
    setImmediate(() => res.destroy())
  })
  expect(await refusal(agent.host.ports())).toMatchObject({
    status: 502,
    message: expect.stringContaining('the answer ended early'),
  })
  expect(requests).toHaveLength(1)
})

test.for<[name: string, answer: Answer]>([
  ['does not come', () => {}],
  ['does not go on', (_, res) => void res.write('{')],
])('an answer that %s has its time, and then the request is given up', async ([, answer]) => {
  const { agent, requests, left } = await lyingCompute(answer, { limits: { readMs: 100 } })
  const error = await refusal(agent.host.ports())
  expect(error).toMatchObject({
    status: 504,
    message: expect.stringMatching(/^The compute one did not .* within 100 ms$/),
  })
  await left
  expect(requests).toHaveLength(1)
})

test('slow actions have a longer timeout', async () => {
  const slow: Answer = (_, res) => void setTimeout(() => says([])(_, res, 1), 200)
  const { agent } = await lyingCompute(slow, { limits: { readMs: 50 } })
  expect(await agent.host.action('hypervisor', 'vms', {})).toEqual([])
})

test('errors of a compute are passed on with all members', async () => {
  const fault = { message: 'no such image', status: 409, image: 'x.qcow2' }
  const { agent } = await lyingCompute(says(fault, 409, { 'retry-after': '3', 'content-range': 'bytes */5' }))
  expect(await refusal(agent.nodes.get(ref))).toMatchObject({
    status: 409,
    message: 'no such image',
    extra: { image: 'x.qcow2' },
    headers: { 'retry-after': '3', 'content-range': 'bytes */5' },
  })
})

test.for<[status: number, headers: Record<string, string>, ours: number, message: string]>([
  [401, {}, 409, 'The compute one refuses the user and password of its record: change them with a PUT of the compute'],
  [407, {}, 409, 'The compute one can only be reached through a proxy that requires credentials'],
  [500, {}, 502, 'The compute one failed: why'],
  [404, {}, 404, 'why'],
  [403, {}, 403, 'why'],
  [429, {}, 429, 'why'],
  [507, {}, 507, 'why'],
])('the error %d of a compute is ours as %s', async ([status, headers, ours, message]) => {
  const { agent } = await lyingCompute(says({ message: 'why', status }, status, headers))
  expect(await refusal(agent.projects.list())).toMatchObject({ status: ours, message })
})

test('a path that another version of a compute lacks is 501', async () => {
  for (const status of [404, 405]) {
    const { agent } = await lyingCompute((_, res) =>
      res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ message: 'why', status })),
    )
    expect(await refusal(agent.host.interfaces())).toMatchObject({
      status: 501,
      message: expect.stringContaining('version'),
    })
  }
})

test.for<[name: string, status: number, body: string]>([
  ['an error of a proxy', 503, '<h1>503 Service Unavailable</h1>'],
  ['an error of something else', 404, '{"error": "not found"}'],
  ['an error that is too long', 400, JSON.stringify({ message: 'x'.repeat(100_000), status: 400 })],
  ['what is only for another question', 304, ''],
])('%s is a bad gateway', async ([, status, body]) => {
  const { agent, requests } = await lyingCompute((_, res) =>
    res.writeHead(status, { 'content-type': 'text/html', location: 'http://127.0.0.1:1/' }).end(body),
  )
  const message = expect.stringContaining(`The compute one answered ${status} with text/html`)
  expect(await refusal(agent.host.ports())).toMatchObject({ status: 502, message })
  expect(requests).toHaveLength(1)
})

test('a read is repeated twice when no answer has begun', async () => {
  const { agent, requests } = await lyingCompute((req, res, count) =>
    count < 3 ? dies(req, res, count) : says(ports)(req, res, count),
  )
  expect(await agent.host.ports()).toEqual(ports)
  expect(requests).toHaveLength(3)
  const dead = await lyingCompute(dies)
  expect(await refusal(dead.agent.host.ports())).toMatchObject({
    status: 503,
    message: expect.stringContaining('The compute one cannot be reached: '),
  })
  expect(dead.requests).toHaveLength(3)
})

test('a change is never repeated', async () => {
  const { agent, requests } = await lyingCompute(dies)
  const changes = [
    () => agent.projects.create({ name: 'lab' }),
    () => agent.projects.reserveUdpPort(ref.project_id),
    () => agent.nodes.detachNio(ref, { adapter: 0, port: 0 }),
    () => agent.images.write('iou', 'x', new Blob(['x']).stream(), { digests: [] }),
  ]
  for (const [index, change] of changes.entries()) {
    expect(await refusal(change())).toMatchObject({ status: 503 })
    expect(requests).toHaveLength(index + 1)
  }
})

test('a redirect is not followed', async () => {
  const { agent, requests } = await lyingCompute((_, res) => res.writeHead(302, { location: '/x' }).end())
  expect(await refusal(agent.host.ports())).toMatchObject({
    status: 409,
    message: 'The compute one answered with a redirect, which is not followed',
  })
  expect(requests).toHaveLength(1)
})

test('a missing compute cannot be reached', async () => {
  expect(await refusal(agentAt(await unusedPort()).host.ports())).toMatchObject({
    status: 503,
    message: expect.stringMatching(/^The compute one cannot be reached: .*ECONNREFUSED/),
  })
})

test('an error of the transport is passed on, and the request is repeated only when a connection ended', async () => {
  for (const [error, most] of [
    [conflict('it cannot be used'), 1],
    [new ApiError(504, 'it went away', { cause: new ConnectionLost('reset') }), 3],
  ] as const) {
    let count = 0
    const send = () => {
      count += 1
      return Promise.reject(error)
    }
    expect(await refusal(new RemoteHostAgent({ name: 'one', send }).host.ports())).toBe(error)
    expect(count).toBe(most)
  }
})

test('a cancelled request is rejected, and cancelled at the compute', async () => {
  const { agent, requests, left } = await lyingCompute(() => over.abort(new Error('enough')))
  const over = new AbortController()
  expect(await refusal(agent.host.action('hypervisor', 'vms', {}, over.signal))).toMatchObject({ message: 'enough' })
  await left
  expect(requests).toHaveLength(1)
  expect(
    await refusal(agent.host.action('hypervisor', 'vms', {}, AbortSignal.abort(new Error('before')))),
  ).toMatchObject({ message: 'before' })
})

test('a transport that ignores signals delays no caller', async () => {
  let cancelled = 0
  let answer = (_: Response) => {}
  const send = () =>
    new Promise<Response>((resolve) => {
      answer = resolve
    })
  const agent = new RemoteHostAgent({ name: 'one', send, limits: { readMs: 20 } })
  expect(await refusal(agent.host.ports())).toMatchObject({ status: 504 })
  const body = new ReadableStream({ cancel: () => void cancelled++ })
  answer(new Response(body))
  await expect.poll(() => cancelled).toBe(1)
})
