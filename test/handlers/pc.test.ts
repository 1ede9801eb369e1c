import { expect, test } from 'vitest'
import { mapLimit } from '../../src/lib/async/map-limit.ts'
import { body, del, newPc, newProject, post, put, sameHost, send } from '../support/api.ts'
import { requireLibpcap, requireRoot } from '../support/require.ts'
import { testWith } from '../support/test-with.ts'

const libpcap = requireLibpcap()
const types = 'nio_udp, nio_generic_ethernet, nio_ethernet, nio_tap'
const nio = (lport: number, rport = lport + 1) => ({ type: 'nio_udp', lport, rhost: '127.0.0.1', rport })

async function reserve(project: { v2: string }): Promise<number> {
  return (await body<{ udp_port: number }>(post(`${project.v2}/ports/udp`))).udp_port
}

test('a name is inserted into a script literally', async () => {
  const project = await newProject()
  const answer = await post(`${project.v2}/pc/nodes`, { name: "a$&b$'", startup_script: 'set pcname %h\n' })
  expect(await body(answer)).toMatchObject({ startup_script: "set pcname a$&b$'\n" })
})

test('a pc is created stopped, with the name in its script', async () => {
  const project = await newProject()
  const answer = await post(`${project.v2}/pc/nodes`, { name: 'PC1', startup_script: 'set pcname %h\n' })
  expect(answer.status).toBe(201)
  const node = await body(answer)
  expect(node).toMatchObject({
    name: 'PC1',
    project_id: project.id,
    status: 'stopped',
    console: expect.any(Number),
    console_type: 'telnet',
    command_line: '',
    startup_script: 'set pcname PC1\n',
    startup_script_path: 'startup.vpc',
    mac_address: '00:50:79:66:68:00',
    status_reason: null,
  })
  expect(node.node_directory).toContain(`${project.id}/project-files/pc/${node.node_id}`)
  expect(await body(send(`${project.v2}/pc/nodes`))).toEqual([node])
})

test('with a known id v2 changes the node, v1 refuses, and an id of another project is 409', async () => {
  const wanted = { name: 'lab', ...sameHost }
  const [project, other] = [await newProject(wanted), await newProject(wanted)]
  const pc = await newPc(project)
  const again = await post(`${project.v2}/pc/nodes`, { name: 'renamed', node_id: pc.id })
  expect(again.status).toBe(201)
  expect(await again.json()).toMatchObject({ node_id: pc.id, name: 'renamed' })
  expect((await post(`${project.v1}/pc/vms`, { name: 'x', vm_id: pc.id })).status).toBe(409)
  expect((await post(`${other.v2}/pc/nodes`, { name: 'x', node_id: pc.id })).status).toBe(409)
  expect((await send(`${other.v2}/pc/nodes/${pc.id}`)).status).toBe(404)
  expect((await del(`${other.v2}/pc/nodes/${pc.id}`)).status).toBe(404)
})

test('a legacy integer id becomes a UUID', async () => {
  const project = await newProject()
  const { vm_id } = await body<{ vm_id: string }>(post(`${project.v1}/pc/vms`, { name: 'PC', vm_id: 3 }))
  expect(vm_id).toMatch(/^[0-9a-f-]{36}$/)
})

test('ids are compared without regard to case', async () => {
  const project = await newProject()
  const node_id = crypto.randomUUID()
  await newPc(project, { node_id: node_id.toUpperCase() })
  expect((await send(`${project.v2}/pc/nodes/${node_id.toUpperCase()}`)).status).toBe(200)
})

test('renaming edits only the name line of the script', async () => {
  const project = await newProject()
  const pc = await newPc(project, { name: 'PC', startup_script: 'set pcname PC\necho PC is not PC1\nset pcname PCX\n' })
  expect(await body(put(pc.path, { name: 'R1' }))).toMatchObject({
    name: 'R1',
    startup_script: 'set pcname R1\necho PC is not PC1\nset pcname PCX\n',
  })
})

test('an update does not change absent members, and never makes an empty script', async () => {
  const project = await newProject()
  const pc = await newPc(project)
  const before = await body(send(pc.path))
  expect(await body(put(pc.path, { console: null, startup_script: null }))).toEqual(before)
  expect(await body(put(`${project.v1}/pc/vms/${pc.id}`, {}))).toMatchObject({
    startup_script: null,
    startup_script_path: null,
  })
})

test('a console is released and requested again by its type', async () => {
  const project = await newProject()
  const pc = await newPc(project, { console_type: 'none' })
  expect(await body(send(pc.path))).toMatchObject({ console: null })
  expect(await body(put(pc.path, { console_type: 'telnet' }))).toMatchObject({ console: expect.any(Number) })
})

