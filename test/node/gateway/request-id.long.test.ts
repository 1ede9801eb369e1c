import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { freshDirectory } from '../../support/directory.ts'
import { TestService } from '../../support/service.ts'

/** A service whose log is kept, with every request in it. */
async function logged(settings: Record<string, unknown>) {
  const log = join(await freshDirectory(), 'log')
  const service = await TestService.start(settings, ['sh', '-c', `exec "$@" --log-level debug 2>>${log}`, 'sh'])
  const requests = async (id: string) =>
    (await readFile(log, 'utf8'))
      .split('\n')
      .flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as Record<string, unknown>] : []))
      .filter((line) => line.id === id)
      .map(({ method, path, status, error }) => ({ method, path, status, error }))
  return { service, requests }
}

test('a request has one id in the logs of the gateway and of the compute, and in the answer', async () => {
  const [gateway, compute] = [await logged({ gateway: true }), await logged({ 'pc.engine': 'embedded' })]
  const { hostname: host, port } = new URL(compute.service.url)
  await gateway.service.call('POST', '/v2/computes', { protocol: 'http', host, port: Number(port) })
  const projects = '/v2/compute/projects'
  const { project_id } = await gateway.service.call('POST', projects, { name: 'lab' })
  const path = `${projects}/${project_id}/pc/nodes`
  const ask = async (headers: Record<string, string>, at = path) => {
    const answer = await gateway.service.fetch(at, { headers })
    await answer.arrayBuffer()
    return answer.headers.get('x-request-id') ?? ''
  }

  const ids = [await ask({ 'x-request-id': 'order/66' }), await ask({}), await ask({ 'x-request-id': 'a b' })]
  expect(ids[0]).toBe('order/66')
  expect(new Set(ids).size).toBe(3)
  for (const id of ids) {
    const seen = [{ method: 'GET', path, status: 200, error: undefined }]
    expect(await gateway.requests(id)).toEqual(seen)
    expect(await compute.requests(id)).toEqual(seen)
  }

  // The word of an error is in both, too.
  const missing = `${path}/10000000-0000-4000-8000-000000000000`
  const id = await ask({}, missing)
  const seen = [{ method: 'GET', path: missing, status: 404, error: 'no-such-node' }]
  expect(await gateway.requests(id)).toEqual(seen)
  expect(await compute.requests(id)).toEqual(seen)
})
