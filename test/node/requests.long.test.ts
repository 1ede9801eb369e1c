import fc from 'fast-check'
import { expect, test } from 'vitest'
import { endpoints } from '../../src/endpoints/endpoints.ts'
import type { Endpoint } from '../../src/server/http/endpoint.ts'
import { hangMs } from '../support/limits.ts'
import { requests } from '../support/requests.ts'
import { requireProgram } from '../support/require.ts'
import { TestService } from '../support/service.ts'

/**
 * What is asked for is really done: a disk must not fill this machine's, and a compute is looked for where nothing is, not
 * at the ports of other tests.
 */
const harmless = (body: string): string =>
  body
    .replace(/"(size|extend)":(\d+)/, (_, name: string, size: string) => `"${name}":${Number(size) % 16}`)
    .replace(/"host":"[^"]*"/, '"host":"127.0.0.1"')
    .replace(/"port":\d+/, '"port":1')
const isDone = ({ path }: Endpoint): boolean => /\/(img|resize_disk)$|^\/v2\/computes(\/\{compute_id\})?$/.test(path)

/** What a server may answer without an endpoint having declared it. */
const undeclared = new Set([404, 405, 408, 204])

/** `..` in a path never leaves its client as such: another endpoint, or none, is asked. */
const isResolved = (path: string): boolean => new URL(path, 'http://host').pathname !== path.replace(/\?.*/s, '')

test('no request that can be made from the declarations, valid or spoiled, is answered with a 5xx or an undeclared status', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'target' })
  const create = async (kind: string, input: object): Promise<string> => {
    const path = `/v2/compute/projects/${project_id}/${kind}/nodes`
    return (await service.call<{ node_id: string }>('POST', path, input)).node_id
  }
  const ids = [await create('pc', { name: 'PC' })]
  if (!requireProgram('qemu-system-x86_64').skip) {
    ids.push(await create('machine-emulator', { name: 'R1', platform: 'x86_64', ram: 16 }))
  }
  const known = {
    project_id: [project_id],
    node_id: ids,
    vm_id: ids,
    path: ['a.txt', 'b/c.txt'],
    filename: ['disk.qcow2', 'vendor/disk.qcow2'],
    adapter_number: ['0'],
    port_number: ['0'],
    compute_id: ['local'],
    emulator: ['pc', 'machine-emulator', 'network', 'projects'],
    action: ['images', 'images/disk.qcow2', 'interfaces', `${project_id}/files/a.txt`, `${project_id}/notifications`],
  }
  await fc.assert(
    fc.asyncProperty(requests(endpoints, known), async ({ endpoint, method, path, headers, body }) => {
      const over = new AbortController()
      const answer = await service.fetch(path, {
        method,
        headers,
        redirect: 'manual',
        signal: AbortSignal.any([over.signal, AbortSignal.timeout(hangMs)]),
        ...(body !== undefined && { body: isDone(endpoint) ? harmless(body) : body }),
      })
      const declared = new Set([...Object.keys(endpoint.replies), ...Object.keys(endpoint.errors ?? {})].map(Number))
      for (const status of [400, 401, 403, 413]) declared.add(status)
      const isExpected =
        answer.status < 500 &&
        (declared.has(answer.status) || undeclared.has(answer.status) || method !== endpoint.method || isResolved(path))
      const isFault = answer.status >= 400 && method !== 'HEAD'
      const { image, exception, errors, ...fault } = isFault
        ? ((await answer.json()) as { image?: string; exception?: string; errors?: object[] })
        : {}
      over.abort()
      expect({ answer: answer.status, isExpected }).toMatchObject({ isExpected: true })
      // What an error may have beside its message: the name of an image that is missing, and a word for that.
      expect(exception).toBe(image === undefined ? undefined : 'ImageMissingError')
      if (image !== undefined) expect(answer.status).toBe(409)
      // What is wrong in a file that the request has, by its place.
      for (const it of errors ?? []) expect(it).toMatchObject({ line: expect.any(Number), column: expect.any(Number) })
      if (isFault) expect(fault).toEqual({ message: expect.stringMatching(/./), status: answer.status })
    }),
    { numRuns: 1500, endOnFailure: true },
  )
  // It is still there, and well.
  expect(service.isRunning).toBe(true)
  expect((await service.fetch('/v2/compute/version')).status).toBe(200)
})
