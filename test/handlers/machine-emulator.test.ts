import { once } from 'node:events'
import { request } from 'node:http'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { MachineEmulatorUpdate } from '../../src/model/kinds/machine-emulator.ts'
import { base, body, del, newMachine, newProject, post, put, send } from '../support/api.ts'
import { openFeed } from '../support/feed.ts'
import { requireProgram } from '../support/require.ts'
import { testWith } from '../support/test-with.ts'

type Project = Awaited<ReturnType<typeof newProject>>
interface Machine {
  readonly node_id: string
  readonly status: string
  readonly console: number | null
  readonly mac_address: string
}
interface Fault {
  readonly message: string
  readonly image?: string
}

const needsQemu = requireProgram('qemu-system-x86_64')
const machineTest = testWith(needsQemu)
const diskTest = testWith(needsQemu, requireProgram('qemu-img'))

const tools = '/v2/compute/machine-emulator'
const nodes = ({ v2 }: Project) => `${v2}/machine-emulator/nodes`
const instances = ({ v1 }: Project) => `${v1}/machine-emulator/vms`
/** What starts anywhere, and at once. */
const tiny = { ram: 16, adapters: 1, adapter_type: 'e1000', options: '-accel tcg' }
const read = (path: string) => body<Machine>(send(path))
const disks = (field: string, value: unknown) =>
  Object.fromEntries(['hda', 'hdb', 'hdc', 'hdd'].map((slot) => [`${slot}_disk_${field}`, value]))
/** Whether a port is one of screens that are in use, at any of the computes. */
const isScreenPort = async (port: number | null) => {
  const { vnc_ports } = await body<{ vnc_ports: (number | null)[] }>(send('/v2/compute/network/ports'))
  return vnc_ports.includes(port)
}

const defaults = {
  usage: '',
  linked_clone: true,
  console_type: 'telnet',
  ...disks('image', ''),
  ...disks('image_md5sum', null),
  ...disks('interface', 'ide'),
  cdrom_image: '',
  cdrom_image_md5sum: null,
  bios_image: '',
  bios_image_md5sum: null,
  firmware: 'bios',
  initrd: '',
  initrd_md5sum: null,
  kernel_image: '',
  kernel_image_md5sum: null,
  kernel_command_line: '',
  boot_priority: 'c',
  ram: 256,
  cpus: 1,
  adapters: 1,
  adapter_type: 'e1000',
  custom_adapters: [],
  legacy_networking: false,
  acpi_shutdown: false,
  on_close: 'power_off',
  cpu_throttling: 0,
  process_priority: 'low',
  options: '',
}
const noChange = Object.fromEntries(Object.keys(MachineEmulatorUpdate.properties).map((field) => [field, null]))

/** The MAC address that the ids give: 0c and the ends of both. */
function macOf(project: Project, nodeId: string): string {
  const bytes = `${project.id.slice(-4)}${nodeId.slice(-4)}`.match(/../g) ?? []
  return ['0c', ...bytes, '00'].join(':')
}

machineTest('a machine is created stopped, with every field', async () => {
  const project = await newProject()
  const answer = await post(nodes(project), { name: 'R1', platform: 'x86_64' })
  expect(answer.status).toBe(201)
  const node = await body<Machine>(answer)
  expect(node).toEqual({
    ...defaults,
    node_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    project_id: project.id,
    name: 'R1',
    node_directory: expect.stringContaining(`${project.id}/project-files/machine-emulator/${node.node_id}`),
    status: 'stopped',
    status_reason: null,
    console: expect.any(Number),
    console_host: '127.0.0.1',
    command_line: '',
    qemu_path: expect.stringMatching(/^\/.*qemu-system-x86_64$/),
    platform: 'x86_64',
    mac_address: macOf(project, node.node_id),
  })
  expect(await isScreenPort(node.console)).toBe(false)
  expect(await body(send(nodes(project)))).toEqual([node])
  expect((await del(`${nodes(project)}/${node.node_id}`)).status).toBe(204)
  expect(await body(send(nodes(project)))).toEqual([])
})

