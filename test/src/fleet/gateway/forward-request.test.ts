import type { IncomingMessage, ServerResponse } from 'node:http'
import { expect, test } from 'vitest'
import { json, openFleet, StandIn } from '../../../support/fleet.ts'
import { startFleetGateway } from '../../../support/gateway.ts'

const id = '10000000-0000-4000-8000-000000000000'
const at = `/v2/compute/projects/${id}`
const project = { project_id: id, name: 'lab', path: '/x', location: '/', temporary: false, variables: null }

interface Asked {
  readonly method: string | undefined
  readonly url: string | undefined
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** A gateway in front of a stand-in for a compute of another version, which has the project. */
async function bed(answer: (asked: Asked, res: ServerResponse) => void) {
  const compute = await StandIn.start()
  const asked: Asked[] = []
  compute.answer = (req, res) => {
    const { method, url, headers } = req
    let body = ''
    req.on('data', (data: Buffer) => {
      body += data.toString('latin1')
    })
    req.on('end', () => {
      if (url === `${at}?view=full`) return json(res, 200, project)
      asked.push({ method, url, headers, body })
      answer(asked.at(-1) as Asked, res)
    })
  }
  const { fleet } = await openFleet()
  await fleet.create(compute.input())
  const { app } = startFleetGateway(fleet)
  return {
    asked,
    async ask(method: string, path: string, body?: BodyInit, headers: Record<string, string> = {}) {
      const init = { method, headers, ...(body !== undefined && { body, duplex: 'half' }) }
      return app.fetch(new Request(`http://localhost${path}`, init))
    },
  }
}

const odd = '{"name":"PC1",\n "qubits" : 1e2, "console_type":"hologram", "ö":"\\u00fc"}'

test.for([
  ['PUT', `${at}/pc/nodes/${id}`],
  ['POST', `${at}/pc/nodes?existing=merge&view=wide`],
  ['POST', `${at}/pc/nodes/${id}/adapters/0/ports/0/nio`],
  ['PUT', `/v1/projects/${id}`],
] as const)('the bytes of a body and of its answer are unchanged: %s %s', async ([method, path]) => {
  const { ask, asked } = await bed((_, res) => res.writeHead(201, { 'content-type': 'application/json' }).end(odd))
  const answer = await ask(method, path, odd, { 'content-type': 'application/json' })
  expect([answer.status, await answer.text()]).toEqual([201, odd])
  const bytes = Buffer.from(odd)
  expect(asked).toMatchObject([{ method, url: path, body: bytes.toString('latin1') }])
  expect(asked[0]?.headers).toMatchObject({
    'content-length': String(bytes.length),
    'content-type': 'application/json',
  })
})

test.for([
  ['GET', `${at}/quantum/nodes`],
  ['POST', `${at}/quantum/nodes/${id}/entangle?with=a%2Fb`],
  ['DELETE', `${at}/pc/nodes/${id}/qubits`],
  ['PUT', `${at}/pc/nodes/${id}/start`],
] as const)('a path of a newer compute is handed on to it: %s %s', async ([method, path]) => {
  const { ask, asked } = await bed((_, res) => json(res, 200, { spin: 'up' }))
  const answer = await ask(method, path, method === 'GET' ? undefined : odd)
  expect([answer.status, await answer.json()]).toEqual([200, { spin: 'up' }])
  expect(asked).toMatchObject([{ method, url: path }])
})

test('a path that no version can have is answered by the gateway', async () => {
  const { ask, asked } = await bed(() => {})
  for (const [method, path, status] of [
    ['GET', '/v2/compute/projects/none/quantum', 404],
    ['GET', '/v2/quantum', 404],
    ['PATCH', `${at}/pc/nodes/${id}`, 405],
    ['GET', '/v2/compute/projects/none', 400],
  ] as const) {
    expect((await ask(method, path)).status).toBe(status)
  }
  expect(asked).toEqual([])
})

test('an error of a compute is passed on with its word, members and headers', async () => {
  const body = '{"message":"no","status":409,"qubit":7}\n'
  const { ask } = await bed((_, res) =>
    res
      .writeHead(409, { 'content-type': 'application/json', 'x-patchbay-error': 'decoherence', 'retry-after': '3' })
      .end(body),
  )
  const answer = await ask('POST', `${at}/pc/nodes/${id}/start`)
  expect([answer.status, await answer.text()]).toEqual([409, body])
  expect(answer.headers.get('x-patchbay-error')).toBe('decoherence')
  expect(answer.headers.get('retry-after')).toBe('3')
})

test.for([
  [404, '{"message":"no such node","status":404}', 404, 'not-found', 'no such node'],
  [409, '{"message":"no image","status":409,"image":"x.bin"}', 409, 'image-missing', 'no image'],
  [503, '<h1>503</h1>', 503, 'unavailable', ' answered 503 without a message'],
  [500, '{"message":"Internal Server Error","status":500}', 502, 'compute-failed', ' failed: Internal Server Error'],
] as const)('an error %d without a word gets one: %s', async ([status, said, ours, word, message]) => {
  const { ask } = await bed((_, res) => res.writeHead(status, { 'content-type': 'application/json' }).end(said))
  const answer = await ask('GET', `${at}/pc/nodes/${id}`)
  expect([answer.status, answer.headers.get('x-patchbay-error')]).toEqual([ours, word])
  expect(await answer.json()).toMatchObject({ status: ours, message: expect.stringContaining(message) })
})

test('a body that is too large is refused before a request to the compute', async () => {
  const { ask, asked } = await bed(() => {})
  const answer = await ask('PUT', `${at}/pc/nodes/${id}`, 'x'.repeat(70_000))
  expect([answer.status, answer.headers.get('x-patchbay-error')]).toEqual([413, 'too-large'])
  expect(asked).toEqual([])
})

test('one request of a client is one request to the compute, also when that has no such node', async () => {
  const { ask, asked } = await bed((_, res) => {
    res.writeHead(404, { 'content-type': 'application/json', 'x-patchbay-error': 'no-such-node' })
    res.end('{"message":"no such node","status":404}')
  })
  expect((await ask('GET', `${at}/pc/nodes/${id}`)).status).toBe(404)
  expect((await ask('GET', `${at}/pc/nodes/${id}`)).status).toBe(404)
  expect(asked.map(({ url }) => url)).toEqual([`${at}/pc/nodes/${id}`, `${at}/pc/nodes/${id}`])
})
