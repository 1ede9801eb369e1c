import { expect, test } from 'vitest'
import { TestService } from '../../../support/service.ts'

const ownLink = { 'x-patchbay-own-link': 'yes' }

interface End {
  readonly project_id: string
  readonly node_type: string
  readonly node_id: string
  readonly adapter_number: number
  readonly port_number: number
}

interface Asked {
  readonly token?: string
  readonly headers?: Record<string, string>
}

/** What a service is asked, as an administrator unless a token is given. */
function client(service: TestService) {
  const ask = async (method: string, path: string, body?: unknown, { token = 't0ken', headers = {} }: Asked = {}) => {
    const answer = await service.fetch(path, {
      method,
      headers: { authorization: `Bearer ${token}`, ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
  }
  const project = async () => String((await ask('POST', '/v2/compute/projects', { name: 'lab' })).body.project_id)
  const reserve = async (id: string) =>
    Number((await ask('POST', `/v2/compute/projects/${id}/ports/udp`, {})).body.udp_port)
  const pc = async (project_id: string): Promise<End> => {
    const { body } = await ask('POST', `/v2/compute/projects/${project_id}/pc/nodes`, { name: 'PC' })
    return { project_id, node_type: 'pc', node_id: String(body.node_id), adapter_number: 0, port_number: 0 }
  }
  const nioOf = ({ project_id, node_id }: End) =>
    `/v2/compute/projects/${project_id}/pc/nodes/${node_id}/adapters/0/ports/0/nio`
  return { ask, project, reserve, pc, nioOf }
}

const compute = { 'pc.engine': 'embedded', token: 't0ken', local: false }
const udp = (lport: number, rhost: string, rport: number) => ({ type: 'nio_udp', lport, rhost, rport })

test('outside local mode a client aims no link at another project or at a service of the host', async () => {
  const service = await TestService.start({ ...compute, udp_peers: ['10.1.2.0/24'] })
  const { ask, project, reserve, pc, nioOf } = client(service)
  const [one, two] = [await project(), await project()]
  const node = await pc(one)
  const [lport, own, others] = [await reserve(one), await reserve(one), await reserve(two)]
  const attach = (rhost: string, rport: number, asked?: Asked) =>
    ask('POST', nioOf(node), udp(lport, rhost, rport), asked)
  const { token } = (await ask('POST', '/v2/tokens', { name: 'student', role: 'operate' })).body as { token: string }
  const refused = {
    status: 403,
    body: { message: expect.stringMatching(/^rhost: .*(reserved for the project|udp_peers)/) },
  }
  // A name is judged by its address, and no header of a client who is not an administrator changes that.
  for (const rhost of ['127.0.0.1', 'localhost', '::1', '10.2.3.4'])
    for (const headers of [{}, ownLink, { ...ownLink, 'x-patchbay-via': 'admin' }])
      expect(await attach(rhost, 53, { token, headers })).toMatchObject(refused)
  expect(await attach('127.0.0.1', others)).toMatchObject(refused)
  expect((await attach('127.0.0.1', own)).status).toBe(201)
  // A change in place keeps the other end, and does not move it.
  expect((await ask('PUT', nioOf(node), { filters: { delay: [5] } })).status).toBe(201)
  expect(await ask('PUT', nioOf(node), { rport: others })).toMatchObject(refused)
  expect((await attach('10.1.2.3', 4000)).status).toBe(201)
})

test('links that a gateway makes between computes and projects need no entry, and no client uses that', async () => {
  const gateway = await TestService.start({ gateway: true, token: 't0ken', 'rate_limit.per_s': 0 })
  const { ask, project, reserve, pc, nioOf } = client(gateway)
  for (const name of ['c1', 'c2']) {
    const at = await TestService.start({ ...compute, user: 'anna', password: 'of-the-compute' })
    const address = { protocol: 'http', host: '127.0.0.1', port: Number(new URL(at.url).port) }
    const record = { compute_id: name, name, ...address, user: 'anna', password: 'of-the-compute' }
    expect((await ask('POST', '/v2/computes', record)).status).toBe(201)
  }
  // Two projects on each compute, as the gateway spreads them.
  const ends: End[] = []
  for (let count = 0; count < 4; count++) ends.push(await pc(await project()))
  const [first] = ends as [End]
  const lport = await reserve(first.project_id)
  for (const headers of [{}, ownLink])
    expect(await ask('POST', nioOf(first), udp(lport, '127.0.0.1', 53), { headers })).toMatchObject({ status: 403 })
  for (const other of ends.slice(1)) {
    expect(await ask('POST', '/v2/links', { nodes: [first, other] })).toMatchObject({ status: 201 })
    for (const end of [first, other])
      expect((await ask('PUT', nioOf(end), { filters: { delay: [5] } })).status).toBe(201)
    for (const end of [first, other])
      await gateway.fetch(nioOf(end), { method: 'DELETE', headers: { authorization: 'Bearer t0ken' } })
  }
})
