import { once } from 'node:events'
import { type IncomingMessage, request as open } from 'node:http'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { endpoints } from '../../src/routes.ts'
import { basic } from '../support/auth-app.ts'
import { logIn } from '../support/log-in.ts'
import { requests } from '../support/requests.ts'
import { TestService } from '../support/service.ts'

const credentials = { user: 'anna', password: 'geheim' }
const authorization = basic('anna', 'geheim')

/** What browsers say of a request that a page of another site has them make. */
const foreign = fc
  .record(
    {
      origin: fc.constantFrom('https://evil.example', 'null', 'http://127.0.0.1:1', 'http://localhost', 'file://'),
      'sec-fetch-site': fc.constantFrom('cross-site', 'same-site'),
      'sec-fetch-mode': fc.constantFrom('navigate', 'no-cors', 'cors', 'websocket', 'same-origin'),
      'sec-fetch-dest': fc.constantFrom('document', 'iframe', 'image', 'empty', 'object', 'websocket'),
      'content-type': fc.constantFrom(
        'text/plain',
        'application/x-www-form-urlencoded',
        'application/json',
        'multipart/form-data; boundary=x',
      ),
      'user-agent': fc.constant('Mozilla/5.0'),
      referer: fc.constantFrom('https://evil.example/', 'http://127.0.0.1:1/'),
    },
    { requiredKeys: [] },
  )
  .filter((headers) => headers.origin !== undefined || headers['sec-fetch-site'] !== undefined)

const upgrade = {
  ...{ connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' },
  'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
}

test('no request that a page of another site can make changes anything, whatever the browser adds by itself', async () => {
  const service = await TestService.start({ ...credentials, 'pc.engine': 'embedded' })
  const { cookie } = await logIn(service.url, credentials)
  const call = async (method: string, path: string, body?: object) => {
    const init = { method, headers: { authorization }, ...(body && { body: JSON.stringify(body) }) }
    return (await (await service.fetch(path, init)).json()) as Record<string, string>
  }
  const { project_id = '' } = await call('POST', '/v2/compute/projects', { name: 'target' })
  const project = `/v2/compute/projects/${project_id}`
  const { node_id = '' } = await call('POST', `${project}/pc/nodes`, { name: 'PC' })
  const known = {
    ...{ project_id: [project_id], node_id: [node_id], vm_id: [node_id], path: ['a.txt'], filename: ['disk.qcow2'] },
    ...{ adapter_number: ['0'], port_number: ['0'], compute_id: ['local'], emulator: ['pc'], action: ['images'] },
  }
  const everything = async () =>
    JSON.stringify(
      await Promise.all(
        [
          '/v2/compute/projects',
          project,
          `${project}/files`,
          `${project}/pc/nodes`,
          '/v2/tokens',
          '/v2/compute/machine-emulator/images',
          '/v2/session',
        ].map((path) => call('GET', path)),
      ),
    )
  const before = await everything()
  const sent = fc.tuple(
    requests(endpoints, known),
    foreign,
    fc.constantFrom<Record<string, string>>({ authorization }, { cookie }, { authorization, cookie }, {}),
    fc.boolean(),
  )
  await fc.assert(
    fc.asyncProperty(sent, async ([{ endpoint, method, path, body }, headers, ambient, isUpgrade]) => {
      const isSocket = isUpgrade && method === 'GET' && endpoint.websocket === true
      const target = path.replace(/[^\u0021-\u007e]/gu, encodeURIComponent)
      const request = open(service.url + target, {
        ...{ method, path: target, agent: false },
        // Node frames the body of some methods only with its length.
        headers: { ...headers, ...ambient, ...(isSocket && upgrade), 'content-length': Buffer.byteLength(body ?? '') },
      })
      request.end(body)
      const [answer] = (await once(request, 'response')) as [IncomingMessage]
      answer.destroy()
      const isRead = method === 'GET' || method === 'HEAD'
      const isDocument = (headers['sec-fetch-dest'] ?? 'document') === 'document'
      const isLink = isRead && headers.origin === undefined && headers['sec-fetch-mode'] === 'navigate' && isDocument
      // A link in a window of its own is asked to log in, or told that there is nothing; with credentials it leads to pages only.
      const ofLinks = endpoint.page === true ? [200, 302, 401] : [400, 401, 403, 404, 405]
      const allowed = isLink ? ofLinks : endpoint.joins === true ? [400, 401, 403, 404] : [400, 403]
      expect({ status: answer.statusCode, isAllowed: allowed.includes(answer.statusCode ?? 0) }).toMatchObject({
        isAllowed: true,
      })
      if (answer.statusCode === 403) expect(answer.headers['access-control-allow-origin']).toBe(undefined)
    }),
    { numRuns: 1500, endOnFailure: true },
  )
  expect(await everything()).toBe(before)
}, 120_000)
