import { describe, expect, test } from 'vitest'
import { body, del, newPc, newProject, post, put, send } from '../support/api.ts'
import { openFeed } from '../support/feed.ts'

/** The hypervisor here is a stand-in of VirtualBox with VMs that are called `VM 1` and so on; every test has some of its own. */
type Project = Awaited<ReturnType<typeof newProject>>
interface Node {
  readonly node_id: string
  readonly name: string
  readonly vmname: string
  readonly status: string
  readonly node_directory: string | null
  readonly remote_console: number | null
}

const nodes = ({ v2 }: Project) => `${v2}/hypervisor/nodes`
const instances = ({ v1 }: Project) => `${v1}/hypervisor/vms`
const usual = 'Intel PRO/1000 MT Desktop (82540EM)'
const uuid = expect.stringMatching(/^[0-9a-f-]{36}$/)

const defaults = {
  usage: '',
  linked_clone: false,
  console_type: 'telnet',
  ram: 512,
  adapters: 0,
  adapter_type: usual,
  custom_adapters: [],
  use_any_adapter: false,
  enable_remote_console: false,
  headless: false,
  acpi_shutdown: false,
  on_close: 'power_off',
}
/** Another value for each field that can be changed in both API versions. */
const others = {
  name: 'other',
  console: expect.any(Number),
  ram: 640,
  usage: 'boot it',
  adapters: 2,
  adapter_type: 'Paravirtualized Network (virtio-net)',
  use_any_adapter: true,
  enable_remote_console: true,
  headless: true,
  on_close: 'save_vm_state',
}

async function made(project: Project, vm: number, input: Record<string, unknown> = {}) {
  const answer = await post(nodes(project), { name: 'node', vmname: `VM ${vm}`, ...input })
  if (answer.status !== 201) throw new Error(await answer.text())
  const node = await body<Node>(answer)
  return { node, v2: `${nodes(project)}/${node.node_id}`, v1: `${instances(project)}/${node.node_id}` }
}
const read = (path: string) => body<Node>(send(path))
const said = async (answer: Promise<Response>) => {
  const { status, message } = await body<{ status: number; message: string }>(answer)
  return [status, message]
}

test('a VM is shown with every field, in v1 under its own names and without a state', async () => {
  const project = await newProject()
  const { node, v1, v2 } = await made(project, 1)
  const common = {
    project_id: project.id,
    name: 'node',
    vmname: 'VM 1',
    driver: 'virtualbox',
    console: expect.any(Number),
    console_host: '127.0.0.1',
    remote_console: null,
    command_line: '',
    status_reason: null,
  }
  expect(node).toEqual({ ...defaults, ...common, node_id: uuid, node_directory: null, status: 'stopped' })
  const { linked_clone: _, console_type: __, custom_adapters: ___, ...shown } = defaults
  expect(await body(send(v1))).toEqual({ ...shown, ...common, vm_id: node.node_id, vm_directory: null })
  expect(await body(send(instances(project)))).toEqual([await body(send(v1))])
  expect(await body(send(nodes(project)))).toEqual([node])
  for (const it of [v1, v2]) expect((await send(`${it}/duplicate`, { method: 'POST' })).status).toBe(404)
})

/** A console port that no node has, from `first` on: a port further away is not given to a new node now. */
async function freeConsole(first: number): Promise<number> {
  const { console_ports } = await body<{ console_ports: number[] }>(send('/v2/compute/network/ports'))
  let port = first
  while (console_ports.includes(port)) port++
  return port
}

test('members of an update that are absent or null stay unchanged', async () => {
  const project = await newProject()
  const { v1, v2 } = await made(project, 2, Object.fromEntries(Object.keys(defaults).map((field) => [field, null])))
  expect(await read(v2)).toMatchObject(defaults)
  let now: Record<string, unknown> = await body(send(v2))
  for (const [index, [field, value]] of Object.entries(others).entries()) {
    const one = index % 2 === 0 ? v1 : v2
    const wanted = field === 'console' ? await freeConsole(Number(now.console) + 40) : value
    expect(await body(put(one, { [field]: wanted })), field).toMatchObject({ [field]: value })
    const next = await body(send(v2))
    const more = field === 'enable_remote_console' ? { remote_console: expect.any(Number) } : {}
    expect(next).toEqual({ ...now, [field]: value, ...more })
    now = next
  }
  expect(await body(put(v2, Object.fromEntries(Object.keys(others).map((field) => [field, null]))))).toEqual(now)
  const custom_adapters = [{ adapter_number: 1, port_name: 'wan', adapter_type: 'PCNet-FAST III' }]
  expect(await body(put(v2, { custom_adapters }))).toMatchObject({ custom_adapters })
  expect(await body(put(v2, { console_type: 'none' }))).toMatchObject({ console: null })
  expect(await body(put(v2, { enable_remote_console: false, ram: 0 }))).toMatchObject({
    remote_console: null,
    ram: 640,
  })
})

