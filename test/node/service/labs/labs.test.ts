import { existsSync } from 'node:fs'
import { Check } from '@sinclair/typebox/value'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ServiceFeedLine } from '../../../../src/endpoints/v2/feed-lines.ts'
import { LabListEvent } from '../../../../src/model/lab/event.ts'
import type { LabLink } from '../../../../src/model/lab/link.ts'
import type { LabNode } from '../../../../src/model/lab/node.ts'
import type { LabProject } from '../../../../src/model/lab/project.ts'
import type { LabTemplate } from '../../../../src/model/lab/template.ts'
import { declaredActions } from '../../../support/declared-actions.ts'
import { hangMs } from '../../../support/limits.ts'
import { collect } from '../../../support/pcap.ts'
import { TestService } from '../../../support/service.ts'

const projects = '/v2/projects'
const path = (lab: string) => `${projects}/${lab}`

/** A service with a lab of two pcs and a link. */
async function lab() {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const project: LabProject = await service.call('POST', projects, { name: 'Campus' })
  const pcs: LabNode[] = []
  for (const name of ['PC1', 'PC1'])
    pcs.push(await service.call('POST', `${path('campus')}/nodes`, { name, node_type: 'pc' }))
  const link: LabLink = await service.call('POST', `${path('campus')}/links`, { nodes: ['PC1:e0', 'PC2:Ethernet0'] })
  return { service, project, pcs, link }
}

