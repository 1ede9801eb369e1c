import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { idling } from '../stand-in/mips/programs.ts'
import { body, del, newProject, post, put, sameHost, send } from '../support/api.ts'
import { iouImage, uploadIouImage } from '../support/iou-http.ts'
import { requireProgram } from '../support/require.ts'
import { describeWith } from '../support/test-with.ts'

type Shown = Record<string, unknown>

/** What a node of each kind is made with here. */
const inputs: Readonly<Record<string, Shown>> = {
  pc: { startup_script: 'ip 10.0.0.1/24\n' },
  iou: { path: iouImage, startup_config_content: 'hostname %h\n' },
  hypervisor: { vmname: 'VM 12', adapters: 2, enable_remote_console: true },
  'machine-emulator': { platform: 'x86_64', ram: 32, adapters: 3, custom_adapters: [{ adapter_number: 1 }] },
  dynamips: { platform: 'c7200', image: 'handlers-router.image', ram: 64 },
}
const programs: Readonly<Record<string, string>> = { 'machine-emulator': 'qemu-system-x86_64', dynamips: 'dynamips' }
const needed = (kind: string) => programs[kind] !== undefined && requireProgram(programs[kind])

/** What changes without a request; how a node was when it was shown before does not matter. */
const changing = new Set(['status', 'status_reason', 'command_line', 'remote_console'])
const lasting = (shown: Shown): Shown =>
  Object.fromEntries(Object.entries(shown).filter(([name]) => !changing.has(name)))

beforeAll(async () => {
  await uploadIouImage()
  const answer = await send('/v2/compute/dynamips/images/handlers-router.image', {
    method: 'POST',
    body: Buffer.from(idling),
  })
  expect(answer.status).toBe(204)
})

const versions = [
  { version: 'v1', id: 'vm_id', nodes: (kind: string) => `${kind}/vms` },
  { version: 'v2', id: 'node_id', nodes: (kind: string) => `${kind}/nodes` },
] as const

for (const { version, id, nodes } of versions) {
  for (const kind of Object.keys(inputs))
    describeWith(needed(kind))(`a ${kind} node in ${version}`, () => {
      let list: string
      let path: string
      let shown: Shown

      beforeAll(async () => {
        const project = await newProject({ name: 'lab', ...sameHost })
        list = `${project[version]}/${nodes(kind)}`
        const answer = await post(list, { name: 'R1', ...inputs[kind] })
        shown = await body<Shown>(answer)
        expect([answer.status, shown]).toEqual([201, expect.objectContaining({ name: 'R1' })])
        path = `${list}/${shown[id]}`
        // What is computed afterwards is there.
        do shown = await body<Shown>(send(path))
        while (JSON.stringify(shown).includes('"md5sum":null'))
      })
      afterAll(async () => void (await del(path.slice(0, path.indexOf(`/${kind}/`)))))

      test('accepts all members that it shows, and nothing changes', async () => {
        const answer = await put(path, shown)
        expect([answer.status, await body(answer)]).toEqual([200, shown])
        expect(await body(send(path))).toEqual(shown)
      })

      test('accepts any part of the members that it shows', async () => {
        await fc.assert(
          fc.asyncProperty(fc.subarray(Object.keys(shown)), async (names) => {
            const part = Object.fromEntries(names.map((name) => [name, shown[name]]))
            const answer = await put(path, part)
            expect([answer.status, lasting(await body(answer))]).toEqual([200, lasting(shown)])
          }),
          { numRuns: 15 },
        )
      })

      test('accepts an earlier value of a member that changes by itself', async () => {
        const before = { ...(shown.status !== undefined && { status: 'started' }), status_reason: 'it was ill' }
        expect((await put(path, { ...shown, ...before, command_line: 'another one' })).status).toBe(200)
        expect(await body(send(path))).toEqual(shown)
      })

      test('refuses another value of a read-only member, and names it', async () => {
        const others: Shown = { project_id: crypto.randomUUID(), [id]: crypto.randomUUID() }
        if (kind === 'pc') Object.assign(others, { engine: 'vpcs', mac_address: '00:50:79:66:68:ff' })
        if (kind === 'hypervisor' && version === 'v2') others.linked_clone = true
        for (const [name, value] of Object.entries(others)) {
          const answer = await put(path, { ...shown, name: 'other', [name]: value })
          expect([answer.status, await body(answer)]).toEqual([
            400,
            { status: 400, message: expect.stringMatching(new RegExp(`^${name}: this member is read-only`)) },
          ])
        }
        expect((await put(path, { ...shown, nonsense: 1 })).status).toBe(400)
        expect((await put(path, { status: 5 })).status).toBe(400)
        expect(await body(send(path))).toEqual(shown)
      })

      test('can be created from the members of another one', async () => {
        // A VM is that of one node only.
        if (kind === 'hypervisor') expect((await del(path)).status).toBe(204)
        const answer = await post(list, { ...shown, name: 'copy', [id]: crypto.randomUUID() })
        expect([answer.status, await body(answer)]).toMatchObject([201, { name: 'copy' }])
      })
    })
}

