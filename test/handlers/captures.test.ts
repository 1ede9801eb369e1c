import { expect, test } from 'vitest'
import { body, del, newPc, newProject, post, put, send } from '../support/api.ts'
import { collect, readPcap } from '../support/pcap.ts'

type Project = Awaited<ReturnType<typeof newProject>>

interface Port {
  /** The node in that API version. */
  readonly node: string
  /** Its only port. */
  readonly port: string
  readonly project: Project
  readonly id: string
}

/** A pc that asks for an address when it starts, so that frames pass. */
async function pcIn(project: Project, version: 'v1' | 'v2'): Promise<Port> {
  const { id, path } = await newPc(project, { name: 'PC1', startup_script: 'ip 10.0.0.1/24\nping 10.0.0.2 -c 1\n' })
  const node = version === 'v2' ? path : `${project.v1}/pc/vms/${id}`
  return { node, port: `${node}/adapters/0/ports/0`, project, id }
}

async function attach({ project, port }: Port): Promise<void> {
  const { udp_port } = await body<{ udp_port: number }>(post(`${project.v2}/ports/udp`))
  const nio = { type: 'nio_udp', lport: udp_port, rhost: '127.0.0.1', rport: 9 }
  expect((await post(`${port}/nio`, nio)).status).toBe(201)
}

async function linkedPc(version: 'v1' | 'v2'): Promise<Port> {
  const pc = await pcIn(await newProject(), version)
  await attach(pc)
  return pc
}

const captureOf = async ({ project, id }: Port) =>
  (await body(send(`${project.v2}/pc/nodes/${id}/adapters/0/ports/0/nio`))).capture
const into = (capture_file_name: string) => ({ capture_file_name, data_link_type: 'DLT_EN10MB' })