test('a console that is taken is replaced by a free one', async () => {
  const project = await newProject()
  const one = await newPc(project)
  const { console } = await body<{ console: number }>(send(one.path))
  const two = await newPc(project, { console })
  const other = await body<{ console: number }>(send(two.path))
  expect(other.console).not.toBe(console)
})

test('the table of states and actions', async () => {
  const project = await newProject()
  const { path } = await newPc(project)
  const v1 = path.replace('/v2/compute', '/v1').replace('/nodes/', '/vms/')
  const status = async () => (await body<{ status: string }>(send(path))).status
  const rows: readonly (readonly [root: string, action: string, answer: number, state: string])[] = [
    [path, 'stop', 204, 'stopped'],
    [path, 'suspend', 204, 'stopped'],
    [path, 'resume', 409, 'stopped'],
    [path, 'start', 200, 'started'],
    [path, 'start', 200, 'started'],
    [path, 'suspend', 204, 'suspended'],
    [path, 'suspend', 204, 'suspended'],
    [path, 'resume', 204, 'started'],
    [path, 'resume', 204, 'started'],
    [path, 'suspend', 204, 'suspended'],
    [path, 'start', 200, 'started'],
    [path, 'suspend', 204, 'suspended'],
    [path, 'reload', 204, 'started'],
    [path, 'stop', 204, 'stopped'],
    [path, 'reload', 204, 'started'],
    [v1, 'stop', 204, 'stopped'],
    [v1, 'start', 204, 'started'],
    [v1, 'start', 204, 'started'],
    [v1, 'reload', 204, 'started'],
  ]
  for (const [root, action, answer, state] of rows) {
    expect([action, (await post(`${root}/${action}`)).status]).toEqual([action, answer])
    expect([action, await status()]).toEqual([action, state])
  }
  expect((await put(path, { console_type: 'none' })).status).toBe(409)
  expect((await del(path)).status).toBe(204)
})

test('parallel starts and stops of one node leave it in one state, started once', async () => {
  const project = await newProject()
  const { path } = await newPc(project)
  const answers = await Promise.all(Array.from({ length: 6 }, () => post(`${path}/start`)))
  expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(200))
  const mixed = await Promise.all(['stop', 'start', 'stop', 'stop'].map((action) => post(`${path}/${action}`)))
  expect(mixed.map(({ status }) => status)).toEqual([204, 200, 204, 204])
  // Which came last is not for us to say.
  expect((await post(`${path}/stop`)).status).toBe(204)
  expect(await body(send(path))).toMatchObject({ status: 'stopped' })
})

test('creates of the same id at once make one node', async () => {
  const project = await newProject()
  const vm_id = crypto.randomUUID()
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => post(`${project.v1}/pc/vms`, { name: 'PC', vm_id })),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409])
})

test('pcs of a project have different MAC addresses, also when there are more than 255', async () => {
  const project = await newProject()
  const input = { name: 'PC', console_type: 'none' }
  const answers = await mapLimit(Array(300).fill(input), () => post(`${project.v2}/pc/nodes`, input), 100)
  expect(answers.filter(({ status }) => status !== 201)).toEqual([])
  const nodes = await body<{ mac_address: string }[]>(send(`${project.v2}/pc/nodes`))
  expect(new Set(nodes.map(({ mac_address }) => mac_address)).size).toBe(300)
  await del(project.v2)
})

test('a NIO is attached, replaced, changed and removed, while the pc runs', async () => {
  const project = await newProject()
  const pc = await newPc(project)
  const [a, b] = [await reserve(project), await reserve(project)]
  await post(`${pc.path}/start`)
  const port = `${pc.path}/adapters/0/ports/0/nio`
  const attached = await post(port, nio(a))
  expect(attached.status).toBe(201)
  expect(attached.headers.get('X-ROUTE')).toBe(
    '/v2/compute/projects/{project_id}/pc/nodes/{node_id}/adapters/{adapter_number}/ports/{port_number}/nio',
  )
  expect(await attached.json()).toEqual(nio(a))
  expect((await post(port, nio(b))).status).toBe(201)
  const { udp_ports } = await body<{ udp_ports: number[] }>(send('/v2/compute/network/ports'))
  expect(udp_ports).toContain(b)
  expect(udp_ports).not.toContain(a)
  expect((await put(port, { ...nio(b), suspend: true, filters: {} })).status).toBe(201)
  expect((await del(port)).status).toBe(204)
  expect((await del(port)).status).toBe(404)
  expect((await put(port, nio(b))).status).toBe(404)
})