test.each(['v1', 'v2'] as const)(
  'a project in %s accepts the members that it shows, and refuses another id',
  async (version) => {
    const project = await newProject({ name: 'lab', variables: [{ name: 'A', value: 'b' }] })
    const path = project[version]
    const query = version === 'v2' ? '?view=full' : ''
    const shown = await body<Shown>(send(path + query))
    const answer = await put(path + query, shown)
    expect([answer.status, await body(answer)]).toEqual([200, shown])
    expect((await put(path, { ...shown, project_id: project.id.toUpperCase() })).status).toBe(200)
    for (const name of ['project_id', ...(shown.location === undefined ? [] : ['location'])]) {
      const refused = await put(path, { ...shown, [name]: crypto.randomUUID() })
      expect([refused.status, (await body<{ message: string }>(refused)).message]).toEqual([
        400,
        expect.stringContaining(`${name}: `),
      ])
    }
    const { path: _, ...rest } = shown
    const copy = await post(path.slice(0, path.lastIndexOf('/')), { ...rest, project_id: crypto.randomUUID() })
    expect(copy.status).toBe(201)
  },
)

test('a link accepts its state, and a NIO only the members of its type', async () => {
  const project = await newProject({ name: 'lab', ...sameHost })
  const { node_id } = await body<{ node_id: string }>(post(`${project.v2}/pc/nodes`, { name: 'PC' }))
  const { udp_port } = await body<{ udp_port: number }>(post(`${project.v2}/ports/udp`))
  const nio = `${project.v2}/pc/nodes/${node_id}/adapters/0/ports/0/nio`
  const given = { type: 'nio_udp', lport: udp_port, rhost: '127.0.0.1', rport: 40_000, filters: { delay: [10] } }
  expect((await post(nio, given)).status).toBe(201)
  const shown = await body<Shown>(send(nio))
  expect(shown).toHaveProperty('counters')
  for (const send of [put, post]) {
    const answer = await send(nio, shown)
    expect([answer.status, await body(answer)]).toMatchObject([201, given])
  }
  expect((await put(nio, { ...shown, tap_device: 'tap0' })).status).toBe(400)
  expect((await put(nio, { ...shown, counters: 5 })).status).toBe(400)
})

test('a link can be made again from the members that it showed', async () => {
  const project = await newProject({ name: 'lab', ...sameHost })
  const ends = await Promise.all(
    ['PC1', 'PC2'].map(async (name) => {
      const { node_id } = await body<{ node_id: string }>(post(`${project.v2}/pc/nodes`, { name }))
      return { project_id: project.id, node_type: 'pc', node_id, adapter_number: 0, port_number: 0 }
    }),
  )
  const made = await post('/v2/links', { nodes: ends, filters: { delay: [5] } })
  const link = await body<{ nodes: (Shown & { nio: Shown })[] }>(made)
  expect(link.nodes).toMatchObject(ends)
  const remove = () =>
    Promise.all(ends.map(({ node_id }) => del(`${project.v2}/pc/nodes/${node_id}/adapters/0/ports/0/nio`)))
  await remove()
  const again = await post('/v2/links', link)
  expect([again.status, await body(again)]).toMatchObject([201, { nodes: ends }])
  await remove()
  const nodes = link.nodes.map((end) => ({ ...end, nio: { type: 'nio_of_another_kind' } }))
  expect((await post('/v2/links', { nodes })).status).toBe(400)
})

test('a compute accepts the members that it shows', async () => {
  const compute = { protocol: 'http', host: '127.0.0.1', port: 9, name: `away ${crypto.randomUUID()}` }
  const created = await post('/v2/computes', compute)
  expect(created.status).toBe(201)
  const { compute_id } = await body<{ compute_id: string }>(created)
  const shown = await body<Shown>(send(`/v2/computes/${compute_id}`))
  const answer = await put(`/v2/computes/${compute_id}`, { ...shown, connected: true, cpu_usage_percent: 3 })
  expect([answer.status, await body(answer)]).toMatchObject([200, { name: compute.name, port: 9 }])
  expect((await put(`/v2/computes/${compute_id}`, { ...shown, nonsense: 1 })).status).toBe(400)
  expect((await del(`/v2/computes/${compute_id}`)).status).toBe(204)
  expect((await post('/v2/computes', { ...shown, compute_id: crypto.randomUUID() })).status).toBe(201)
  for (const it of await body<{ compute_id: string; name: string }[]>(send('/v2/computes')))
    if (it.name === compute.name) await del(`/v2/computes/${it.compute_id}`)
})