machineTest('null asks for the default in a create, and leaves what is there in an update', async () => {
  const project = await newProject()
  const { path } = await newMachine(project, { ...noChange, name: 'R1', platform: 'x86_64' })
  expect(await read(path)).toMatchObject(defaults)
  const custom_adapters = [{ adapter_number: 1, adapter_type: 'rtl8139', mac_address: '00:11:22:33:44:55' }]
  const changes = { name: 'R2', ram: 512, adapters: 3, custom_adapters, options: '-accel tcg', cpu_throttling: 50 }
  const changed = await put(path, changes)
  expect(changed.status).toBe(200)
  const node = await body(changed)
  expect(node).toMatchObject({ ...defaults, ...changes })
  for (const nothing of [{}, noChange]) expect(await body(put(path, nothing))).toEqual(node)
})

machineTest('older and newer words for how a machine ends are one setting', async () => {
  const { path } = await newMachine(await newProject(), { acpi_shutdown: true })
  expect(await read(path)).toMatchObject({ acpi_shutdown: true, on_close: 'shutdown_signal' })
  expect(await body(put(path, { on_close: 'save_vm_state' }))).toMatchObject({ acpi_shutdown: false })
  expect(await body(put(path, { acpi_shutdown: true, on_close: 'power_off' }))).toMatchObject({ on_close: 'power_off' })
})

machineTest('v2 gives a known machine the other fields, v1 refuses its id', async () => {
  const [project, other] = [await newProject(), await newProject()]
  const { id, path } = await newMachine(project)
  const again = await post(nodes(project), { name: 'R2', node_id: id.toUpperCase(), ram: 64 })
  expect(again.status).toBe(201)
  expect(await again.json()).toMatchObject({ node_id: id, name: 'R2', ram: 64, platform: 'x86_64' })
  expect((await post(instances(project), { name: 'x', vm_id: id })).status).toBe(409)
  expect((await post(nodes(other), { name: 'x', node_id: id })).status).toBe(409)
  expect((await send(path.replace(project.id, other.id))).status).toBe(404)
  expect((await del(path.replace(project.id, other.id))).status).toBe(404)
})

machineTest('v1 shows the same machine, under its own names', async () => {
  const project = await newProject()
  const answer = await post(instances(project), { name: 'R1', platform: 'x86_64', vm_id: 7, ...tiny })
  expect(answer.status).toBe(201)
  expect(answer.headers.get('X-ROUTE')).toBe('/v1/projects/{project_id}/machine-emulator/vms')
  const { vm_id, vm_directory, ...rest } = await body<Record<string, unknown>>(answer)
  const one = `${instances(project)}/${vm_id}`
  expect(await body(send(`${nodes(project)}/${vm_id}`))).toEqual({
    node_id: vm_id,
    node_directory: vm_directory,
    ...rest,
  })
  expect(rest).toMatchObject({ ...defaults, ...tiny })
  expect(await body(send(instances(project)))).toEqual([await body(send(one))])
  expect(await body(put(one, { name: 'R2', ram: null }))).toMatchObject({ vm_id, name: 'R2', ram: 16 })
  expect((await put(one, { node_id: vm_id })).status).toBe(400)
  const copy = await body(post(instances(project), { name: 'R3', platform: 'x86_64' }))
  const copied = await post(`${one}/duplicate`, { destination_vm_id: copy.vm_id })
  expect([copied.status, await copied.json()]).toMatchObject([201, { vm_id: copy.vm_id, name: 'R3', ram: 16 }])
  expect((await del(one)).status).toBe(204)
  expect((await send(one)).status).toBe(404)
})

