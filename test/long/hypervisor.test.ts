import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFile, stat } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { macOfInterface } from '../../runtime/node/drivers/hypervisor/libvirt/interfaces.ts'
import { KeeperClient } from '../../runtime/node/keeper/client/client.ts'
import { ideDisk, pcDefinition } from '../node/drivers/hypervisor/libvirt-definitions.ts'
import { countOf, LibvirtLab, later, sharedLibvirt } from '../node/drivers/hypervisor/libvirt-lab.ts'
import { counting, obedient } from '../node/drivers/qemu/boot-sectors.ts'
import { requireGuest } from '../support/guest/files.ts'
import { link, shellOf } from '../support/guest/lab.ts'
import { linkUp, ping } from '../support/guest/network.ts'
import { guestDefinition, VmLab } from '../support/hypervisor.ts'
import { createPc, openConsole, reserve, start } from '../support/lab.ts'
import { requireLibvirt } from '../support/libvirt.ts'
import { hangMs } from '../support/limits.ts'
import { TestService } from '../support/service.ts'
import { TcpClient } from '../support/tcp-client.ts'
import { describeWith, testWith } from '../support/test-with.ts'

const libvirtd = requireLibvirt()
const guest = libvirtd.skip ? libvirtd : await requireGuest()
const libvirt = sharedLibvirt()
const soon = { timeout: hangMs, interval: 50 }

/** One service for all of them: what is killed in a test is there again in the next one. */
let shared: TestService | undefined
beforeAll(async () => {
  if (libvirtd.skip) return
  shared = await TestService.startForAll({
    'hypervisor.libvirt_uri': libvirt().uri,
    'pc.engine': 'embedded',
  })
})
afterAll(() => shared?.close())

async function labOf(input = {}): Promise<VmLab> {
  if (shared === undefined) throw new Error('the service was not started')
  return VmLab.on(shared, input)
}

/** A VM of the user that boots from this sector. */
async function vmOf(sector: Buffer, devices = ''): Promise<LibvirtLab & { readonly disk: string }> {
  const vm = await LibvirtLab.create(libvirt())
  const disk = await vm.disk(sector)
  await libvirt().define(pcDefinition({ ...vm, devices: ideDisk(disk) + devices }))
  return Object.assign(vm, { disk })
}

const stateOf = async (name: string) => (await libvirt().virsh('domstate', name)).trim()
const sumOf = async (file: string) =>
  createHash('sha256')
    .update(await readFile(file))
    .digest('hex')
const count = ({ console }: { console: number }) => countOf({ serialPort: console } as Parameters<typeof countOf>[0])

/** Of the keeper of this data directory. */
async function keeperPid(data: string): Promise<number> {
  const keeper = await KeeperClient.connect(data)
  keeper.disconnect()
  return keeper.pid
}