for (const version of ['v1', 'v2'] as const) {
  test(`${version}: a capture is started once, shown, listed among the files, and stopped`, async () => {
    const pc = await linkedPc(version)
    const { port, project } = pc
    expect(await captureOf(pc)).toBe(null)
    const started = await post(`${port}/start_capture`, into('one.pcap'))
    expect(started.status).toBe(200)
    const params = version === 'v1' ? 'pc/vms/{vm_id}' : 'pc/nodes/{node_id}'
    expect(started.headers.get('X-ROUTE')).toMatch(
      `${params}/adapters/{adapter_number}/ports/{port_number}/start_capture`,
    )
    const { pcap_file_path } = await body<{ pcap_file_path: string }>(started)
    expect(pcap_file_path).toMatch(new RegExp(`^/.*${project.id}/project-files/captures/one\\.pcap$`))
    expect(await captureOf(pc)).toEqual({
      pcap_file_path,
      data_link_type: 'DLT_EN10MB',
      frames: 0,
      missed: 0,
    })
    for (const name of ['one.pcap', 'two.pcap']) {
      expect((await post(`${port}/start_capture`, into(name))).status).toBe(409)
    }
    for (const path of [project.v1, project.v2]) {
      const files = await body<{ path: string }[]>(send(`${path}/files`))
      expect(files.map((it) => it.path)).toContain('project-files/captures/one.pcap')
      expect(files.map((it) => it.path)).not.toContain('project-files/captures/two.pcap')
    }
    for (let time = 0; time < 2; time++) expect((await post(`${port}/stop_capture`)).status).toBe(204)
    expect(await captureOf(pc)).toBe(null)
    const file = await send(`${project.v2}/files/project-files/captures/one.pcap`)
    expect(readPcap(Buffer.from(await file.arrayBuffer()))).toEqual({ linkType: 1, records: [], rest: 0 })
    expect((await post(`${port}/start_capture`, { capture_file_name: 'one.pcap' })).status).toBe(200)
  })

  test(`${version}: a capture is read from its beginning while it grows, and to its end`, async () => {
    const pc = await linkedPc(version)
    const { node, port, project } = pc
    await post(`${port}/start_capture`, into('read.pcap'))
    const early = await send(`${port}/pcap`)
    expect(early.status).toBe(200)
    expect(early.headers.get('content-type')).toBe('application/vnd.tcpdump.pcap')
    const streams = [collect(early)]
    expect((await post(`${node}/start`)).ok).toBe(true)
    await streams[0]?.holds(1)
    streams.push(collect(await send(`${port}/pcap?format=pcap`)))
    for (const it of streams) expect((await it.holds(1)).records[0]?.frame.length).toBeGreaterThan(13)
    expect(await captureOf(pc)).toMatchObject({ frames: expect.any(Number), missed: 0 })
    expect((await post(`${port}/stop_capture`)).status).toBe(204)
    const file = await send(`${project.v2}/files/project-files/captures/read.pcap`)
    const bytes = Buffer.from(await file.arrayBuffer())
    expect(readPcap(bytes).records.length).toBeGreaterThan(0)
    for (const it of streams) {
      await it.ended
      expect(it.bytes()).toEqual(bytes)
    }
  })

  test(`${version}: HEAD answers as a read would, at once`, async () => {
    const { port } = await linkedPc(version)
    await post(`${port}/start_capture`, into('head.pcap'))
    const answer = await send(`${port}/pcap`, { method: 'HEAD' })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('application/vnd.tcpdump.pcap')
    expect(await answer.text()).toBe('')
  })

  test(`${version}: a capture is read as pcapng`, async () => {
    const { node, port, id } = await linkedPc(version)
    await post(`${port}/start_capture`, into('ng.pcap'))
    await post(`${node}/start`)
    await collect(await send(`${port}/pcap`)).holds(1)
    const answer = await send(`${port}/pcap?format=pcapng`)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('application/x-pcapng')
    const it = collect(answer)
    await post(`${port}/stop_capture`)
    await it.ended
    const bytes = it.bytes()
    expect(bytes.readUInt32LE(0)).toBe(0x0a0d0d0a)
    expect(bytes.includes(`Adapter 0, port 0 of the pc PC1 (${id})`)).toBe(true)
    expect(bytes.includes('PC1 0/0')).toBe(true)
    expect((await send(`${port}/pcap?format=zip`)).status).toBe(400)
  })

  test(`${version}: a stream without a file begins now and ends with the NIO, as a read does`, async () => {
    const { node, port, project } = await linkedPc(version)
    const stream = (query: string, input: unknown = {}) => post(`${port}/capture/stream${query}`, input)
    await post(`${port}/start_capture`, into('beside.pcap'))
    const answers = [
      await stream(''),
      await stream('?format=pcapng', { data_link_type: 'DLT_EN10MB' }),
      await send(`${port}/pcap`),
    ]
    expect(answers.map((it) => it.headers.get('content-type'))).toEqual([
      'application/vnd.tcpdump.pcap',
      'application/x-pcapng',
      'application/vnd.tcpdump.pcap',
    ])
    const streams = answers.map(collect)
    await post(`${node}/start`)
    expect((await streams[0]?.holds(1))?.linkType).toBe(1)
    expect((await del(`${port}/nio`)).status).toBe(204)
    await Promise.all(streams.map(({ ended }) => ended))
    const [plain, ng, file] = streams.map(({ bytes }) => bytes())
    expect(plain).toEqual(file)
    expect(ng?.readUInt32LE(0)).toBe(0x0a0d0d0a)
    expect(ng?.length).toBeGreaterThan(plain?.length ?? 0)
    for (const refused of [await stream(''), await send(`${port}/pcap`)]) expect(refused.status).toBe(409)
    const read = await send(`${project.v2}/files/project-files/captures/beside.pcap`)
    expect(Buffer.from(await read.arrayBuffer())).toEqual(file)
  })

  test(`${version}: when the client of a stream leaves, the port is no longer captured, and its link works on`, async () => {
    const pc = await linkedPc(version)
    const over = new AbortController()
    const answer = await send(`${pc.port}/capture/stream`, { method: 'POST', body: '{}', signal: over.signal })
    expect(answer.status).toBe(200)
    expect(await captureOf(pc)).toBe(null)
    over.abort()
    await post(`${pc.port}/start_capture`, into('after.pcap'))
    const it = collect(await send(`${pc.port}/pcap`))
    await post(`${pc.node}/start`)
    await it.holds(1)
  })

  test(`${version}: a capture that is not possible is refused`, async () => {
    const pc = await pcIn(await newProject(), version)
    const { node, port } = pc
    const actions = (at: string) => [
      post(`${at}/start_capture`, into('x.pcap')),
      post(`${at}/stop_capture`),
      send(`${at}/pcap`),
      post(`${at}/capture/stream`),
    ]
    const statuses = async (at: string) => (await Promise.all(actions(at))).map(({ status }) => status)
    expect(await statuses(port)).toEqual([409, 409, 409, 409])
    expect(await statuses(`${node}/adapters/1/ports/0`)).toEqual([404, 404, 404, 404])
    expect(await statuses(`${node}/adapters/0/ports/7`)).toEqual([404, 404, 404, 404])
    expect(await statuses(`${node}/adapters/x/ports/0`)).toEqual([400, 400, 400, 400])
    expect(await statuses(port.replace(pc.id, crypto.randomUUID()))).toEqual([404, 404, 404, 404])
    await attach(pc)
    expect((await send(`${port}/pcap`)).status).toBe(409)
  })
}

