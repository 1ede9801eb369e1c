import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { body, newProject as createProject, del, post, put, send } from '../support/api.ts'
import { openFeed } from '../support/feed.ts'
import { iouImage, type NewRouter, newRouter, uploadIouImage } from '../support/iou-http.ts'
import { collect } from '../support/pcap.ts'
import { requireLibpcap } from '../support/require.ts'
import { runRoutersAlone } from '../support/routers-alone.ts'
import { testWith } from '../support/test-with.ts'

const libpcap = requireLibpcap()

runRoutersAlone()
beforeAll(uploadIouImage)

type Project = Awaited<ReturnType<typeof createProject>>

/** The bridges of linked routers are where those of other services are, too, so none may stay. */
const projects: Project[] = []
afterAll(() => Promise.all(projects.map(({ v2 }) => del(v2))))

async function newProject(): Promise<Project> {
  const project = await createProject()
  projects.push(project)
  return project
}

async function udpNio(project: Project, more: Record<string, unknown> = {}) {
  const { udp_port } = await body<{ udp_port: number }>(post(`${project.v2}/ports/udp`))
  return { type: 'nio_udp', lport: udp_port, rhost: '127.0.0.1', rport: 9, ...more }
}

const portOf = (node: string, adapter: number, port: number) => `${node}/adapters/${adapter}/ports/${port}`
const message = async (answer: Response) => (await body<{ message: string }>(answer)).message

/** A router with something attached to the ports that are named. */
async function linked(project: Project, input: Record<string, unknown>, ...ports: readonly string[]) {
  const router = await newRouter(project, input)
  for (const name of ports) {
    const [adapter = 0, port = 0] = name.split('/').map(Number)
    const answer = await post(`${portOf(router.v2, adapter, port)}/nio`, await udpNio(project))
    expect(answer.status, await answer.text()).toBe(201)
  }
  return router
}

/** The names of the ports to which something is attached. */
async function attached({ v2 }: NewRouter, ...ports: readonly string[]): Promise<string[]> {
  const statuses = await Promise.all(
    ports.map(async (name) => (await send(`${v2}/adapters/${name.replace('/', '/ports/')}/nio`)).status),
  )
  return ports.filter((_, index) => statuses[index] === 200)
}

for (const version of ['v1', 'v2'] as const) {
  test(`${version}: a NIO can be attached to every port of Ethernet and serial adapters, and detached`, async () => {
    const project = await newProject()
    const router = await newRouter(project, { ethernet_adapters: 1, serial_adapters: 1 })
    for (const adapter of [0, 1]) {
      for (const port of [0, 1, 2, 3]) {
        const at = `${portOf(router[version], adapter, port)}/nio`
        const nio = await udpNio(project)
        const answer = await post(at, nio)
        expect([answer.status, await body(answer)]).toEqual([201, nio])
        if (port > 0) {
          expect((await del(at)).status).toBe(204)
          continue
        }
        expect(answer.headers.get('X-ROUTE')).toMatch(/\/adapters\/\{adapter_number\}\/ports\/\{port_number\}\/nio$/)
        const changed = await put(at, { ...nio, filters: { packet_loss: [5] }, suspend: true })
        expect([changed.status, await body(changed)]).toMatchObject([201, { suspend: true }])
        expect(await body(send(at))).toMatchObject({ ...nio, suspend: true, filters: { packet_loss: [5] } })
        expect([(await del(at)).status, (await del(at)).status, (await put(at, nio)).status]).toEqual([204, 404, 404])
      }
    }
    const nio = await udpNio(project)
    for (const [adapter, port, why] of [
      [2, 0, 'adapter_number: the node has no adapter 2, its adapters are numbered from 0 to 1'],
      [0, 4, 'port_number: adapter 0 has no port 4, its ports are numbered from 0 to 3'],
      [1, 16, 'port_number: adapter 1 has no port 16, its ports are numbered from 0 to 3'],
    ] as const) {
      const at = `${portOf(router[version], adapter, port)}/nio`
      for (const answer of [await post(at, nio), await put(at, nio), await del(at)]) {
        expect([answer.status, await message(answer)]).toEqual([404, why])
      }
    }
    expect((await put(router[version], { ethernet_adapters: 0, serial_adapters: 0 })).status).toBe(200)
    const none = await post(`${portOf(router[version], 0, 0)}/nio`, nio)
    expect([none.status, await message(none)]).toEqual([404, 'adapter_number: the node has no adapter 0, it has none'])
  })
}

