import { expect, it } from 'vitest'
import type { Compute } from '../../../src/model/compute.ts'
import type { LabNode } from '../../../src/model/lab/node.ts'
import type { LabProject } from '../../../src/model/lab/project.ts'
import { GatewayLab } from '../../support/gateway-lab.ts'

const lab = GatewayLab.forAll()

/** A lab with these settings; its path. */
async function labWith(settings: object): Promise<string> {
  const { gateway } = lab
  const name = `placed-${crypto.randomUUID().slice(0, 8)}`
  const { project_id } = await gateway.call<LabProject>('POST', '/v2/projects', { name, ...settings })
  return `/v2/projects/${project_id}`
}
const addTo = async (path: string, input: object = {}) =>
  (await lab.gateway.call<LabNode>('POST', `${path}/nodes`, { name: 'PC1', node_type: 'pc', ...input })).compute_id

it('has computes with detected labels, and labels of the administrator', async () => {
  const { gateway } = lab
  const put = (id: string, labels: string[]) => gateway.call<Compute>('PUT', `/v2/computes/${id}`, { labels })
  expect(await put('a', ['site=berlin', 'fast'])).toMatchObject({ labels: ['site=berlin', 'fast'], connected: true })
  await put('b', ['site=paris'])
  const { capabilities } = await gateway.call<Compute>('GET', '/v2/computes/b')
  expect(capabilities.labels).toContain(`platform=${process.platform}`)
  const refused = await gateway.fetch('/v2/computes/a', {
    method: 'PUT',
    body: JSON.stringify({ labels: ['no good'] }),
  })
  expect([refused.status, await refused.json()]).toMatchObject([400, { message: /a label such as kvm or site=berlin/ }])
})

it('places a node on a compute with its labels and those of its lab', async () => {
  const path = await labWith({ placement: { labels: ['site'] } })
  expect(await addTo(path, { placement: { labels: ['site=paris'] } })).toBe('b')
  expect(await addTo(path, { placement: { labels: ['fast'] } })).toBe('a')
  // A compute that is named goes before all labels.
  expect(await addTo(path, { placement: { labels: ['fast'] }, compute_id: 'b' })).toBe('b')
  expect(await lab.gateway.call('GET', `${path}/nodes`)).toMatchObject([
    { placement: { labels: ['site=paris'] } },
    {},
    {},
  ])
  await lab.gateway.call('DELETE', path)
})

it('refuses a node whose labels no compute has, and lists the existing ones', async () => {
  const path = await labWith({})
  const body = JSON.stringify({ name: 'PC1', node_type: 'pc', placement: { labels: ['site=oslo'] } })
  const answer = await lab.gateway.fetch(`${path}/nodes`, { method: 'POST', body })
  expect([answer.status, answer.headers.get('x-patchbay-error')]).toEqual([409, 'label-missing'])
  expect(await answer.json()).toMatchObject({
    message: expect.stringMatching(
      /^placement.labels: no compute has site=oslo; there are .*fast \(compute a\).*site=berlin \(compute a\), site=paris \(compute b\)/,
    ),
  })
  expect(await lab.gateway.call('GET', `${path}/nodes`)).toEqual([])
  await lab.gateway.call('DELETE', path)
})

it('keeps a lab together by room or packed, and spreads it on request, also nodes that are made at the same time', async () => {
  for (const [policy, computes] of [
    ['room', 1],
    ['pack', 1],
    ['spread', 2],
  ] as const) {
    const path = await labWith({ placement: { policy, labels: ['site'] } })
    const placed = await Promise.all(Array.from({ length: 6 }, () => addTo(path)))
    const counts = [...new Set(placed)].map((id) => placed.filter((it) => it === id).length)
    expect(counts).toEqual(Array.from({ length: computes }, () => 6 / computes))
    await lab.gateway.call('DELETE', path)
  }
})

it('uses the placement of a lab file for all nodes, together with that of each node', async () => {
  const { gateway } = lab
  const file = (more: string) => `
lab: labelled
placement: { policy: spread, labels: [site] }
nodes:
  PC1: { kind: pc }
  PC2: { kind: pc }
  PC3: { kind: pc, placement: { labels: [site=paris]${more} } }
`
  const put = async (text: string, query = '') => {
    const init = { method: 'PUT', body: text, headers: { 'content-type': 'application/yaml' } }
    return gateway.fetch(`/v2/projects/labelled/topology${query}`, init)
  }
  const { job_id } = (await (await put(file(''))).json()) as { job_id: string }
  await expect
    .poll(async () => (await gateway.call<{ status: string }>('GET', `/v2/jobs/${job_id}`)).status)
    .toBe('done')
  const nodes = await gateway.call<LabNode[]>('GET', '/v2/projects/labelled/nodes')
  const named = Object.fromEntries(nodes.map(({ name, compute_id, placement }) => [name, { compute_id, placement }]))
  expect(named.PC3).toEqual({ compute_id: 'b', placement: { policy: 'spread', labels: ['site', 'site=paris'] } })
  expect(nodes.filter(({ compute_id }) => compute_id === 'a').length).toBeGreaterThan(0)
  expect(await (await put(file(''), '?dry_run=true')).json()).toMatchObject({ steps: [] })
  expect(await (await put(file(', policy: pack'), '?dry_run=true')).json()).toMatchObject({
    steps: [
      {
        do: 'update',
        name: 'PC3',
        how: 'live',
        because: expect.stringMatching(/^placement \{ policy: spread.* -> \{ policy: pack/),
      },
    ],
  })
  const text = await (await gateway.fetch('/v2/projects/labelled/topology?format=yaml')).text()
  expect(text).toContain('site=paris')
  await gateway.call('DELETE', '/v2/projects/labelled')
})