test.for([
  [{}, 'name: missing'],
  [{ name: '' }, 'name: expected a string of 1 to 255 characters'],
  [{ ram: 0 }, 'ram: expected an integer from 1'],
  [{ ram: '256' }, 'ram: expected an integer'],
  [{ cpus: 256 }, 'cpus: expected an integer from 1 to 255, got 256'],
  [{ adapters: 276 }, 'adapters: expected an integer from 0 to 275, got 276'],
  [{ adapter_type: '' }, 'adapter_type: expected the name of a device model'],
  [{ cpu_throttling: -1 }, 'cpu_throttling: expected an integer from 0 to 800'],
  [{ console: 70_000 }, 'console: expected an integer from 1 to 65535'],
  [{ console_type: 'ssh' }, 'console_type: expected "telnet", "vnc", "spice", "spice+agent" or "none"'],
  [{ platform: 'pdp11' }, 'platform: expected "aarch64"'],
  [{ qemu_path: '' }, 'qemu_path: expected a string of 1 to 4096 characters'],
  [{ boot_priority: 'a' }, 'boot_priority: expected "c", "d", "n"'],
  [{ mac_address: '0c:1' }, 'mac_address: expected a MAC address'],
  [{ process_priority: 'highest' }, 'process_priority: expected "realtime"'],
  [{ hda_disk_image: 5 }, 'hda_disk_image: expected the name or path of an image'],
  [{ hda_disk_interface: 'usb' }, 'hda_disk_interface: expected "ide", "sata"'],
  [{ linked_clone: 'yes' }, 'linked_clone: expected true or false'],
  [{ on_close: 'burn' }, 'on_close: expected "power_off"'],
  [{ custom_adapters: [{ adapter_type: 'e1000' }] }, 'custom_adapters[0].adapter_number: missing'],
  [{ custom_adapters: {} }, 'custom_adapters: expected a list'],
  [{ node_id: 'x' }, 'node_id: expected a UUID'],
  [{ hda_disk_imgae: 'x' }, 'hda_disk_imgae: unknown field, did you mean hda_disk_image?'],
  [{ state: 'started' }, 'state: unknown field'],
  [{ status: 'flying' }, 'status: expected "started"'],
] as const)('%j is refused with the name of the member, in both API versions', async ([input, message]) => {
  const project = await newProject()
  const isNameless = Object.keys(input).length === 0
  for (const path of [nodes(project), instances(project)]) {
    const named = JSON.stringify({ ...(isNameless ? {} : { name: 'R1', platform: 'x86_64' }), ...input })
    const answer = await post(path, path === nodes(project) ? named : named.replace('"node_id"', '"vm_id"'))
    const fault = await body<Fault>(answer)
    expect(fault).toEqual({ message: expect.any(String), status: 400 })
    expect(fault.message.replace('vm_id', 'node_id')).toContain(message)
  }
})

machineTest(
  'options that would take our end of the machine away are refused, and nothing is left of the create',
  async () => {
    const project = await newProject()
    const options = '-qmp unix:/tmp/x,server'
    const { path } = await newMachine(project)
    const before = await read(path)
    for (const answer of [
      await post(nodes(project), { name: 'x', platform: 'x86_64', options }),
      await put(path, { options }),
    ]) {
      expect(answer.status).toBe(400)
      expect((await body<Fault>(answer)).message).toMatch(/^options: /)
    }
    expect(await body(send(nodes(project)))).toEqual([before])
  },
)

machineTest.for([
  [{ qemu_path: '/no/such/qemu-system-x86_64' }, /^qemu_path: \/no\/such/],
  [{ qemu_path: 'qemu-system-none' }, /^qemu_path: /],
  [{ qemu_path: '/bin/sh' }, /^qemu_path: sh is not the name of an emulator/],
  [{ platform: 'unicore32' }, /qemu-system-unicore32 is not installed/],
  [{}, /^platform: missing, .*qemu_path/],
] as const)('%j is a conflict that says why', async ([input, message]) => {
  const project = await newProject()
  const answer = await post(nodes(project), { name: 'R1', ...input })
  expect(answer.status).toBe(409)
  expect((await body<Fault>(answer)).message).toMatch(message)
  expect(await body(send(nodes(project)))).toEqual([])
})