test('a NIO of another type is refused, and so is a device of Ethernet frames on a serial port', async () => {
  const project = await newProject()
  const { v1 } = await newRouter(project)
  const other = await post(`${portOf(v1, 0, 0)}/nio`, { type: 'nio_nat' })
  expect([other.status, await message(other)]).toEqual([
    400,
    'type: an iou node does not support nio_nat, expected one of nio_udp, nio_generic_ethernet, nio_ethernet, nio_tap',
  ])
  for (const nio of [
    { type: 'nio_generic_ethernet', ethernet_device: 'lo' },
    { type: 'nio_ethernet', ethernet_device: 'lo' },
    { type: 'nio_tap', tap_device: 'pbserial0' },
  ]) {
    const answer = await post(`${portOf(v1, 2, 0)}/nio`, nio)
    expect([answer.status, await message(answer)]).toEqual([400, expect.stringContaining('a serial port has none')])
  }
  expect((await post(`${portOf(v1, 0, 0)}/nio`, { type: 'nio_udp', lport: 0, rhost: 'a', rport: 1 })).status).toBe(400)
})

describe('when the adapters change', () => {
  const all = ['0/0', '1/3', '2/0', '3/1', '4/2']
  const wide = { ethernet_adapters: 2, serial_adapters: 3 }

  test.for([
    ['the same numbers again', { ethernet_adapters: 2, serial_adapters: 3, name: 'R2' }, all],
    ['fewer serial adapters', { serial_adapters: 1 }, ['0/0', '1/3', '2/0']],
    ['more ethernet adapters', { ethernet_adapters: 3 }, ['0/0', '1/3', '3/1', '4/2']],
    ['fewer ethernet adapters', { ethernet_adapters: 1 }, ['0/0', '2/0', '3/1']],
    ['one for the other', { ethernet_adapters: 4, serial_adapters: 1 }, ['0/0', '1/3', '4/2']],
  ] as const)('NIOs stay on ports that still exist: %s', async ([, changes, kept]) => {
    const project = await newProject()
    const router = await linked(project, wide, ...all)
    const feed = await openFeed(`${project.v1}/notifications`)
    expect((await put(router.v1, changes)).status).toBe(200)
    expect(await attached(router, ...all)).toEqual(kept)
    const gone = all.filter((name) => !(kept as readonly string[]).includes(name))
    if (gone.length > 0) {
      const { action, event } = await feed.next()
      expect([action, event.message]).toEqual([
        'log.warning',
        `R1: its adapters have changed, and the NIOs of ${gone.join(', ')} were removed`,
      ])
    }
    feed.close()
  })

  test('a port that now belongs to another adapter has no NIO', async () => {
    const project = await newProject()
    const router = await linked(project, wide, '2/0')
    const at = portOf(router.v2, 2, 0)
    expect((await post(`${at}/start_capture`, { capture_file_name: 'c.pcap' })).status).toBe(200)
    expect((await put(router.v2, { ethernet_adapters: 3 })).status).toBe(200)
    expect((await post(`${at}/nio`, await udpNio(project))).status).toBe(201)
    expect((await post(`${at}/start_capture`, { capture_file_name: 'c.pcap' })).status).toBe(200)
    expect(await body(send(`${at}/nio`))).toMatchObject({ capture: { data_link_type: 'DLT_EN10MB' } })
    expect((await put(router.v2, { ethernet_adapters: 2 })).status).toBe(200)
    expect((await send(`${at}/nio`)).status).toBe(404)
  })

  test('there are at most 16 adapters: more are 400, or 409 with the present ones', async () => {
    const project = await newProject()
    const { v1, v2 } = await newRouter(project, { ethernet_adapters: 12, serial_adapters: 4 })
    const create = (input: object) => ({ name: 'R2', path: iouImage, ...input })
    for (const [status, answer] of [
      [400, await post(`${project.v1}/iou/vms`, create({ ethernet_adapters: 12, serial_adapters: 5 }))],
      [400, await post(`${project.v2}/iou/nodes`, create({ ethernet_adapters: 15 }))],
      [400, await put(v1, { ethernet_adapters: 9, serial_adapters: 8 })],
      [409, await put(v1, { serial_adapters: 5 })],
      [409, await put(v2, { ethernet_adapters: 13 })],
    ] as const) {
      expect(answer.status).toBe(status)
      expect(await message(answer)).toMatch(
        /^ethernet_adapters and serial_adapters: expected at most 16 in all, got \d+ and \d+$/,
      )
    }
    expect(await body(put(v1, { ethernet_adapters: 0, serial_adapters: 16 }))).toMatchObject({ serial_adapters: 16 })
    expect(await body(send(`${project.v2}/iou/nodes`))).toHaveLength(1)
  })
})