describe('a lab', () => {
  it('gives a node whose name is taken the next name, and finds nodes and ports by their names', async () => {
    const { service, pcs, link } = await lab()
    expect(pcs.map(({ name }) => name)).toEqual(['PC1', 'PC2'])
    expect(link.nodes.map(({ node_id }) => node_id)).toEqual(pcs.map(({ node_id }) => node_id))
    const found: LabNode = await service.call('GET', `${path('CAMPUS')}/nodes/pc2`)
    expect(found.node_id).toBe(pcs[1]?.node_id)
  })

  it('starts nodes after a node that has got another name', async () => {
    const { service } = await lab()
    const node = (name: string) => `${path('campus')}/nodes/${name}`
    await service.call('PUT', node('PC2'), { after: ['pc1'] })
    await service.call('PUT', node('PC1'), { name: 'First' })
    expect(await service.call('GET', node('PC2'))).toMatchObject({ after: ['First'] })
    await service.call('POST', `${path('campus')}/undo`)
    expect(await service.call('GET', node('PC2'))).toMatchObject({ after: ['pc1'] })
  })

  it('starts all nodes by one request, and frames pass over its links', async () => {
    const { service } = await lab()
    await service.call('PUT', `${path('campus')}/nodes/PC1`, { properties: { startup_script: 'ip 10.0.0.1/24' } })
    await service.call('POST', `${path('campus')}/nodes/start`)
    const nodes: LabNode[] = await service.call('GET', `${path('campus')}/nodes`)
    expect(nodes.map(({ status }) => status)).toEqual(['started', 'started'])
  })

  it('keeps its nodes and links when the service is killed', async () => {
    const { service, pcs, link } = await lab()
    await service.call('POST', `${path('campus')}/nodes/start`)
    await service.kill('SIGKILL')
    await service.restart()
    await expect.poll(async () => (await service.call('GET', `${path('campus')}`)).status).toBe('opened')
    const nodes: LabNode[] = await service.call('GET', `${path('campus')}/nodes`)
    expect(nodes.map(({ node_id, status }) => [node_id, status])).toEqual(
      pcs.map(({ node_id }) => [node_id, 'started']),
    )
    expect((await service.call<LabLink[]>('GET', `${path('campus')}/links`)).map(({ link_id }) => link_id)).toEqual([
      link.link_id,
    ])
  })

  it('stays listed when it is closed, and has its nodes and links again when it is opened', async () => {
    const { service, project } = await lab()
    await service.call('POST', `${path('campus')}/close`)
    const listed: LabProject[] = await service.call('GET', projects)
    expect(listed.map(({ name, status }) => [name, status])).toEqual([['Campus', 'closed']])
    await service.call('POST', `${path(project.project_id)}/open`)
    await service.call('POST', `${path('campus')}/nodes/start`)
    expect(await service.call('GET', `${path('campus')}/stats`)).toEqual({
      nodes: 2,
      segments: 0,
      running: 2,
      links: 1,
      drawings: 0,
      snapshots: 0,
    })
  })

  it('with auto_open is opened by the next start of the service, and stays closed without it', async () => {
    const { service } = await lab()
    await service.call('POST', projects, { name: 'Other' })
    await service.call('PUT', path('campus'), { auto_open: true })
    for (const name of ['campus', 'other']) await service.call('POST', `${path(name)}/close`)
    await service.kill('SIGTERM')
    await service.restart()
    const states = async () => (await service.call<LabProject[]>('GET', projects)).map((it) => [it.name, it.status])
    expect(await states()).toEqual([
      ['Campus', 'opened'],
      ['Other', 'closed'],
    ])
  })

  it('is deleted with its files, also when it is closed', async () => {
    const { service, project } = await lab()
    await service.call('POST', `${path('campus')}/close`)
    await service.call('DELETE', path('campus'))
    expect(await service.call('GET', projects)).toEqual([])
    expect(existsSync(project.path ?? '')).toBe(false)
  })

  it('deletes the links of a node with it, and frees the port at the other end', async () => {
    const { service } = await lab()
    await service.call('DELETE', `${path('campus')}/nodes/PC1`)
    expect(await service.call('GET', `${path('campus')}/links`)).toEqual([])
    await service.call('POST', `${path('campus')}/nodes`, { name: 'PC3', node_type: 'pc' })
    await service.call('POST', `${path('campus')}/links`, { nodes: ['PC2:e0', 'PC3:e0'] })
  })

  it('refuses names that are taken, in any case, and ports that are linked', async () => {
    const { service } = await lab()
    const answer = async (method: string, at: string, body: object) => {
      const response = await service.fetch(at, {
        method,
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      })
      return [response.status, response.headers.get('x-patchbay-error')]
    }
    expect(await answer('POST', projects, { name: 'CAMPUS' })).toEqual([409, 'name-taken'])
    expect(await answer('POST', `${path('campus')}/nodes?unique=refuse`, { name: 'pc1', node_type: 'pc' })).toEqual([
      409,
      'name-taken',
    ])
    expect(await answer('POST', `${path('campus')}/links`, { nodes: ['PC1:e0', 'PC2:e0'] })).toEqual([
      409,
      'port-taken',
    ])
    expect(await answer('POST', `${path('campus')}/links`, { nodes: ['PC1:e7', 'PC2:e0'] })).toEqual([
      404,
      'no-such-port',
    ])
  })
})

describe('a mistake', () => {
  it.for([
    ['POST', 'nodes', { name: 'X', node_type: 'vpcs' }, 'node_type: this service has no kind vpcs, did you mean pc?'],
    [
      'POST',
      'nodes',
      { name: 'X', node_type: 'toaster' },
      /^node_type: this service has no kind toaster, expected one of pc, /,
    ],
    ['POST', 'nodes', { name: 'X', node_type: 'pc', properties: { ram: 1 } }, /^properties\.ram: unknown field/],
    ['PUT', 'nodes/PC1', { properties: { startup_script: 5 } }, /^properties\.startup_script: expected a string/],
    ['POST', 'nodes?unique=refuse', { name: 'pc1', node_type: 'pc' }, /^name: the project already has a node PC1/],
    [
      'POST',
      'links',
      { nodes: ['R1', 'PC2:e0'] },
      /^nodes\[0\]: expected an object or a string node:port, such as R1:eth0/,
    ],
  ] as const)('in %s of %s (%j) is reported with what would be right', async ([method, at, body, message]) => {
    const { service } = await lab()
    const answer = await service.fetch(`${path('campus')}/${at}`, { method, body: JSON.stringify(body) })
    expect((await answer.json()).message).toMatch(message)
  })

  it('is to move a link by a change of its ends', async () => {
    const { service, link } = await lab()
    const { node_id }: LabNode = await service.call('POST', `${path('campus')}/nodes`, { name: 'PC3', node_type: 'pc' })
    const at = `${path('campus')}/links/${link.link_id}`
    const change = (nodes: unknown) => service.fetch(at, { method: 'PUT', body: JSON.stringify({ nodes }) })
    expect((await change(link.nodes)).status).toBe(200)
    const moved = await change([link.nodes[0], { node_id, adapter_number: 0, port_number: 0 }])
    expect([moved.status, (await moved.json()).message]).toEqual([400, expect.stringContaining('PC3 Ethernet0')])
  })
})