machineTest('a platform stands in for an emulator that is not there', async () => {
  const { path } = await newMachine(await newProject(), { qemu_path: '/no/such/qemu-system-x86_64' })
  expect(await read(path)).toMatchObject({
    qemu_path: expect.stringMatching(/qemu-system-x86_64$/),
    platform: 'x86_64',
  })
  expect(await body(put(path, { platform: 'i386' }))).toMatchObject({
    qemu_path: expect.stringMatching(/qemu-system-i386$/),
    platform: 'i386',
  })
  expect((await put(path, { qemu_path: '/no/such/qemu-system-arm' })).status).toBe(409)
})

machineTest.for(['hda_disk_image', 'hdd_disk_image', 'cdrom_image', 'bios_image', 'initrd', 'kernel_image'] as const)(
  'a missing %s is a conflict that names the image',
  async (field) => {
    const project = await newProject()
    const { path } = await newMachine(project)
    const before = await read(path)
    const wanted = { [field]: 'no-such.img' }
    for (const answer of [
      await post(nodes(project), { name: 'R2', platform: 'x86_64', ...wanted }),
      await put(path, { name: 'R3', ...wanted }),
      await put(path.replace('/v2/compute', '/v1').replace('/nodes/', '/vms/'), wanted),
    ]) {
      expect(answer.status).toBe(409)
      const fault = await body<Fault>(answer)
      expect(fault).toEqual({
        message: expect.any(String),
        status: 409,
        image: 'no-such.img',
        exception: 'ImageMissingError',
      })
      expect(fault.message).toContain(field)
    }
    expect(await body(send(nodes(project)))).toEqual([before])
  },
)

machineTest('an image that is there is shown with its sum, and taken out by an empty name', async () => {
  const project = await newProject()
  const name = `machine-${project.id}.img`
  expect((await send(`${tools}/images/${name}`, { method: 'POST', body: 'hello' })).status).toBe(204)
  const { path } = await newMachine(project, { cdrom_image: name, hda_disk_image: name, hda_disk_image_md5sum: 'x' })
  const md5sum = '5d41402abc4b2a76b9719d911017c592'
  await expect.poll(() => read(path)).toMatchObject({ cdrom_image: name, cdrom_image_md5sum: md5sum })
  expect(await read(path)).toMatchObject({ hda_disk_image: name, hda_disk_image_md5sum: md5sum })
  expect(await body(put(path, { cdrom_image: '' }))).toMatchObject({ cdrom_image: '', cdrom_image_md5sum: null })
})

machineTest('a console of each type has a port of its range, or none', async () => {
  const project = await newProject()
  const { path } = await newMachine(project, { console_type: 'vnc' })
  expect(await isScreenPort((await read(path)).console)).toBe(true)
  expect(await body(put(path, { console_type: 'none' }))).toMatchObject({ console: null, console_type: 'none' })
  const telnet = await body<Machine>(put(path, { console_type: 'telnet' }))
  expect(telnet.console).not.toBeNull()
  expect(await isScreenPort(telnet.console)).toBe(false)
  expect(await isScreenPort((await body<Machine>(put(path, { console_type: 'vnc' }))).console)).toBe(true)
  expect((await put(path, { console: 5899 })).status).toBe(409)
  const none = await newMachine(project, { console_type: 'none' })
  expect(await read(none.path)).toMatchObject({ console: null })
})

machineTest('MAC addresses are made of the ids unless one is given, and again when that is taken back', async () => {
  const project = await newProject()
  const { id, path } = await newMachine(project, { mac_address: '00:11:22:33:44:55' })
  expect(await read(path)).toMatchObject({ mac_address: '00:11:22:33:44:55' })
  expect(await body(put(path, { mac_address: '' }))).toMatchObject({ mac_address: macOf(project, id) })
})