describe('captures', () => {
  const serial = ['DLT_C_HDLC', 'DLT_PPP_SERIAL', 'DLT_FRELAY', 'DLT_ATM_RFC1483']
  const capturedIn = async (port: string) =>
    (await body<{ capture: { data_link_type: string } }>(send(`${port}/nio`))).capture

  for (const version of ['v1', 'v2'] as const) {
    test(`${version}: have the link type of the port`, async () => {
      const router = await linked(await newProject(), {}, '0/0', '2/1')
      const [ethernetPort, serialPort] = [portOf(router[version], 0, 0), portOf(router[version], 2, 1)]
      const start = (port: string, data_link_type?: string) =>
        post(`${port}/start_capture`, { capture_file_name: 'c.pcap', ...(data_link_type && { data_link_type }) })
      for (const [port, usual, types] of [
        [ethernetPort, 'DLT_EN10MB', ['DLT_EN10MB']],
        [serialPort, 'DLT_C_HDLC', serial],
      ] as const) {
        for (const type of [undefined, ...types]) {
          const answer = await start(port, type)
          expect([answer.status, Object.keys(await body(answer))]).toEqual([200, ['pcap_file_path']])
          expect(await capturedIn(port)).toMatchObject({ data_link_type: type ?? usual, frames: 0 })
          expect((await start(port, type)).status).toBe(409)
          expect((await post(`${port}/stop_capture`)).status).toBe(204)
        }
      }
      for (const [port, type, expected] of [
        [serialPort, 'DLT_EN10MB', `a serial port has no DLT_EN10MB frames, expected one of ${serial.join(', ')}`],
        [ethernetPort, 'DLT_FRELAY', 'an Ethernet port has no DLT_FRELAY frames, expected DLT_EN10MB'],
      ] as const) {
        const live = await post(`${port}/capture/stream`, { data_link_type: type })
        for (const answer of [await start(port, type), live]) {
          expect([answer.status, await message(answer)]).toEqual([400, `data_link_type: ${expected}`])
        }
      }
      expect((await start(portOf(router[version], 2, 2))).status).toBe(409)
      expect((await start(portOf(router[version], 9, 9), 'DLT_EN10MB')).status).toBe(404)
    })
  }

  test('the headers of streams name the port and the node', async () => {
    const { v2 } = await linked(await newProject(), {}, '0/0', '2/1')
    const streams = []
    for (const [adapter, port, input, linkType] of [
      [0, 0, {}, 1],
      [2, 1, {}, 104],
      [2, 1, { data_link_type: 'DLT_FRELAY' }, 107],
    ] as const) {
      const stream = collect(await post(`${portOf(v2, adapter, port)}/capture/stream`, input))
      expect((await stream.holds(0)).linkType).toBe(linkType)
      streams.push(stream)
    }
    await post(`${portOf(v2, 2, 1)}/start_capture`, { capture_file_name: 'p.pcap', data_link_type: 'DLT_PPP_SERIAL' })
    const file = collect(await send(`${portOf(v2, 2, 1)}/pcap`))
    expect((await file.holds(0)).linkType).toBe(50)
    for (const port of [portOf(v2, 0, 0), portOf(v2, 2, 1)]) expect((await del(`${port}/nio`)).status).toBe(204)
    await Promise.all([...streams, file].map(({ ended }) => ended))
  })
})

testWith(libpcap)('expressions of a serial port are of serial frames, and others are refused', async () => {
  const project = await newProject()
  const { v1, v2 } = await newRouter(project)
  const nio = await udpNio(project)
  const at = `${portOf(v1, 2, 0)}/nio`
  for (const bpf of [['icmp'], ['tcp port 179\nether proto 0x8035', 'DLT_C_HDLC'], ['ip', 'FRELAY']]) {
    expect((await post(at, { ...nio, filters: { bpf } })).status).toBe(201)
    expect((await put(`${portOf(v2, 2, 0)}/nio`, { ...nio, filters: { bpf } })).status).toBe(201)
  }
  for (const [bpf, why] of [
    [
      ['ether host 00:11:22:33:44:55'],
      /^filters\.bpf: ethernet addresses.* at character \d+ .*; frames of this port are read as DLT_C_HDLC$/,
    ],
    [['vlan 3', 'DLT_PPP_SERIAL'], /no VLAN.*; frames of this port are read as DLT_PPP_SERIAL$/],
    [['icmp', 'EN10MB'], /^filters\.bpf\[1\]: a serial port has no DLT_EN10MB frames, expected one of DLT_C_HDLC, /],
    [['icmp', 'DLT_NONE'], /^filters\.bpf\[1\]: unknown link type/],
  ] as const) {
    const answer = await post(at, { ...nio, filters: { bpf } })
    expect([answer.status, await message(answer)]).toEqual([400, expect.stringMatching(why)])
  }
  expect(await body(send(at))).toMatchObject({ filters: { bpf: ['ip', 'FRELAY'] } })
  const ethernet = `${portOf(v1, 0, 0)}/nio`
  const other = await udpNio(project, { filters: { bpf: ['ether host 00:11:22:33:44:55 or vlan 3'] } })
  expect((await post(ethernet, other)).status).toBe(201)
  expect((await put(ethernet, { ...other, filters: { bpf: ['icmp', 'DLT_C_HDLC'] } })).status).toBe(400)
})
