import { once } from 'node:events'
import { type IncomingMessage, request as open } from 'node:http'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { endpoints } from '../../src/endpoints/endpoints.ts'
import { basic } from '../support/auth-app.ts'
import { fromForeignPage } from '../support/foreign-page.ts'
import { logIn } from '../support/log-in.ts'
import { requests } from '../support/requests.ts'
import { TestService } from '../support/service.ts'

const credentials = { user: 'anna', password: 'geheim-geheim' }
const authorization = basic(credentials.user, credentials.password)

const upgrade = {
  ...{ connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' },
  'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
}

const kinds = ['pc', 'iou', 'hypervisor', 'machine-emulator', 'dynamips']

test('no request of a page of another site changes anything or is answered, with any ambient credentials', async () => {
  const service = await TestService.start({ ...credentials, 'pc.engine': 'embedded' })
  const { cookie } = await logIn(service.url, credentials)
  const call = async <T = unknown>(method: string, path: string, body?: object): Promise<T> => {
    const headers = { authorization, 'content-type': 'application/json' }
    const answer = await service.fetch(path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    expect(answer.ok, `${method} ${path}`).toBe(true)
    return (await answer.json()) as T
  }
  const { project_id } = await call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'target' })
  const project = `/v2/compute/projects/${project_id}`
  const { node_id } = await call<{ node_id: string }>('POST', `${project}/pc/nodes`, { name: 'PC' })
  const image = '/v2/compute/machine-emulator/images/disk.qcow2'
  await service.fetch(image, { method: 'POST', headers: { authorization }, body: 'disk' })
  const { token_id } = await call<{ token_id: string }>('POST', '/v2/tokens', { name: 'ci', role: 'read' })
  /** All that there is, as an administrator sees it. */
  const everything = async () => ({
    computes: (await call<{ compute_id: string }[]>('GET', '/v2/computes')).map(({ compute_id }) => compute_id),
    rest: await Promise.all(
      [
        ...['/v2/compute/projects?status=all', project, `${project}/files`],
        ...kinds.map((kind) => `${project}/${kind}/nodes`),
        ...['machine-emulator', 'iou', 'dynamips'].map((kind) => `/v2/compute/${kind}/images`),
        ...['/v2/tokens', '/v2/session', '/v2/appliancevm', '/v2/compute/network/ports'],
      ].map((path) => call('GET', path)),
    ),
  })
  const before = await everything()
  const known = {
    ...{ project_id: [project_id], node_id: [node_id], vm_id: [node_id], token_id: [token_id], compute_id: ['local'] },
    ...{ path: ['a.txt', 'disk.qcow2'], filename: ['disk.qcow2'], adapter_number: ['0'], port_number: ['0'] },
    ...{ emulator: ['pc'], action: ['images', 'projects', 'images/disk.qcow2', `projects/${project_id}/close`] },
  }
  const sent = fc.tuple(
    requests(endpoints, known),
    fromForeignPage,
    fc.constantFrom<Record<string, string>>({ authorization }, { cookie }, { authorization, cookie }, {}),
    fc.boolean(),
  )
  await fc.assert(
    fc.asyncProperty(sent, async ([made, foreign, ambient, isUpgrade]) => {
      const { endpoint, method, body } = made
      const isSocket = isUpgrade && method === 'GET' && endpoint.websocket === true
      const path = made.path.replace(/[^\u0021-\u007e]/gu, encodeURIComponent)
      const headers: Record<string, string> = { ...made.headers, ...foreign, ...ambient }
      const request = open(service.url + path, {
        ...{ method, path, agent: false },
        // Node frames the body of some methods only with its length.
        headers: { ...headers, ...(isSocket && upgrade), 'content-length': Buffer.byteLength(body ?? '') },
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
      expect(allowed, `${method} ${path} with ${JSON.stringify(headers)}`).toContain(answer.statusCode)
      if (answer.statusCode === 403) expect(answer.headers['access-control-allow-origin']).toBe(undefined)
    }),
    { numRuns: 2000, endOnFailure: true },
  )
  expect(await everything()).toEqual(before)
})