test('a local port that another link uses is a conflict, and the link that was there stays', async () => {
  const project = await newProject()
  const [one, two] = [await newPc(project), await newPc(project)]
  const [a, b] = [await reserve(project), await reserve(project)]
  const at = (pc: { path: string }) => `${pc.path}/adapters/0/ports/0/nio`
  await post(at(one), nio(a))
  await post(at(two), nio(b))
  expect((await post(at(two), nio(a))).status).toBe(409)
  expect((await del(at(two))).status).toBe(204)
  expect((await post(at(two), nio(b))).status).toBe(201)
})

test.for([
  ['adapters/1/ports/0', 404],
  ['adapters/0/ports/1', 404],
  ['adapters/x/ports/0', 400],
  ['adapters/-1/ports/0', 400],
] as const)('%s is %d', async ([port, status]) => {
  const project = await newProject()
  const pc = await newPc(project)
  expect((await post(`${pc.path}/${port}/nio`, nio(await reserve(project)))).status).toBe(status)
})

test('a change of a NIO keeps absent members, also its type and its address', async () => {
  const project = await newProject()
  const pc = await newPc(project)
  const at = `${pc.path}/adapters/0/ports/0/nio`
  const whole = nio(await reserve(project))
  expect((await put(at, { filters: { delay: [5] } })).status).toBe(404)
  await post(at, whole)
  const changed = await put(at, { filters: { delay: [5] } })
  expect([changed.status, await body(changed)]).toEqual([201, { ...whole, filters: { delay: [5] } }])
  expect(await body(put(at, { suspend: true }))).toEqual({ ...whole, filters: { delay: [5] }, suspend: true })
  expect(await body(put(at, { type: 'nio_udp', rport: 9, suspend: false }))).toMatchObject({
    ...{ ...whole, rport: 9 },
    ...{ filters: { delay: [5] }, suspend: false },
  })
  const wrong = await put(at, { filter: { delay: [5] } })
  expect([wrong.status, await body<{ message: string }>(wrong)]).toMatchObject([
    400,
    { message: 'filter: unknown field, did you mean filters?' },
  ])
})

test('a node shows where its console listens, in both API versions', async () => {
  const pc = await newPc(await newProject())
  expect(await body(send(pc.path))).toMatchObject({ console: expect.any(Number), console_host: '127.0.0.1' })
  expect(await body(send(pc.path.replace('/v2/compute', '/v1').replace('/nodes/', '/vms/')))).toMatchObject({
    console_host: '127.0.0.1',
  })
  expect(await body(put(pc.path, { console_type: 'none' }))).toMatchObject({ console: null, console_host: null })
})

test('a copy is made into an existing node', async () => {
  const project = await newProject()
  const pc = await newPc(project)
  const none = crypto.randomUUID()
  const answer = await post(`${pc.path}/duplicate`, { destination_node_id: none })
  expect([answer.status, (await body<{ message: string }>(answer)).message]).toEqual([
    404,
    `destination_node_id: the project has no pc node ${none}; create it first, then copy into it`,
  ])
})

test.for([
  [{ type: 'nio_vde' }, `type: a pc node does not support nio_vde, expected one of ${types}`],
  [{ type: 'nio_tap', tap_device: 'a/b' }, /^tap_device: expected the name of a network device/],
  [{ type: 'nio_tap', tap_device: 'tap%d' }, /^tap_device: expected/],
  [{ type: 'nio_tap', tap_device: 'éééééééééééé' }, /^tap_device: expected/],
  [{ type: 'nio_ethernet', ethernet_device: 'far too long a name' }, /^ethernet_device: expected/],
  [
    { ...nio(40_999), filters: { packet_loss: [101] } },
    'filters.packet_loss[0]: expected a number from 0 to 100, got 101',
  ],
  [{ ...nio(40_999), filters: { frequency_drop: [] } }, /^filters.frequency_drop: expected a list: \[n\]/],
  [{ ...nio(40_999), filters: { delay: [1, 2, 3] } }, /^filters.delay: expected a list/],
  [{ ...nio(40_999), filters: { latency: [1] } }, /^filters.latency: unknown field/],
  [{ type: 'nio_magic' }, `type: unknown NIO type "nio_magic", expected one of ${types}`],
  [{ lport: 1 }, `type: missing, expected one of ${types}`],
  [{ ...nio(40_999), rport: 70_000 }, 'rport: expected an integer from 1 to 65535, got 70000'],
  [{ ...nio(40_999), rhosts: 'x' }, 'rhosts: unknown field, did you mean rhost?'],
  [{ ...nio(40_999), rhost: 'no.such.host.invalid' }, /^rhost: "no\.such\.host\.invalid" cannot be resolved/],
] as const)('the NIO %j is refused', async ([input, message]) => {
  const project = await newProject()
  const pc = await newPc(project)
  const answer = await post(`${pc.path}/adapters/0/ports/0/nio`, input)
  expect(answer.status).toBe(400)
  expect((await body<{ message: string }>(answer)).message).toMatch(message)
})

