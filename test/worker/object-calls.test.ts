import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import type { Compute } from '../../src/model/compute.ts'
import { asAdmin, CountingWorker, type Counts } from '../support/counting-worker.ts'
import { createPc } from '../support/lab.ts'
import { hangMs } from '../support/limits.ts'
import { TestService } from '../support/service.ts'

const projects = '/v2/compute/projects'
const websocket = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' }
const upgrade = { ...websocket, 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' }

/** What an isolate asks from time to time, whatever the requests are. */
const regular: ReadonlySet<string> = new Set(['count', 'known', 'tokenList', 'look'])

type Called = Partial<Record<'directory' | 'compute' | 'lab', Record<string, number>>>

/** The calls between two counts, by the kind of object; without those that are made now and then. */
function between(before: Counts, after: Counts): Called {
  const kinds = { directory: 'calls', compute: 'computes', lab: 'projects' } as const
  const called: Called = {}
  for (const [kind, member] of Object.entries(kinds) as [keyof typeof kinds, (typeof kinds)[keyof typeof kinds]][]) {
    const more = Object.entries(after[member]).flatMap(([name, count]) => {
      const added = count - (before[member][name] ?? 0)
      return added > 0 && !regular.has(name) ? [[name, added] as const] : []
    })
    if (more.length > 0) called[kind] = Object.fromEntries(more)
  }
  return called
}

test('each kind of request calls the objects that it is about, and no common one', async () => {
  const worker = await CountingWorker.start({ RATE_PER_S: '0' })
  const { token } = await worker.call('POST', '/v2/tokens', { name: 'lab', purpose: 'join' })
  const [near, far] = await Promise.all([
    TestService.start({ 'pc.engine': 'embedded' }),
    TestService.start({
      ...{ 'pc.engine': 'embedded' },
      ...{ 'join.url': worker.url.replace('http', 'ws'), 'join.token': token },
    }),
  ])
  const address = { protocol: 'http', host: '127.0.0.1', port: Number(new URL(near.url).port) }
  await worker.call('POST', '/v2/computes', { compute_id: 'near', ...address })
  const farId = (await readFile(join(far.data, 'compute-id'), 'utf8')).trim()
  await vi.waitFor(
    async () => {
      const all = await worker.call<Compute[]>('GET', '/v2/computes')
      expect(all.filter(({ connected }) => connected)).toHaveLength(2)
    },
    { timeout: hangMs, interval: 100 },
  )
  const nodeAt = async (compute_id: string) => {
    const { project_id } = await worker.call('POST', projects, { name: `at ${compute_id}`, compute_id })
    const node = await createPc(worker, `${projects}/${project_id}`, 1)
    await worker.call('POST', `${node}/start`, {})
    return { node, project: `${projects}/${project_id}` }
  }
  const [byAddress, byTunnel] = [await nodeAt('near'), await nodeAt(farId)]
  const lab = await worker.call('POST', '/v2/projects', { name: 'lab' })
  const labPath = `/v2/projects/${lab.project_id}`

  const calls = async (method: string, path: string, headers: Record<string, string> = asAdmin, status = 200) => {
    const before = await worker.counts()
    expect([path, await worker.status(method, path, headers)]).toEqual([path, status])
    return between(before, await worker.counts())
  }
  const opened = { ...asAdmin, ...upgrade }
  const wrong = { authorization: 'Bearer wrong' }
  const ask = { compute: { fetch: 1 } }

  // Who has no credentials calls nothing, whatever is asked for.
  for (const path of [byAddress.node, byTunnel.node, labPath, projects, '/v2/notifications', '/v2/computes']) {
    expect([path, await calls('GET', path, {}, 401)]).toEqual([path, {}])
    expect([path, await calls('GET', path, wrong, 401)]).toEqual([path, {}])
  }
  expect(await calls('GET', '/v2/computes/join', { ...wrong, ...upgrade }, 401)).toEqual({})

  // What is about a project goes to its compute, and through the object of a compute that has joined.
  expect(await calls('GET', byAddress.node)).toEqual({})
  expect(await calls('GET', byTunnel.node)).toEqual(ask)
  expect(await calls('GET', `${byAddress.node}/console/ws`, opened, 101)).toEqual({})
  expect(await calls('GET', `${byTunnel.node}/console/ws`, opened, 101)).toEqual(ask)
  const file = { ...asAdmin, 'content-length': '0' }
  expect(await calls('POST', `${byAddress.project}/files/notes.txt`, file)).toEqual({})
  expect(await calls('POST', `${byTunnel.project}/files/notes.txt`, file)).toEqual(ask)
  expect(await calls('GET', `${byTunnel.project}/notifications/ws`, opened, 101)).toEqual(ask)

  // A lab has its own.
  expect(await calls('GET', labPath)).toEqual({ lab: { fetch: 1 } })
  expect(await calls('GET', `${labPath}/nodes`)).toEqual({ lab: { fetch: 1 } })
  expect(await calls('GET', `${labPath}/notifications/ws`, opened, 101)).toEqual({ lab: { fetch: 1 } })

  // Only what is about all of them is the directory's.
  expect(await calls('GET', '/v2/computes')).toEqual({ directory: { fetch: 1 } })
  expect(await calls('GET', projects)).toEqual({ directory: { fetch: 1 } })
  expect(await calls('GET', '/v2/notifications/ws', opened, 101)).toEqual({ directory: { fetch: 1 } })
})
