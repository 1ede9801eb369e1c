import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { reach } from '../../runtime/node/drivers/dynamips/ready.ts'
import type { DynamipsNode } from '../../src/model/kinds/dynamips.ts'
import { portsOfRouter } from '../../src/model/kinds/dynamips-hardware.ts'
import { bridging, echoing, idling, ring } from '../stand-in/mips/programs.ts'
import { dynamipsIn, hex, niceDynamips } from '../support/dynamips.ts'
import { IouConsole } from '../support/iou.ts'
import { peer } from '../support/lan.ts'
import { hangMs } from '../support/limits.ts'
import { collect, holds } from '../support/pcap.ts'
import { freePorts } from '../support/ports.ts'
import { requireProgram } from '../support/require.ts'
import { TestService } from '../support/service.ts'
import { openSocketConsole } from '../support/socket-console.ts'
import { describeWith } from '../support/test-with.ts'

const idlepc = hex(ring[3] ?? 0)
const programs = {
  'idle.image': idling,
  'bridge.image': bridging,
  ...Object.fromEntries((['c7200', 'c3600', 'c3725'] as const).map((it) => [`${it}.image`, echoing(it)])),
}

const dynamips = requireProgram('dynamips')
let service: TestService

beforeAll(async () => {
  if (dynamips.skip) return
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-dynamips-'))
  service = await TestService.startForAll({ 'dynamips.path': await niceDynamips(directory) })
  await mkdir(join(service.data, 'images/dynamips'), { recursive: true })
  for (const [name, program] of Object.entries(programs))
    await writeFile(join(service.data, 'images/dynamips', name), program)
  return async () => {
    await service.close()
    await rm(directory, { recursive: true })
  }
})

/** The service, with a compute project of the test. */
async function start() {
  onTestFinished(async () => {
    if (!service.isRunning) await service.restart()
    for (const all of ['/v2/projects', '/v2/compute/projects'])
      for (const { project_id } of await service.call<{ project_id: string }[]>('GET', all))
        await service.call('DELETE', `${all}/${project_id}`)
  })
  const { project_id } = await service.call('POST', '/v2/compute/projects', { name: 'lab' })
  const nodes = `/v2/compute/projects/${project_id}/dynamips/nodes`
  return {
    service,
    view: (at: string) => service.call<DynamipsNode>('GET', at),
    /** A router; its path. */
    async router(input: Record<string, unknown> = {}): Promise<string> {
      const wanted = { name: 'R1', platform: 'c7200', image: 'idle.image', ram: 64, idlepc, ...input }
      return `${nodes}/${(await service.call('POST', nodes, wanted)).node_id}`
    },
  }
}

/** Commands for the dynamips of a router that runs. */
async function commandsOf({ node_directory: directory, command_line }: DynamipsNode) {
  const port = Number(/:(\d+)$/.exec(command_line)?.[1])
  const client = await reach({ directory, port, ms: hangMs, signal: new AbortController().signal })
  onTestFinished(() => client.close())
  return (command: string, ...values: (string | number)[]) => client.run(command, values, { ms: hangMs })
}

const frame = (text: string) =>
  Buffer.concat([Buffer.from('ffffffffffff02000000000188b5', 'hex'), Buffer.from(text.padEnd(60))])