testWith(libpcap)('filters are checked for a port before anything is attached, and without effect', async () => {
  const pc = await newPc(await newProject())
  const port = `${pc.path}/adapters/0/ports/0`
  const check = (filters: object, at = port) => post(`${at}/check_filters`, filters)
  expect((await check({ delay: [50], bpf: ['tcp port 80\nicmp'] })).status).toBe(204)
  expect((await send(`${port}/nio`)).status).toBe(404)
  const faults = async (filters: object) => {
    const answer = await check(filters)
    return [answer.status, (await body<{ message: string }>(answer)).message]
  }
  expect(await faults({ bpf: ['icmp and prot 1'] })).toEqual([
    400,
    expect.stringMatching(/^filters\.bpf: .* at character 10 \(near "prot"\)/),
  ])
  expect(await faults({ bpf: ['tcp', 'PPP'] })).toEqual([
    400,
    expect.stringMatching(/^filters\.bpf\[1\]: unknown link type/),
  ])
  expect(await faults({ packet_loss: [101] })).toEqual([400, expect.stringMatching(/^packet_loss\[0\]: expected/)])
  expect((await check({}, port.replace('ports/0', 'ports/1'))).status).toBe(404)
})

// Another user may open no packet socket, and is told that first.
testWith(requireRoot()).each([
  { type: 'nio_ethernet', ethernet_device: 'no-such-dev' },
  { type: 'nio_generic_ethernet', ethernet_device: 'no-such-dev' },
])('a device that the host does not have is missing: %j', async (input) => {
  const pc = await newPc(await newProject())
  const answer = await post(`${pc.path}/adapters/0/ports/0/nio`, input)
  expect(answer.status).toBe(404)
  const { message } = await body<{ message: string }>(answer)
  expect(message).toMatch(/^ethernet_device: the host has no network device no-such-dev; the host has .*\blo\b/)
})

test('the NIO of a port shows its filters, its link and its counters', async () => {
  const project = await newProject()
  const pc = await newPc(project)
  const port = `${pc.path}/adapters/0/ports/0/nio`
  expect((await send(port)).status).toBe(404)
  const filters = { delay: [10, 2], packet_loss: [1], ...(!libpcap.skip && { bpf: ['icmp\narp'] }) }
  const lport = await reserve(project)
  expect((await post(port, { ...nio(lport), filters })).status).toBe(201)
  expect((await put(port, { ...nio(lport), suspend: true })).status).toBe(201)
  const state = await body<Record<string, unknown>>(send(port))
  expect(state).toMatchObject({ ...nio(lport), filters, suspend: true, link: 'suspended', capture: null })
  expect(state.counters).toMatchObject({ out_frames: 0, in_frames: 0, dropped: { packet_loss: 0, suspended: 0 } })
})

test('a duplicate has the files of the source and a MAC address of its own', async () => {
  const project = await newProject()
  const source = await newPc(project, { name: 'A', startup_script: 'set pcname A\nip 10.0.0.1/24\n' })
  const copy = await newPc(project, { name: 'B' })
  const answer = await post(`${source.path}/duplicate`, { destination_node_id: copy.id })
  expect(answer.status).toBe(201)
  expect(await answer.json()).toMatchObject({
    node_id: copy.id,
    name: 'B',
    startup_script: 'set pcname B\nip 10.0.0.1/24\n',
    mac_address: '00:50:79:66:68:01',
  })
  expect((await post(`${source.path}/duplicate`, { destination_node_id: source.id })).status).toBe(400)
  expect((await post(`${source.path}/duplicate`, { destination_node_id: crypto.randomUUID() })).status).toBe(404)
  await post(`${copy.path}/start`)
  expect((await post(`${source.path}/duplicate`, { destination_node_id: copy.id })).status).toBe(409)
})

test('aliases of kinds work when they are configured', async () => {
  const project = await newProject()
  const answer = await post(`${project.v2}/vpcs/nodes`, { name: 'PC1' })
  expect(answer.status).toBe(201)
  expect(answer.headers.get('X-ROUTE')).toBe('/v2/compute/projects/{project_id}/pc/nodes')
  expect(await body(send('/v2/compute/capabilities'))).toMatchObject({
    node_types: expect.arrayContaining(['vpcs', 'iou', 'hypervisor', 'machine-emulator', 'switch']),
  })
})
