import { createHash, randomUUID } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { KeeperClient } from '../../runtime/node/keeper/client/client.ts'
import type { World } from '../stand-in/virtualbox/world.ts'
import { freshDirectory } from '../support/directory.ts'
import { VmLab } from '../support/hypervisor.ts'
import { reserve } from '../support/lab.ts'
import { type Peer, peer } from '../support/lan.ts'
import { hangMs } from '../support/limits.ts'
import { TcpClient } from '../support/tcp-client.ts'
import { virtualBoxWorld } from '../support/virtualbox.ts'

/** VirtualBox itself cannot be had here: these nodes are VMs of a stand-in that takes VBoxManage's commands as it does. */
const soon = { timeout: hangMs, interval: 50 }

async function labOf(): Promise<{ lab: VmLab; world: World }> {
  const { world, path } = await virtualBoxWorld(await freshDirectory())
  onTestFinished(() => world.end())
  const lab = await VmLab.create({ 'hypervisor.driver': 'virtualbox', 'hypervisor.vboxmanage_path': path })
  return { lab, world }
}

/** What the user has of a VM: its settings but for the times of its runs, and its files. */
async function had(world: World, uuid: string) {
  const { pid: _, lockedUntil: __, state: ___, ...settings } = world.machine(uuid)
  const directory = dirname(settings.file)
  const files = (await readdir(directory)).filter((name) => name.endsWith('.vdi')).sort()
  const sums = files.map(async (name) =>
    createHash('sha256')
      .update(await readFile(join(directory, name)))
      .digest('hex'),
  )
  return { settings, files, sums: await Promise.all(sums) }
}

/** A link of adapter 0 to a socket of ours. */
async function linked({ service, project }: VmLab, node: string): Promise<Peer> {
  const [lport, rport] = [await reserve(service, project), await reserve(service, project)]
  const other = await peer(rport, lport)
  await service.call('POST', `${node}/adapters/0/ports/0/nio`, { type: 'nio_udp', lport, rhost: '127.0.0.1', rport })
  return other
}

const request = Buffer.concat([Buffer.alloc(6, 0xff), Buffer.from('02000000000188b5', 'hex'), Buffer.alloc(46, 'q')])

test('a running VM cannot be in a snapshot: the answer names it, and it keeps running', async () => {
  const { lab, world } = await labOf()
  world.add('Router')
  const node = await lab.node('Router', { headless: true })
  const keep = () => lab.answer('POST', `${lab.project}/snapshots/${randomUUID()}`)
  await lab.post(node, 'start')
  expect(await keep()).toEqual([409, expect.stringContaining('Router (its hypervisor has its disks and its memory)')])
  expect((await lab.get(node)).status).toBe('started')
  await lab.post(node, 'stop')
  expect((await keep())[0]).toBe(201)
})