machineTest(
  'no adapter of a duplicate has a MAC address of its source, and those it was given itself stay',
  async () => {
    const project = await newProject()
    const source = await newMachine(project, {
      ...{ adapters: 4, mac_address: '0c:aa:aa:aa:aa:00' },
      custom_adapters: [
        { adapter_number: 1, adapter_type: 'e1000', mac_address: '0c:aa:aa:aa:bb:01' },
        { adapter_number: 2, port_name: 'wan', mac_address: '0c:aa:aa:aa:bb:02' },
      ],
    })
    const duplicate = async (input: object) => {
      const { id } = await newMachine(project, { ...input })
      const answer = await post(`${source.path}/duplicate`, { destination_node_id: id })
      expect(answer.status).toBe(201)
      return body<{ mac_address: string }>(answer)
    }
    const plain = await duplicate({ name: 'R2' })
    expect(plain).toMatchObject({
      adapters: 4,
      custom_adapters: [
        { adapter_number: 1, adapter_type: 'e1000' },
        { adapter_number: 2, port_name: 'wan' },
      ],
    })
    expect(JSON.stringify(plain)).not.toMatch(/0c:aa:aa:aa/i)

    const own = { adapter_number: 2, mac_address: '0c:cc:cc:cc:cc:02' }
    const given = await duplicate({
      ...{ name: 'R3', adapters: 9, mac_address: '0c:cc:cc:cc:cc:00' },
      custom_adapters: [
        own,
        { adapter_number: 3, mac_address: '0c:cc:cc:cc:cc:03' },
        { adapter_number: 8, mac_address: '0c:cc:cc:cc:cc:08' },
      ],
    })
    expect(given).toMatchObject({
      mac_address: '0c:cc:cc:cc:cc:00',
      custom_adapters: [
        { adapter_number: 1, adapter_type: 'e1000' },
        { ...own, port_name: 'wan' },
        { adapter_number: 3, mac_address: '0c:cc:cc:cc:cc:03' },
      ],
    })
  },
)

machineTest('a duplicate has the settings of the source, and a MAC address of its own', async () => {
  const project = await newProject()
  const source = await newMachine(project, { name: 'A', ram: 64, adapters: 2, usage: 'notes' })
  const copy = await newMachine(project, { name: 'B' })
  const answer = await post(`${source.path}/duplicate`, { destination_node_id: copy.id })
  expect(answer.status).toBe(201)
  expect(await answer.json()).toMatchObject({
    ...{ node_id: copy.id, name: 'B', ram: 64, adapters: 2, usage: 'notes' },
    mac_address: macOf(project, copy.id),
  })
  expect((await post(`${source.path}/duplicate`, { destination_node_id: source.id })).status).toBe(400)
  expect((await post(`${source.path}/duplicate`, { destination_node_id: crypto.randomUUID() })).status).toBe(404)
  expect((await post(`${source.path}/duplicate`, {})).status).toBe(400)
})

machineTest('links go with their adapters, and a port that is not there is missing', async () => {
  const project = await newProject()
  const { path } = await newMachine(project, { adapters: 2 })
  const { udp_port } = await body<{ udp_port: number }>(post(`${project.v2}/ports/udp`))
  const nio = { type: 'nio_udp', lport: udp_port, rhost: '127.0.0.1', rport: 9 }
  const port = (adapter: number, number = 0) => `${path}/adapters/${adapter}/ports/${number}`
  for (const missing of [port(2), port(0, 1)]) expect((await post(`${missing}/nio`, nio)).status).toBe(404)
  expect((await post(`${port(1)}/nio`, { type: 'nio_nat' })).status).toBe(400)
  const attached = await post(`${port(1)}/nio`, nio)
  expect([attached.status, await attached.json()]).toEqual([201, nio])
  expect((await put(`${port(1)}/nio`, { ...nio, suspend: true })).status).toBe(201)
  expect(await body(send(`${port(1)}/nio`))).toMatchObject({ ...nio, suspend: true })
  const capture = { capture_file_name: 'r1.pcap', data_link_type: 'DLT_EN10MB' }
  expect((await post(`${port(0)}/start_capture`, capture)).status).toBe(409)
  expect((await send(`${port(1)}/pcap`)).status).toBe(409)
  expect(await body(post(`${port(1)}/start_capture`, capture))).toEqual({
    pcap_file_path: expect.stringMatching(/\/r1\.pcap$/),
  })
  expect((await post(`${port(1)}/stop_capture`)).status).toBe(204)
  expect((await put(path, { adapters: 1 })).status).toBe(200)
  expect((await del(`${port(1)}/nio`)).status).toBe(404)
  const { udp_ports } = await body<{ udp_ports: number[] }>(send('/v2/compute/network/ports'))
  expect(udp_ports).not.toContain(udp_port)
})