describeWith(dynamips)('a router', () => {
  test.for(['c7200', 'c3600', 'c3725'] as const)('has a console by telnet and websocket: %s', async (platform) => {
    const { service, router, view } = await start()
    const at = await router({ platform, image: `${platform}.image`, idlepc: null })
    expect(await service.call('POST', `${at}/start`)).toMatchObject({ status: 'started', console_type: 'telnet' })
    const console = await IouConsole.connect((await view(at)).console ?? 0)
    await console.expect('echo ready')
    console.send('by telnet\r\n')
    await console.expect('by telnet\r')
    const socket = await openSocketConsole(service, at)
    // It gets what was shown before, and the Enter of a script is that of a terminal.
    await socket.expect('by telnet\r')
    socket.socket.send('by websocket\n')
    await console.expect('by websocket\r')
    expect(await (await service.fetch(`${at}/console/log`)).text()).toContain('by websocket')
    await service.call('POST', `${at}/reload`)
    await console.expect('echo ready')
    await service.call('POST', `${at}/stop`)
    expect(dynamipsIn(service.data)).toEqual([])
  })

  test('goes on with its console when the service is killed', async () => {
    const { service, router, view } = await start()
    const at = await router({ image: 'c7200.image', idlepc: null })
    await service.call('POST', `${at}/start`)
    const before = await view(at)
    const console = await IouConsole.connect(before.console ?? 0)
    await console.expect('echo ready')
    await service.kill('SIGKILL')
    console.send('alone')
    await console.expect('alone')
    await service.restart()
    expect(await view(at)).toEqual(before)
    const socket = await openSocketConsole(service, at)
    await socket.expect('alone')
    console.send('again')
    await socket.expect('again')
    await service.call('POST', `${at}/stop`)
    await service.call('POST', `${at}/start`)
    await (await IouConsole.connect(before.console ?? 0)).expect('echo ready')
  })

  test('passes frames through its ports, captured and impaired, while links come and go', async () => {
    const { service, router, view } = await start()
    const at = await router({ platform: 'c3725', image: 'bridge.image', idlepc: null })
    const port = (number: number, adapter = 0) => `${at}/adapters/${adapter}/ports/${number}`
    await service.call('POST', `${at}/start`)
    const run = await commandsOf(await view(at))
    const bound = async () => (await run('vm slot_nio_bindings', 'router', 0)).lines
    expect(await bound()).toEqual([])

    // Links that are made while it runs: the router sees a cable.
    const first = freePorts(4)
    const ends = await Promise.all([peer(first + 2, first), peer(first + 3, first + 1)])
    const nioOf = (index: number) => ({
      ...{ type: 'nio_udp', lport: first + index, rhost: '127.0.0.1', rport: first + 2 + index },
    })
    for (const index of [0, 1]) await service.call('POST', `${port(index)}/nio`, nioOf(index))
    expect(await bound()).toEqual(['1: nio_0_1', '0: nio_0_0'])

    // A suspended link is a cable that is pulled out.
    await service.call('PUT', `${port(1)}/nio`, { ...nioOf(1), suspend: true })
    expect(await bound()).toEqual(['0: nio_0_0'])
    await service.call('PUT', `${port(1)}/nio`, { ...nioOf(1), suspend: false })

    const { pcap_file_path } = await service.call<{ pcap_file_path: string }>('POST', `${port(0)}/start_capture`, {
      capture_file_name: 'first.pcap',
    })
    const stream = collect(await service.fetch(`${port(1)}/capture/stream`, { method: 'POST' }))
    await ends[0].send(frame('one'))
    expect(await ends[1].next()).toBe(String(frame('one')))
    await ends[1].send(frame('two'))
    expect(await ends[0].next()).toBe(String(frame('two')))
    const { records, linkType } = await holds(pcap_file_path, 2)
    expect([linkType, ...records.map((it) => String(it.frame))]).toEqual([
      1,
      String(frame('one')),
      String(frame('two')),
    ])
    expect((await stream.holds(2)).records.map((it) => String(it.frame))).toEqual(records.map((it) => String(it.frame)))

    // A filter of the link, and one frame that it drops.
    await service.call('PUT', `${port(1)}/nio`, { ...nioOf(1), filters: { bpf: ['ether[14:2] = 0x6e6f'] } })
    await ends[0].send(frame('no'))
    await ends[0].send(frame('yes'))
    expect(await ends[1].next()).toBe(String(frame('yes')))
  })

  test.for([
    ['c7200', { slot0: 'C7200-IO-2FE', slot1: 'PA-FE-TX', slot2: 'PA-2FE-TX', slot3: 'PA-GE', slot4: 'PA-4E' }],
    ['c7200', { slot0: 'C7200-IO-GE-E', slot1: 'PA-8E', slot2: 'PA-4T+', slot3: 'PA-8T', slot4: 'PA-POS-OC3' }],
    [
      'c3600',
      { chassis: '3660', slot1: 'NM-1E', slot2: 'NM-4E', slot3: 'NM-1FE-TX', slot4: 'NM-16ESW', slot5: 'NM-4T' },
    ],
    ['c2691', { slot1: 'NM-16ESW', wic0: 'WIC-1T', wic1: 'WIC-2T', wic2: 'WIC-1T' }],
    ['c3745', { slot1: 'NM-1FE-TX', slot2: 'NM-4T', slot3: 'NM-16ESW', wic0: 'WIC-2T', wic2: 'WIC-2T' }],
  ] as const)('has a link at every port of its cards: %s, %o', async ([platform, cards]) => {
    const { service, router, view } = await start()
    const at = await router({ platform, ...cards })
    await service.call('POST', `${at}/start`)
    const node = await view(at)
    const run = await commandsOf(node)
    const ports = portsOfRouter(node)
    expect(ports.length).toBeGreaterThan(8)
    for (const { adapter, port } of ports) {
      await run('vm slot_add_nio_binding', 'router', adapter, port, `nio_${adapter}_${port}`)
      await run('vm slot_enable_nio', 'router', adapter, port)
    }
    await service.call('POST', `${at}/reload`)
    expect(await view(at)).toMatchObject({ status: 'started' })
  })

  test('of a lab has the ports of its cards, links of one compute, and serial lines', async () => {
    const { service } = await start()
    const { project_id } = await service.call('POST', '/v2/projects', { name: 'routers' })
    const lab = `/v2/projects/${project_id}`
    type Node = { node_id: string; properties: DynamipsNode; ports: { name: string; link_type: string }[] }
    const node = (name: string) =>
      service.call<Node>('POST', `${lab}/nodes`, {
        ...{ name, node_type: 'dynamips', compute_id: 'local' },
        properties: { platform: 'c3725', image: 'bridge.image', ram: 64, slot1: 'NM-4T', wic0: 'WIC-2T' },
      })
    const [one, two] = [await node('R1'), await node('R2')]
    expect(one.ports.map(({ name }) => name)).toEqual([
      ...['FastEthernet0/0', 'FastEthernet0/1', 'Serial1/0', 'Serial1/1', 'Serial1/2', 'Serial1/3'],
      ...['Serial0/0', 'Serial0/1'],
    ])
    const link = (...ends: [node: Node, adapter: number, port: number][]) =>
      service.fetch(`${lab}/links`, {
        method: 'POST',
        body: JSON.stringify({
          nodes: ends.map(([{ node_id }, adapter_number, port_number]) => ({ node_id, adapter_number, port_number })),
        }),
      })
    expect((await link([one, 0, 0], [two, 1, 0])).status).toBe(400)
    for (const ends of [
      [0, 0],
      [0, 16],
      [1, 3],
    ] as const)
      expect((await link([one, ...ends], [two, ...ends])).status).toBe(201)
    await service.call('POST', `${lab}/nodes/start`)
    const at = ({ node_id }: Node) => `/v2/compute/projects/${project_id}/dynamips/nodes/${node_id}`
    const view = (of: Node) => service.call<DynamipsNode>('GET', at(of))
    await vi.waitFor(async () => expect((await view(two)).status).toBe('started'), hangMs)
    const run = await commandsOf(await view(one))
    expect((await run('vm slot_nio_bindings', 'router', 0)).lines).toEqual(['0: nio_0_0', '0: nio_0_16'])
    expect((await run('vm slot_nio_bindings', 'router', 1)).lines).toEqual(['3: nio_1_3'])

    // Frames from a peer through both routers, which send what one port receives out of the other, and the direct link between them.
    const first = freePorts(4)
    const ends = await Promise.all([peer(first + 2, first), peer(first + 3, first + 1)])
    for (const [index, of] of [one, two].entries()) {
      const nio = { type: 'nio_udp', lport: first + index, rhost: '127.0.0.1', rport: first + 2 + index }
      await service.call('POST', `${at(of)}/adapters/0/ports/1/nio`, nio)
    }
    // A router that started a moment ago may not forward yet.
    const arrived = ends[1].next()
    const sending = setInterval(() => void ends[0].send(frame('across')), 200)
    expect(await arrived.finally(() => clearInterval(sending))).toBe(String(frame('across')))
  })

  test('has the configurations of a client in its NVRAM, and shows those that it has', async () => {
    const { service, router, view } = await start()
    const at = await router({ name: 'R9', startup_config_content: 'hostname %h\n!\nend\n' })
    const configs = () => service.call('GET', `${at}/configs`)
    expect(await configs()).toEqual({ startup_config_content: 'hostname R9\n!\nend\n' })
    await service.call('PUT', at, { name: 'R8' })
    await service.call('POST', `${at}/start`)
    expect(await configs()).toEqual({ startup_config_content: 'hostname R8\n!\nend\n' })
    const run = await commandsOf(await view(at))
    // As the router does it: `copy running-config startup-config`.
    const stored = Buffer.from('hostname stored\nend\n').toString('base64')
    await run('vm push_config', 'router', stored, '(keep)')
    expect(await configs()).toEqual({ startup_config_content: 'hostname stored\nend\n' })
    await service.call('POST', `${at}/stop`)
    const file = join((await view(at)).node_directory, 'startup-config.cfg')
    expect(await readFile(file, 'utf8')).toBe('hostname stored\nend\n')
    await service.call('PUT', at, { private_config_content: '! a key\nend\n' })
    await service.call('POST', `${at}/start`)
    const both = { startup_config_content: 'hostname stored\nend\n', private_config_content: '! a key\nend\n' }
    expect(await configs()).toEqual(both)
    await service.call('PUT', at, { startup_config_content: 'hostname live\nend\n' })
    expect(await configs()).toEqual({ ...both, startup_config_content: 'hostname live\nend\n' })
  })

  test('has the configurations of a project that GNS3 made', async () => {
    const { service, router, view } = await start()
    const at = await router()
    const configs = join((await view(at)).node_directory, 'configs')
    await mkdir(configs)
    await writeFile(join(configs, 'i7_startup-config.cfg'), 'hostname imported\nend\n')
    const imported = { startup_config_content: 'hostname imported\nend\n' }
    expect(await service.call('GET', `${at}/configs`)).toEqual(imported)
    await service.call('POST', `${at}/start`)
    expect(await service.call('GET', `${at}/configs`)).toEqual(imported)
  })
})