test('a VM of VirtualBox is used as a node, and has its own settings afterwards', async () => {
  const { lab, world } = await labOf()
  const { service } = lab
  const { uuid } = world.add('Router', { nics: { 2: { attachment: 'nat' } } })
  const before = await had(world, uuid)
  const node = await lab.node('Router', { adapters: 2, headless: true, ram: 256 })
  const taken = { type: 'nio_udp', lport: await reserve(service, lab.project), rhost: '127.0.0.1', rport: 9 }
  expect(await lab.answer('POST', `${node}/adapters/1/ports/0/nio`, taken)).toEqual([
    409,
    expect.stringContaining('use_any_adapter'),
  ])
  const first = await linked(lab, node)
  await lab.post(node, 'start')
  expect(await first.next()).toContain('hello from Router/0')
  await first.send(request)
  expect((await first.holds(1)).shift()?.subarray(14)).toEqual(request.subarray(14))
  const console = await TcpClient.connect((await lab.get(node)).console)
  await console.shows('Router ready')
  expect(world.machine(uuid)).toMatchObject({ memory: 256, state: 'running' })

  await service.call('DELETE', `${node}/adapters/0/ports/0/nio`)
  expect(world.machine(uuid).nics[0]).toMatchObject({ cable: false })
  const second = await linked(lab, node)
  expect(await second.next()).toContain('hello from Router/0')
  await lab.post(node, 'suspend', 'resume', 'reload')
  expect((await lab.get(node)).status).toBe('started')

  await service.kill('SIGKILL')
  console.socket.write('still there\r')
  await console.shows('still there')
  await second.send(request)
  await second.holds(1)
  await service.restart()
  await expect.poll(() => lab.get(node), soon).toMatchObject({ status: 'started', status_reason: null })
  console.socket.write('poweroff\r')
  await expect.poll(() => lab.get(node), soon).toMatchObject({ status: 'stopped', status_reason: null })
  await expect.poll(() => had(world, uuid), soon).toEqual(before)

  await lab.post(node, 'start')
  const keeper = await KeeperClient.connect(service.data)
  keeper.disconnect()
  process.kill(keeper.pid, 'SIGKILL')
  const died = { status: 'stopped', status_reason: 'The process that holds the nodes died' }
  await expect.poll(() => lab.get(node), soon).toMatchObject(died)
  await expect.poll(() => world.machine(uuid).state, soon).toBe('poweroff')
  await service.call('DELETE', node)
  await expect.poll(() => had(world, uuid), soon).toEqual(before)
})

test('a clone lives as long as its node, and a start that fails leaves nothing running', async () => {
  const { lab, world } = await labOf()
  const { service, project } = lab
  const { uuid } = world.add('Router')
  const node = await lab.node('Router', { name: 'one', linked_clone: true, adapters: 1 })
  const before = await had(world, uuid)
  const names = () => world.state.machines.map(({ name }) => name)
  await lab.post(node, 'start')
  await lab.post(project, 'close')
  expect(names()).toEqual(['Router'])
  await service.call('POST', '/v2/compute/projects', { name: 'vms', project_id: lab.id })
  await linked(lab, node)
  expect(names()).toEqual(['Router', 'one'])
  await lab.put(node, { name: 'two', enable_remote_console: true })
  expect(names()).toEqual(['Router', 'two'])
  expect(await lab.answer('POST', `${node}/start`)).toEqual([409, expect.stringContaining('extension pack VNC')])
  expect(await lab.get(node)).toMatchObject({ status: 'stopped', status_reason: expect.stringContaining('pack VNC') })
  await lab.put(node, { enable_remote_console: false })

  // Somebody else's run is not ours to end.
  const own = await lab.node('Router')
  world.alter((state) => {
    for (const machine of state.machines) if (machine.uuid === uuid) machine.state = 'running'
  })
  expect(await lab.answer('POST', `${own}/start`)).toEqual([409, expect.stringContaining('outside Patchbay')])
  expect(world.machine(uuid).state).toBe('running')
  await service.call('DELETE', own)
  expect(world.machine(uuid).state).toBe('running')

  // Two nodes may have a VM when the project of one was closed: only one of them runs it.
  world.alter((state) => {
    for (const machine of state.machines) if (machine.uuid === uuid) machine.state = 'poweroff'
  })
  const stayed = await VmLab.on(service)
  const first = await stayed.node('Router', { headless: true })
  await lab.post(stayed.project, 'close')
  const then = await lab.node('Router', { headless: true })
  await lab.post(then, 'start')
  await service.call('POST', '/v2/compute/projects', { name: 'vms', project_id: stayed.id })
  expect(await lab.answer('POST', `${first}/start`)).toEqual([
    409,
    expect.stringContaining('is already running the VM Router'),
  ])
  await service.call('DELETE', first)
  expect(world.machine(uuid).state).toBe('running')
  await service.call('DELETE', then)

  await lab.post(node, 'start')
  const { node_directory } = await lab.get(node)
  await service.call('DELETE', node)
  await expect(stat(node_directory ?? '')).rejects.toMatchObject({ code: 'ENOENT' })
  expect(names()).toEqual(['Router'])
  await expect.poll(() => had(world, uuid), soon).toEqual(before)
})