machineTest('a disk cannot be made larger when there is none, and the request says what is wrong with it', async () => {
  const { path } = await newMachine(await newProject())
  const wrong: readonly (readonly [object, string])[] = [
    [{}, 'drive_name: missing'],
    [{ drive_name: 'hda' }, 'extend: missing'],
    [{ extend: 1 }, 'drive_name: missing'],
    [{ drive_name: 'hde', extend: 1 }, 'drive_name: expected "hda", "hdb", "hdc" or "hdd"'],
    [{ drive_name: 'hda', extend: 0 }, 'extend: expected an integer from 1'],
  ]
  for (const [input, message] of wrong) {
    const answer = await post(`${path}/resize_disk`, input)
    expect(answer.status).toBe(400)
    expect((await body<Fault>(answer)).message).toContain(message)
  }
  expect((await post(`${path}/resize_disk`, { drive_name: 'hda', extend: 1 })).status).toBe(409)
  const missing = path.replace(/[^/]+$/, crypto.randomUUID())
  expect((await post(`${missing}/resize_disk`, { drive_name: 'hda', extend: 1 })).status).toBe(404)
})

diskTest('a disk is made larger before it was ever used', async () => {
  const project = await newProject()
  const image = `disk-${project.id}.qcow2`
  expect((await post(`${tools}/img`, { path: image, format: 'qcow2', size: 8 })).status).toBe(201)
  const { path } = await newMachine(project, { hda_disk_image: image })
  const answer = await post(`${path}/resize_disk`, { drive_name: 'hda', extend: 1 })
  expect([answer.status, await answer.text()]).toEqual([201, ''])
})

machineTest('a screen and a console are for websockets, of machines that run', async () => {
  const { path } = await newMachine(await newProject(), { console_type: 'vnc' })
  for (const console of ['console/vnc', 'console/ws']) {
    expect((await send(`${path}/${console}`)).status).toBe(404)
    const socket = new WebSocket(`${base.replace('http', 'ws')}${path}/${console}`, ['binary'])
    const [, answer] = (await once(socket, 'unexpected-response')) as [unknown, { statusCode: number }]
    expect([console, answer.statusCode]).toEqual([console, 409])
  }
})

machineTest('the table of states and actions', async () => {
  const project = await newProject()
  const { id, path } = await newMachine(project, tiny)
  const v1 = `${instances(project)}/${id}`
  const rows: readonly (readonly [root: string, action: string, answer: number, state: string])[] = [
    [path, 'stop', 204, 'stopped'],
    [path, 'suspend', 204, 'stopped'],
    [path, 'reload', 204, 'stopped'],
    [path, 'resume', 409, 'stopped'],
    [v1, 'resume', 409, 'stopped'],
    [path, 'start', 200, 'started'],
    [path, 'start', 200, 'started'],
    [path, 'resume', 204, 'started'],
    [path, 'suspend', 204, 'suspended'],
    [path, 'suspend', 204, 'suspended'],
    [path, 'reload', 204, 'suspended'],
    [path, 'resume', 204, 'started'],
    [v1, 'suspend', 204, 'suspended'],
    [v1, 'start', 200, 'started'],
    [v1, 'reload', 204, 'started'],
    [v1, 'stop', 204, 'stopped'],
  ]
  for (const [root, action, answer, state] of rows) {
    expect([action, (await post(`${root}/${action}`)).status]).toEqual([action, answer])
    expect([action, (await read(path)).status, (await read(v1)).status]).toEqual([action, state, state])
  }
})