describe('the streams of a lab', () => {
  it('has the consoles of its nodes as websockets, by their names', async () => {
    const { service } = await lab()
    await service.call('POST', `${path('campus')}/nodes/PC1/start`)
    const socket = new WebSocket(`${service.url.replace('http', 'ws')}${path('campus')}/nodes/PC1/console/ws`)
    socket.binaryType = 'arraybuffer'
    onTestFinished(() => socket.close())
    let text = ''
    socket.onmessage = ({ data }) => {
      text += new TextDecoder().decode(data)
    }
    await expect.poll(() => text, { timeout: hangMs }).toContain('PC1>')
  })

  it('captures a link into a file of the project, which is read while it grows and afterwards', async () => {
    const { service, link } = await lab()
    const at = `${path('campus')}/links/${link.link_id}`
    const begun: LabLink = await service.call('POST', `${at}/start_capture`, { capture_file_name: 'a.pcap' })
    expect(begun).toMatchObject({ capturing: true, capture_file_name: 'a.pcap', capture_compute_id: 'local' })
    const growing = service.fetch(`${at}/pcap`).then((answer) => answer.arrayBuffer())
    await service.call('POST', `${path('campus')}/nodes/start`)
    const ended: LabLink = await service.call('POST', `${at}/stop_capture`)
    expect(ended).toMatchObject({ capturing: false, capture_file_name: null })
    const file = await (await service.fetch(`${path('campus')}/files/project-files/captures/a.pcap`)).arrayBuffer()
    expect(new DataView(file).getUint32(0, true)).toBe(0xa1b2c3d4)
    expect((await growing).byteLength).toBe(file.byteLength)
  })

  it('is no longer captured after it was closed', async () => {
    const { service, link } = await lab()
    const at = `${path('campus')}/links/${link.link_id}`
    await service.call('POST', `${at}/start_capture`, { capture_file_name: 'a.pcap' })
    await service.call('POST', `${path('campus')}/close`)
    await service.call('POST', `${path('campus')}/open`)
    await expect.poll(() => service.call('GET', at), { timeout: hangMs }).toMatchObject({ capturing: false })
    expect(await service.call('POST', `${at}/start_capture`)).toMatchObject({ capturing: true })
  })

  it('shows the frames of a link to any number of clients, also while it is captured, and leaves nothing behind', async () => {
    const { service, link } = await lab()
    const at = `${path('campus')}/links/${link.link_id}`
    const watched = []
    const clients = new AbortController()
    for (const query of ['', '?format=pcapng']) {
      const method = 'POST'
      watched.push(await service.fetch(`${at}/capture/stream${query}`, { method, signal: clients.signal }))
    }
    expect(watched.map(({ headers }) => headers.get('content-type'))).toEqual([
      'application/vnd.tcpdump.pcap',
      'application/x-pcapng',
    ])
    await service.call('POST', `${at}/start_capture`, { capture_file_name: 'b.pcap' })
    // A pc asks whether another one has its address.
    await service.call('PUT', `${path('campus')}/nodes/PC1`, { properties: { startup_script: 'ip 10.0.0.1/24' } })
    await service.call('POST', `${path('campus')}/nodes/start`)
    await collect(watched[0] as Response).holds(1)
    clients.abort()
    expect(await service.call('GET', at)).toMatchObject({ capturing: true, capture_file_name: 'b.pcap' })
    const serial = { method: 'POST', body: JSON.stringify({ data_link_type: 'DLT_PPP_SERIAL' }) }
    const refused = await service.fetch(`${at}/capture/stream`, serial)
    expect([refused.status, (await refused.json()).message]).toEqual([
      400,
      expect.stringContaining('data_link_type: an Ethernet port has no DLT_PPP_SERIAL frames'),
    ])
  })

  it('reads and writes files of a node', async () => {
    const { service } = await lab()
    const at = `${path('campus')}/nodes/PC1/files/notes/a%20b.txt`
    await service.fetch(at, { method: 'POST', body: 'kept' })
    expect(await (await service.fetch(at)).text()).toBe('kept')
    await service.fetch(`${path('campus')}/nodes/PC2/files/other.txt`, { method: 'POST', body: 'of PC2' })
    const files = await service.call<{ path: string; size: number }[]>('GET', `${path('campus')}/nodes/PC1/files`)
    expect(files.filter((it) => it.path.endsWith('.txt'))).toEqual([{ path: 'notes/a b.txt', size: 4 }])
  })
})