describeWith(libvirtd)('a node that is a VM of libvirt', () => {
  testWith(guest)('is one of the lab: linked, paused, and there whoever is killed', async () => {
    await libvirt().define(await guestDefinition(libvirt(), 'guest', 'pb.ip=10.0.0.9/24'))
    const before = await libvirt().virsh('dumpxml', '--inactive', 'guest')
    const lab = await labOf()
    const { service, project } = lab
    const node = await lab.node('guest', { adapters: 1, adapter_type: 'Paravirtualized Network (virtio-net)' })
    const pc = await createPc(service, project, 1)
    await link(service, project, [node, 0], [pc, 0])
    await start(service, node, pc)
    const shell = await shellOf(service, node)
    await linkUp(shell)
    expect((await ping(shell, '10.0.0.1', 2)).received).toBe(2)
    const console = await openConsole(service, pc)
    console.type('ping 10.0.0.9 -c 1\r')
    await console.expect('10.0.0.9 icmp_seq=1 ttl=64')

    await lab.post(node, 'suspend', 'suspend')
    expect((await lab.get(node)).status).toBe('suspended')
    console.type('ping 10.0.0.9 -c 1\r')
    await console.expect('timeout')
    await lab.post(node, 'resume')

    // The cable is pulled and put in again while the guest looks.
    await service.call('DELETE', `${node}/adapters/0/ports/0/nio`)
    await shell.until('[ "$(cat /sys/class/net/eth0/carrier)" = 0 ]')
    await link(service, project, [node, 0], [pc, 0])
    await linkUp(shell)

    shell.send('ping -i 0.2 -c 20 10.0.0.1; echo over\n')
    await shell.shows('seq=3')
    await libvirt().kill('SIGKILL')
    const down = [409, expect.stringContaining('No libvirt answers')]
    expect(await lab.answer('POST', `${node}/stop`)).toEqual(down)
    expect(await lab.answer('DELETE', node)).toEqual(down)
    expect(await lab.answer('GET', '/v1/hypervisor/vms')).toEqual(down)
    expect(await lab.answer('POST', `${project}/hypervisor/nodes`, { name: 'x', vmname: 'guest' })).toEqual(down)
    expect((await lab.get(node)).status).toBe('started')
    await service.kill('SIGKILL')
    await service.restart()
    expect(await shell.shows('over\r\n')).toContain('20 packets transmitted, 20 packets received')
    expect(await lab.get(node)).toMatchObject({
      status: 'started',
      status_reason: expect.stringContaining('cannot be controlled'),
    })
    await libvirt().restart()
    await expect.poll(() => lab.get(node), soon).toMatchObject({ status: 'started', status_reason: null })

    await libvirt().virsh('suspend', 'guest')
    await expect.poll(async () => (await lab.get(node)).status, soon).toBe('suspended')
    await lab.post(node, 'start')
    expect((await ping(shell, '10.0.0.1', 1)).received).toBe(1)
    await libvirt().virsh('destroy', 'guest')
    await expect.poll(() => lab.get(node), soon).toMatchObject({ status: 'stopped', status_reason: null })
    await service.call('DELETE', node)
    expect(await libvirt().virsh('dumpxml', '--inactive', 'guest')).toBe(before)
  })

  test('is powered off when the keeper dies, and when its project is closed', async () => {
    const vm = await vmOf(counting)
    const other = await vmOf(counting)
    const before = await vm.definition()
    const lab = await labOf()
    const { service, project } = lab
    const [node, second] = [await lab.node(vm.name, { adapters: 2, ram: 48 }), await lab.node(other.name)]
    await start(service, node, second)
    expect(await count(await lab.get(node))).toBe('a')
    expect(await count(await lab.get(second))).toBe('a')
    expect(await libvirt().virsh('dumpxml', vm.name)).toContain("<memory unit='KiB'>49152</memory>")
    expect(await lab.get(node)).toMatchObject({ ram: 48, node_directory: null })
    // What it was started without it has at its next start.
    expect(await lab.put(second, { enable_remote_console: true })).toMatchObject({ remote_console: null })
    expect(await lab.put(second, { enable_remote_console: false })).toMatchObject({ remote_console: null })
    await lab.post(node, 'reload')
    await (await TcpClient.connect((await lab.get(node)).console)).shows('>')

    process.kill(await keeperPid(service.data), 'SIGKILL')
    for (const it of [node, second]) {
      await expect
        .poll(() => lab.get(it), soon)
        .toMatchObject({
          status: 'stopped',
          status_reason: 'The process that holds the nodes died',
        })
    }
    expect([await stateOf(vm.name), await stateOf(other.name)]).toEqual(['shut off', 'shut off'])

    // Saved by its node, it goes on where it was.
    await lab.put(node, { on_close: 'save_vm_state' })
    await start(service, node)
    expect(await count(await lab.get(node))).toBe('a')
    await lab.post(node, 'stop')
    expect(await libvirt().virsh('list', '--all', '--with-managed-save', '--name')).toContain(vm.name)
    await start(service, node)
    expect(await count(await lab.get(node))).toEqual(later)

    // Somebody else runs the other one: it is not ours to end.
    await libvirt().virsh('start', other.name)
    expect(await lab.answer('POST', `${second}/start`)).toEqual([409, expect.stringContaining('outside Patchbay')])
    expect(await stateOf(other.name)).toBe('running')
    await lab.put(node, { acpi_shutdown: false })
    await lab.post(project, 'close')
    expect([await stateOf(vm.name), await stateOf(other.name)]).toEqual(['shut off', 'running'])
    expect(await vm.definition()).toBe(before)
    await libvirt().virsh('destroy', other.name)
  })

  test('can be a clone, which lives as long as its node', async () => {
    const vm = await vmOf(counting)
    const before = { xml: await vm.definition(), sum: await sumOf(vm.disk) }
    const lab = await labOf()
    const { service, project } = lab
    const names = [`${vm.name}-a`, `${vm.name}-b`]
    const clones = names.map((name) => lab.node(vm.name, { name, linked_clone: true, adapters: 1 }))
    const [a = '', b = ''] = await Promise.all(clones)
    expect((await lab.put(a, { name: `${vm.name}-c` })).vmname).toBe(`${vm.name}-c`)
    await start(service, a)
    expect(await count(await lab.get(a))).toBe('a')
    expect(await lab.answer('PUT', a, { name: 'other' })).toEqual([409, expect.stringContaining('stop the node')])
    expect((await lab.get(a)).vmname).toBe(`${vm.name}-c`)
    for (const root of ['/v1', '/v2/compute']) {
      expect(await service.call('GET', `${root}/hypervisor/vms`)).toContainEqual({ vmname: vm.name, ram: 32 })
      expect(JSON.stringify(await service.call('GET', `${root}/hypervisor/vms`))).not.toContain(`${vm.name}-`)
    }

    // libvirt forgets it while its project is closed; whatever is done first with it then makes it known again.
    await lab.post(project, 'close')
    expect(await libvirt().virsh('list', '--all', '--name')).not.toContain(`${vm.name}-`)
    await service.call('POST', '/v2/compute/projects', { name: 'vms', project_id: lab.id })
    const port = await reserve(service, project)
    const nio = { type: 'nio_udp', lport: port, rhost: '127.0.0.1', rport: port }
    await service.call('POST', `${a}/adapters/0/ports/0/nio`, nio)
    await start(service, a, b)
    for (const it of [a, b]) expect(await count(await lab.get(it))).toBe('a')
    const { node_directory } = await lab.get(a)
    await service.call('DELETE', a)
    await expect(stat(node_directory ?? '')).rejects.toMatchObject({ code: 'ENOENT' })
    await service.call('DELETE', project)
    expect(await libvirt().virsh('list', '--all', '--name')).not.toContain(`${vm.name}-`)
    expect({ xml: await vm.definition(), sum: await sumOf(vm.disk) }).toEqual(before)
  })

  test('shows its screen, obeys its power button and keeps its own adapters', async () => {
    const vm = await vmOf(obedient, "<interface type='user'/>")
    const before = await vm.definition()
    const lab = await labOf()
    const { service, project } = lab
    const node = await lab.node(vm.name, { adapters: 2, enable_remote_console: true, acpi_shutdown: true })
    const port = await reserve(service, project)
    const nio = { type: 'nio_udp', lport: port, rhost: '127.0.0.1', rport: port }
    const ports = `${node}/adapters/0/ports/0/nio`
    expect(await lab.answer('POST', ports, nio)).toEqual([409, expect.stringContaining('use_any_adapter')])
    await lab.put(node, { use_any_adapter: true })
    await service.call('POST', ports, nio)

    const waiting = TcpClient.connect((await lab.get(node)).console).catch(() => undefined)
    await start(service, node)
    await waiting
    const { console, remote_console } = await lab.get(node)
    await (await TcpClient.connect(console)).shows('>')
    await (await TcpClient.connect(remote_console ?? 0)).shows('RFB 003')
    const socket = new WebSocket(`${service.url.replace('http', 'ws')}${node}/console/vnc`)
    const [greeting] = (await once(socket, 'message')) as [Buffer]
    expect(greeting.toString()).toContain('RFB 003')
    socket.terminate()
    await lab.post(node, 'suspend', 'stop')
    expect(await lab.get(node)).toMatchObject({ status: 'stopped', status_reason: null, remote_console })
    expect((await lab.put(node, { enable_remote_console: false })).remote_console).toBeNull()
    expect(await vm.definition()).toBe(before)

    // What cannot be started is told of, and goes on being a node.
    await libvirt().virsh('undefine', vm.name)
    expect(await lab.answer('POST', `${node}/start`)).toEqual([409, expect.stringContaining('no longer has')])
    expect(await lab.get(node)).toMatchObject({
      status: 'stopped',
      status_reason: expect.stringContaining('no longer has'),
    })
    await service.call('DELETE', node)
  })

  test('is ended and removed later when libvirt or the service did not run', async () => {
    const [vm, other, source] = [await vmOf(counting), await vmOf(counting), await vmOf(counting)]
    const [lab, deleted, temporary] = [await labOf(), await labOf(), await labOf({ temporary: true })]
    const { service, project } = lab
    const names = [`${source.name}-a`, `${source.name}-b`] as const
    const node = await lab.node(vm.name, { adapters: 1 })
    const first = await deleted.node(source.name, { name: names[0], linked_clone: true })
    const clone = await temporary.node(source.name, { name: names[1], linked_clone: true })
    const [own, second] = [await temporary.node(other.name), await temporary.node(source.name)]
    const port = await reserve(service, project)
    const nio = { type: 'nio_udp', lport: port, rhost: '127.0.0.1', rport: port }
    await service.call('POST', `${node}/adapters/0/ports/0/nio`, nio)
    await start(service, node, first, clone, own)
    expect(await count(await lab.get(node))).toBe('a')
    // What a clone is an overlay of must not change.
    expect(await lab.answer('POST', `${second}/start`)).toEqual([409, expect.stringContaining('lock')])
    expect((await lab.get(second)).status_reason).toContain('lock')

    const list = () => libvirt().virsh('list', '--all', '--name')
    const carrier = () => libvirt().virsh('domif-getlink', vm.name, macOfInterface(vm.uuid, 0))
    expect(await carrier()).toContain('up')
    await libvirt().kill('SIGKILL')
    await service.call('DELETE', `${node}/adapters/0/ports/0/nio`)
    await service.call('DELETE', deleted.project)
    await libvirt().restart()
    expect(await list()).toContain(names[0])
    await expect.poll(carrier, soon).toContain('down')
    await expect.poll(list, soon).not.toContain(names[0])

    await libvirt().kill('SIGKILL')
    await lab.post(project, 'close')
    await service.kill('SIGKILL')
    await libvirt().restart()
    expect([await stateOf(vm.name), await stateOf(other.name)]).toEqual(['running', 'running'])
    await service.restart()
    await service.call('POST', '/v2/compute/projects', { name: 'vms', project_id: lab.id })
    await start(service, node)
    expect(await count(await lab.get(node))).toBe('a')
    await expect.poll(list, soon).not.toContain(names[1])
    await expect.poll(() => stateOf(other.name), soon).toBe('shut off')
    await service.call('DELETE', node)
    expect(await stateOf(vm.name)).toBe('shut off')
  })
})