machineTest('a machine that runs is linked live, shown on the feed of v1, and ended by a delete', async () => {
  const project = await newProject()
  const { id, path } = await newMachine(project, tiny)
  const feed = await openFeed(`${project.v1}/notifications`)
  const answer = await post(`${instances(project)}/${id}/start`)
  expect([answer.status, await answer.json()]).toMatchObject([
    200,
    { vm_id: id, status: 'started', command_line: expect.stringMatching(/qemu-system-x86_64 .*-m 16/) },
  ])
  expect(await feed.next()).toMatchObject({ action: 'vm.started', event: { vm_id: id, status: 'started', ram: 16 } })
  const { udp_port } = await body<{ udp_port: number }>(post(`${project.v2}/ports/udp`))
  const nio = { type: 'nio_udp', lport: udp_port, rhost: '127.0.0.1', rport: 9 }
  const port = `${instances(project)}/${id}/adapters/0/ports/0/nio`
  expect((await post(port, nio)).status).toBe(201)
  expect((await del(port)).status).toBe(204)
  expect((await put(path, { console_type: 'none' })).status).toBe(409)
  expect((await post(`${path}/resize_disk`, { drive_name: 'hda', extend: 1 })).status).toBe(409)
  const other = await newMachine(project)
  expect((await post(`${other.path}/duplicate`, { destination_node_id: id })).status).toBe(409)
  expect((await del(path)).status).toBe(204)
  expect(await feed.next()).toMatchObject({ action: 'vm.stopped', event: { vm_id: id, status: 'stopped' } })
})