describe('templates and symbols', () => {
  it('makes nodes of the built-in template of a kind, each with the next free name', async () => {
    const { service } = await lab()
    const at = `${path('campus')}/templates/PC`
    const made: LabNode[] = []
    for (const x of [10, 20]) made.push(await service.call('POST', at, { x, y: 5 }))
    expect(made.map(({ name, x, symbol, node_type }) => [name, x, symbol, node_type])).toEqual([
      ['PC3', 10, 'pc', 'pc'],
      ['PC4', 20, 'pc', 'pc'],
    ])
  })

  it('keeps unknown members of a template, and gives its settings to nodes', async () => {
    const { service } = await lab()
    const input = { name: 'Web', template_type: 'pc', startup_script: 'ip 10.0.0.9/24', linked_base: { deep: [1] } }
    const made = await service.call<LabTemplate>('POST', '/v2/templates', input)
    await service.kill('SIGKILL')
    await service.restart()
    expect(await service.call('GET', `/v2/templates/${made.template_id}`)).toMatchObject({ ...input, builtin: false })
    await expect.poll(async () => (await service.fetch(path('campus'))).status).toBe(200)
    const node: LabNode = await service.call('POST', `${path('campus')}/templates/web`, { x: 0, y: 0 })
    expect(node.properties).toMatchObject({ startup_script: 'ip 10.0.0.9/24' })
    await service.call('DELETE', `/v2/templates/${made.template_id}`)
  })

  it('refuses changes of a built-in template, and changes a copy of it', async () => {
    const { service } = await lab()
    expect((await service.fetch('/v2/templates/PC', { method: 'PUT', body: '{"name":"X"}' })).status).toBe(403)
    const copy = await service.call<LabTemplate>('POST', '/v2/templates/PC/duplicate')
    await service.call('PUT', `/v2/templates/${copy.template_id}`, { name: 'My PC' })
    await service.call('DELETE', '/v2/templates/my%20pc')
    expect((await service.call<LabTemplate[]>('GET', '/v2/templates')).filter(({ builtin }) => !builtin)).toEqual([])
  })

  it('has a picture for every symbol name of clients, and for uploaded symbols', async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const raw = async (id: string) => service.fetch(`/v2/symbols/${encodeURIComponent(id)}/raw`)
    for (const id of ['router', ':/symbols/vpcs_guest.svg', ':/symbols/classic/unheard_of.svg']) {
      const answer = await raw(id)
      expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'image/svg+xml'])
    }
    await service.fetch('/v2/symbols/house.svg/raw', { method: 'POST', body: '<svg width="12" height="7"></svg>' })
    expect(await service.call('GET', '/v2/symbols/house/dimensions')).toEqual({ width: 12, height: 7 })
    expect((await raw('nothing')).status).toBe(404)
  })

  it('emits events of projects and templates to the feed of the service', async () => {
    const service = await TestService.start({ 'pc.engine': 'embedded' })
    const feed = await service.fetch('/v2/notifications')
    await service.call('POST', projects, { name: 'told' })
    await service.call('PUT', path('told'), { zoom: 50 })
    await service.call('POST', `${path('told')}/nodes`, { name: 'PC1', node_type: 'pc' })
    await service.call('POST', `${path('told')}/close`)
    await service.call('POST', `${path('told')}/open`)
    await service.call('POST', '/v2/templates', { name: 'told', template_type: 'pc', ram: 64 })
    await service.call('PUT', '/v2/templates/told', { usage: 'none' })
    await service.call('DELETE', '/v2/templates/told')
    await service.call('DELETE', path('told'))
    let text = ''
    for await (const piece of feed.body as unknown as AsyncIterable<Uint8Array>) {
      text += new TextDecoder().decode(piece)
      if (text.includes('project.deleted')) break
    }
    expect(text).toMatch(/project\.created.*template\.created.*project\.deleted/s)
    // Up to the deletion, whose line may be incomplete here.
    const lines = text.slice(0, text.indexOf('{"action":"project.deleted"')).trim().split('\n')
    for (const line of lines) expect(Check(ServiceFeedLine, JSON.parse(line)), line).toBe(true)
    const seen = new Set(lines.map((line) => JSON.parse(line).action))
    // Jobs of several projects are drains of computes.
    const others = ['project.deleted', 'job.created', 'job.updated', 'job.deleted']
    expect(declaredActions(LabListEvent).filter((action) => !seen.has(action))).toEqual(others)
    expect(seen).toContain('node.created')
  })
})