const wrong: readonly (readonly [field: string, value: unknown])[] = [
  ...['', 'a\nb', 'x'.repeat(256), 7].map((it) => ['name', it] as const),
  ...['', 'a\nb', 'x'.repeat(256), 7].map((it) => ['vmname', it] as const),
  ...[-1, 37, 1.5, '2'].map((it) => ['adapters', it] as const),
  ...['', 'Token Ring', 7].map((it) => ['adapter_type', it] as const),
  ...[0, 65_536, '5000'].map((it) => ['console', it] as const),
  ...[-1, 65_536, '512'].map((it) => ['ram', it] as const),
  ...['use_any_adapter', 'enable_remote_console', 'headless', 'acpi_shutdown'].map((it) => [it, 'yes'] as const),
  ...['explode', 1].map((it) => ['on_close', it] as const),
  ['usage', 7],
  ['nonsense', '/tmp'],
  ['project_id', 'x'],
]
test('wrong input is refused with the name of the member in both API versions, and changes nothing', async () => {
  const project = await newProject()
  const { node, v1, v2 } = await made(project, 3)
  for (const [field, value] of wrong) {
    const bad = { [field]: value }
    for (const answer of [put(v1, bad), put(v2, bad)]) {
      expect(await said(answer), `${field} ${value}`.slice(0, 40)).toEqual([400, expect.stringContaining(field)])
    }
    const create = { name: 'x', vmname: 'VM 4', ...bad }
    for (const answer of [post(instances(project), create), post(nodes(project), create)]) {
      expect(await said(answer), `${field} ${value}`.slice(0, 40)).toEqual([400, expect.stringContaining(field)])
    }
  }
  for (const missing of ['name', 'vmname']) {
    const input = { name: 'x', vmname: 'VM 4', [missing]: undefined }
    expect(await said(post(instances(project), input))).toEqual([400, expect.stringContaining(missing)])
  }
  for (const [field, value] of [
    ['console_type', 'vnc'],
    ['linked_clone', 'yes'],
  ] as const) {
    const input = { name: 'x', vmname: 'VM 4', [field]: value }
    expect(await said(post(nodes(project), input))).toEqual([400, expect.stringContaining(field)])
  }
  for (const [custom_adapters, field] of [
    [[{ adapter_number: 0, adapter_type: 'Token Ring' }], 'custom_adapters[0].adapter_type'],
    [[{ adapter_number: 36 }], 'custom_adapters[0].adapter_number'],
    [[{ adapter_number: 1 }, { adapter_number: 1 }], 'adapter_number 1 occurs twice'],
  ] as const) {
    expect(await said(put(v2, { custom_adapters }))).toEqual([400, expect.stringContaining(field)])
  }
  const [, words] = await said(put(v2, { adapter_type: 'Token Ring' }))
  for (const type of [usual, 'PCnet-PCI II (Am79C970A)']) expect(words).toContain(type)
  // The chipset of these has eight.
  expect(await said(put(v1, { adapters: 9 }))).toEqual([409, expect.stringContaining('adapters: the VM can have 8')])
  expect(await body(send(nodes(project)))).toEqual([node])
})

test('a VM has one node, and each API version treats a known id in its own way', async () => {
  const project = await newProject()
  const { node, v2 } = await made(project, 5)
  const taken = [409, expect.stringContaining('already uses the VM VM 5')]
  expect(await said(post(nodes(project), { name: 'x', vmname: 'VM 5' }))).toEqual(taken)
  const second = await made(project, 6)
  expect(await said(put(second.v1, { vmname: 'VM 5' }))).toEqual(taken)
  expect(await said(put(second.v1, { vmname: 'nowhere' }))).toEqual([409, expect.stringContaining('nowhere')])
  expect(await body(put(second.v1, { vmname: 'VM 4' }))).toMatchObject({ vmname: 'VM 4' })
  // Controllers send what they know of a node with its name; what that is in v2 may be old.
  expect(await body(put(second.v2, { name: 'n', vmname: 'nowhere' }))).toMatchObject({ name: 'n', vmname: 'VM 4' })
  const both = [1, 2].map((it) => post(nodes(project), { name: `n${it}`, vmname: 'VM 6' }))
  expect((await Promise.all(both)).map(({ status }) => status).sort()).toEqual([201, 409])

  const again = await post(nodes(project), { name: 'new', vmname: 'VM 5', node_id: node.node_id.toUpperCase() })
  expect([again.status, await again.json()]).toEqual([201, { ...node, name: 'new' }])
  const known = { name: 'x', vmname: 'VM 5', vm_id: node.node_id }
  expect((await post(instances(project), known)).status).toBe(409)
  expect((await del(v2)).status).toBe(204)
  const legacy = await post(instances(project), { name: 'x', vmname: 'VM 5', vm_id: 7 })
  expect([legacy.status, await legacy.json()]).toMatchObject([201, { vm_id: uuid, vmname: 'VM 5' }])
  expect((await del(v2)).status).toBe(404)
})