for (const root of ['/v1/machine-emulator', tools]) {
  machineTest(`${root}: the emulators of the host are listed, all or by platform`, async () => {
    const list = async (query = '') => {
      const found = await body<{ path: string }[]>(send(`${root}/binaries${query}`))
      return found.map(({ path }) => path.replace(/.*\//, ''))
    }
    const all = await body<object[]>(send(`${root}/binaries`))
    for (const one of all) {
      expect(one).toEqual({ path: expect.stringMatching(/^\/.*qemu/), version: expect.stringMatching(/^\d/) })
    }
    expect(await list()).toEqual(expect.arrayContaining(['qemu-system-i386', 'qemu-system-x86_64']))
    expect(await list('?archs=')).toHaveLength(all.length)
    expect(await list('?archs=i386')).toEqual(['qemu-system-i386'])
    const both = await list('?archs=x86_64,i386')
    expect(both).toEqual(expect.arrayContaining(['qemu-system-i386', 'qemu-system-x86_64']))
    expect(await list('?archs=x86_64&archs=i386')).toEqual(both)
    const answer = await send(`${root}/binaries?archs=pdp11`)
    expect(answer.status).toBe(400)
    expect((await body<Fault>(answer)).message).toMatch(/^archs\[0\]: expected .*, got "pdp11"$/)
  })

  machineTest(`${root}: a GET with a body, as older clients send it, is filtered by it`, async () => {
    for (const path of [`${root}/binaries`, '/v2/computes/local/machine-emulator/binaries']) {
      const ask = async (text: string, headers: Record<string, string | number>) => {
        const sent = request(base + path, { headers }).end(text)
        const [answer] = (await once(sent, 'response')) as [import('node:http').IncomingMessage]
        const parts: Buffer[] = []
        for await (const part of answer) parts.push(part as Buffer)
        return { status: answer.statusCode, said: JSON.parse(Buffer.concat(parts).toString()) as unknown }
      }
      const filter = JSON.stringify({ archs: ['i386'] })
      const only = { status: 200, said: [{ path: expect.stringMatching(/qemu-system-i386$/) }] }
      expect(await ask(filter, { 'content-length': filter.length })).toMatchObject(only)
      expect(await ask(filter, { 'transfer-encoding': 'chunked' })).toMatchObject(only)
      const wrong = JSON.stringify({ archs: ['pdp11'] })
      expect(await ask(wrong, { 'content-length': wrong.length })).toMatchObject({ status: 400 })
    }
  })

  test(`${root}: the accelerated platforms are listed`, async () => {
    const { kvm } = await body<{ kvm: string[] }>(send(`${root}/capabilities`))
    if (kvm.length > 0 && process.arch === 'x64') expect(kvm).toEqual(['x86_64', 'i386'])
    expect(Array.isArray(kvm)).toBe(true)
  })
}

machineTest('a MAC address that no adapter can have is refused when it is new, and a stored one stays', async () => {
  const project = await newProject()
  const bad = '01:00:5e:00:00:01'
  const node = { ...tiny, name: 'm', platform: 'x86_64' }
  for (const mac_address of [bad, '00:00:00:00:00:00', 'ff:ff:ff:ff:ff:ff']) {
    const answer = await post(nodes(project), { ...node, mac_address })
    expect([answer.status, (await body<Fault>(answer)).message]).toEqual([
      400,
      expect.stringMatching(/^mac_address: .*such as 0c:12/),
    ])
  }
  const stored = await body<Machine>(post(`${nodes(project)}?addresses=stored`, { ...node, mac_address: bad }))
  const at = `${nodes(project)}/${stored.node_id}`
  // What a client was shown it may send back, and an older controller creates it again.
  expect((await put(at, { mac_address: bad, ram: 32 })).status).toBe(200)
  expect((await post(nodes(project), { ...node, node_id: stored.node_id, mac_address: bad })).status).toBe(201)
  const twice = [0, 1].map((adapter_number) => ({ adapter_number, mac_address: '0c:aa:aa:aa:00:01' }))
  expect((await put(at, { mac_address: '', adapters: 2, custom_adapters: twice })).status).toBe(400)
  expect((await put(at, { mac_address: '33:33:00:00:00:01' })).status).toBe(400)
  expect(await read(at)).toMatchObject({ mac_address: bad, adapters: 1, custom_adapters: [] })
  await del(project.v2)
})

machineTest('a node has the usage of its template, and its ports the MAC addresses of its adapters', async () => {
  const name = `machine ${crypto.randomUUID().slice(0, 8)}`
  const lab = `/v2/projects/${(await body<{ project_id: string }>(post('/v2/projects', { name }))).project_id}`
  const template = {
    ...{ name, template_type: 'machine-emulator', usage: 'Log in as root', ...tiny, platform: 'x86_64', adapters: 3 },
    ...{ mac_address: '0c:12:34:56:78:ff', custom_adapters: [{ adapter_number: 1, mac_address: '0c:00:00:00:00:07' }] },
  }
  expect((await post('/v2/templates', template)).status).toBe(201)
  const made = await post(`${lab}/templates/${encodeURIComponent(name)}`, { x: 0, y: 0 })
  const node = await body<{ properties: object; ports: { mac_address: string; adapter_type: string }[] }>(made)
  expect([made.status, node.properties]).toMatchObject([201, { usage: 'Log in as root' }])
  expect(node.ports.map((it) => [it.mac_address, it.adapter_type])).toEqual([
    ['0c:12:34:56:78:ff', 'e1000'],
    ['0c:00:00:00:00:07', 'e1000'],
    ['0c:12:34:56:79:01', 'e1000'],
  ])
  await del(`/v2/templates/${encodeURIComponent(name)}`)
  await del(lab)
})