describe('the state of a link', () => {
  it('has a verdict with advice, and the traffic of each direction', async () => {
    const { service, link } = await lab()
    const read = () => service.call<LabLink>('GET', `${path('campus')}/links/${link.link_id}`)
    expect(await read()).toMatchObject({ verdict: 'stopped', verdict_reason: expect.stringContaining('start') })
    for (const [name, at] of [
      ['PC1', 1],
      ['PC2', 2],
    ] as const)
      await service.call('PUT', `${path('campus')}/nodes/${name}`, {
        properties: { startup_script: `ip 10.0.0.${at}/24\nping 10.0.0.${3 - at}` },
      })
    await service.call('POST', `${path('campus')}/nodes/start`)
    // The state that was read before the start is not shown again.
    expect((await read()).verdict).not.toBe('stopped')
    await expect.poll(async () => (await read()).traffic_ab?.frames, { timeout: hangMs }).toBeGreaterThan(0)
    expect(await read()).toMatchObject({ verdict: 'ok' })
    await service.call('PUT', `${path('campus')}/links/${link.link_id}`, { suspend: true })
    expect(await read()).toMatchObject({ verdict: 'suspended' })
    await service.call('PUT', `${path('campus')}/links/${link.link_id}`, { suspend: false })
    await service.call('POST', `${path('campus')}/nodes/PC2/stop`)
    expect(await read()).toMatchObject({ verdict: 'stopped' })
  })

  it('is in the feed while it has readers, also when a request for the links has read it first', async () => {
    const { service, link } = await lab()
    const feed = await service.fetch(`${path('campus')}/notifications`)
    const at = `${path('campus')}/links/${link.link_id}`
    await service.call('PUT', at, { suspend: true })
    await expect.poll(async () => (await service.call<LabLink>('GET', at)).verdict).toBe('suspended')
    let text = ''
    for await (const piece of feed.body as unknown as AsyncIterable<Uint8Array>) {
      text += new TextDecoder().decode(piece)
      // The state may be seen before the edit is told.
      if (/"link\.state".*"suspended"/.test(text) && /"link\.updated".*"suspend":true/.test(text)) break
    }
  })
})