test('acpi_shutdown and on_close are one setting', async () => {
  const { v1, v2 } = await made(await newProject(), 7, { acpi_shutdown: true })
  expect(await read(v2)).toMatchObject({ acpi_shutdown: true, on_close: 'shutdown_signal' })
  expect(await body(put(v2, { on_close: 'save_vm_state' }))).toMatchObject({ acpi_shutdown: false })
  expect(await body(put(v1, { acpi_shutdown: true, on_close: 'power_off' }))).toMatchObject({ on_close: 'power_off' })
})

test('a linked clone has a directory and its name, and is in no list', async () => {
  const project = await newProject()
  const { node, v1, v2 } = await made(project, 8, { name: 'clone one', linked_clone: true })
  const node_directory = expect.stringContaining(`${project.id}/project-files/hypervisor/${node.node_id}`)
  expect(node).toMatchObject({ vmname: 'clone one', linked_clone: true, node_directory })
  expect(await body(send(v1))).toMatchObject({ vm_directory: node_directory })
  expect(await body(put(v1, { name: 'clone two' }))).toMatchObject({ name: 'clone two', vmname: 'clone two' })
  expect(await said(put(v2, { name: 'VM 8' }))).toEqual([409, expect.stringContaining('VM 8')])
  expect(await read(v2)).toMatchObject({ name: 'clone two', vmname: 'clone two' })
  for (const list of ['/v1/hypervisor/vms', '/v2/compute/hypervisor/vms']) {
    const vms = await body<{ vmname: string }[]>(send(list))
    expect(vms).toContainEqual({ vmname: 'VM 8', ram: 512 })
    expect(vms.map(({ vmname }) => vmname)).not.toContain('clone two')
  }
  expect((await del(v2)).status).toBe(204)
})

/** The status of each action in each state, and the state after it. */
const matrix: Readonly<Record<string, Readonly<Record<string, readonly [v1: number, v2: number, after: string]>>>> = {
  stopped: {
    stop: [204, 204, 'stopped'],
    suspend: [204, 204, 'stopped'],
    resume: [409, 409, 'stopped'],
    reload: [409, 409, 'stopped'],
    start: [204, 204, 'started'],
  },
  started: {
    start: [409, 204, 'started'],
    resume: [409, 409, 'started'],
    reload: [204, 204, 'started'],
    suspend: [204, 204, 'suspended'],
    stop: [204, 204, 'stopped'],
  },
  suspended: {
    suspend: [204, 204, 'suspended'],
    start: [204, 204, 'started'],
    resume: [204, 204, 'started'],
    stop: [204, 204, 'stopped'],
  },
}
/** What leads to a state from any other one, in v2. */
const way: Readonly<Record<string, readonly string[]>> = {
  stopped: ['stop'],
  started: ['start'],
  suspended: ['start', 'suspend'],
}
describe.each([
  ['v1', 0, 9],
  ['v2', 1, 10],
] as const)('in %s', (version, column, vm) => {
  test('actions have the effects of the table', async () => {
    const project = await newProject()
    const paths = await made(project, vm, { adapters: 1, headless: true })
    const feed = await openFeed(`${project.v1}/notifications`)
    for (const [state, actions] of Object.entries(matrix)) {
      for (const [action, expected] of Object.entries(actions)) {
        if ((await read(paths.v2)).status !== state) {
          for (const step of way[state] ?? []) expect((await post(`${paths.v2}/${step}`)).status).toBe(204)
        }
        const answer = await post(`${paths[version]}/${action}`)
        const { status } = await read(paths.v2)
        expect([state, action, answer.status, status]).toEqual([state, action, expected[column], expected[2]])
        if (answer.status === 204) expect(await answer.text()).toBe('')
      }
    }
    await post(`${paths.v2}/start`)
    for (const changes of [{ ram: 700 }, { vmname: 'VM 4' }]) {
      expect(await said(put(paths[version], changes))).toEqual([409, expect.stringContaining('stop the node first')])
    }
    expect((await put(paths.v2, { console_type: 'none' })).status).toBe(409)
    expect((await del(paths[version])).status).toBe(204)
    expect((await post(`${paths[version]}/start`)).status).toBe(404)
    // The first that v1 is told is not of a VM.
    const pc = await newPc(project)
    await post(`${pc.path}/start`)
    expect(await feed.next()).toMatchObject({ action: 'vm.started', event: { vm_id: pc.id } })
  })
})