test.for([
  { capture_file_name: '../x.pcap' },
  { capture_file_name: 'a/b.pcap' },
  { capture_file_name: 'a\\b.pcap' },
  { capture_file_name: '/etc/x.pcap' },
  { capture_file_name: '..' },
  { capture_file_name: '.' },
  { capture_file_name: '' },
  { capture_file_name: 'a\u0000b' },
  { capture_file_name: 'a\nb' },
  { capture_file_name: 'x'.repeat(201) },
  { capture_file_name: 7 },
  {},
  { capture_file_name: 'x.pcap', data_link_type: 'DLT_NONE' },
  { capture_file_name: 'x.pcap', data_link_type: 1 },
  { capture_file_name: 'x.pcap', extra: true },
])('the capture %j is refused', async (input) => {
  const { port, project } = await linkedPc('v2')
  const answer = await post(`${port}/start_capture`, input)
  expect(answer.status).toBe(400)
  expect(await answer.json()).toEqual({ message: expect.any(String), status: 400 })
  const files = await body<{ path: string }[]>(send(`${project.v2}/files`))
  expect(files.filter(({ path }) => path.includes('captures'))).toEqual([])
})

test('an Ethernet port cannot be captured as a line of another type', async () => {
  const { port } = await linkedPc('v2')
  for (const [path, input] of [
    ['start_capture', { capture_file_name: 'x.pcap' }],
    ['capture/stream', {}],
  ] as const) {
    const answer = await post(`${port}/${path}`, { ...input, data_link_type: 'DLT_PPP_SERIAL' })
    const message = 'data_link_type: an Ethernet port has no DLT_PPP_SERIAL frames, expected DLT_EN10MB'
    expect(await answer.json()).toEqual({ message, status: 400 })
  }
})

test('a name that is too long for the file system is a conflict', async () => {
  const { port } = await linkedPc('v2')
  expect((await post(`${port}/start_capture`, into('\u2603'.repeat(150)))).status).toBe(409)
})

test('no two captures write one file, not even when they are started at once', async () => {
  const project = await newProject()
  const pcs = await Promise.all(Array.from({ length: 5 }, () => pcIn(project, 'v2')))
  for (const pc of pcs) await attach(pc)
  const [one, two] = pcs as [Port, Port]
  expect((await post(`${one.port}/start_capture`, into('same.pcap'))).status).toBe(200)
  const refused = await post(`${two.port}/start_capture`, into('same.pcap'))
  expect(refused.status).toBe(409)
  expect(await refused.json()).toMatchObject({ message: 'capture_file_name: another capture writes that file' })
  await post(`${one.port}/stop_capture`)
  for (let round = 0; round < 5; round++) {
    const answers = await Promise.all(pcs.map(({ port }) => post(`${port}/start_capture`, into(`${round}.pcap`))))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409])
    await Promise.all(pcs.map(({ port }) => post(`${port}/stop_capture`)))
  }
})

test('a capture goes on when its NIO is changed or replaced, and while the node is stopped', async () => {
  const pc = await linkedPc('v2')
  const { port, node } = pc
  expect((await post(`${port}/start_capture`, into('on.pcap'))).status).toBe(200)
  const { capture: _, link: __, counters: ___, ...nio } = await body(send(`${port}/nio`))
  expect((await put(`${port}/nio`, { ...nio, filters: { delay: [1] } })).status).toBe(201)
  await attach(pc)
  await post(`${node}/start`)
  await post(`${node}/stop`)
  expect(await captureOf(pc)).toMatchObject({ data_link_type: 'DLT_EN10MB' })
  await post(`${node}/start`)
  await collect(await send(`${port}/pcap`)).holds(1)
})
