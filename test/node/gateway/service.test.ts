import { randomBytes, randomUUID } from 'node:crypto'
import { readdir, readFile, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { Project } from '../../../src/model/project.ts'
import { figure, parseExposition } from '../../support/exposition.ts'
import { json, StandIn } from '../../support/fleet.ts'
import { GatewayLab, patch, portOf, serveManyClients } from '../../support/gateway-lab.ts'
import { createPc, start, status } from '../../support/lab.ts'
import { collect, readPcap } from '../../support/pcap.ts'
import type { TestService } from '../../support/service.ts'
import { openSocketConsole } from '../../support/socket-console.ts'

const projects = '/v2/compute/projects'
const lab = GatewayLab.forAll()

const pingTwice = 'ping 10.0.0.2 -c 2 -i 50\r'

test('pcs on two computes ping each other, also when one compute has joined', async () => {
  const { gateway } = lab
  const [here, there, elsewhere] = [await lab.project('a'), await lab.project('b'), await lab.project(lab.farId)]
  const pc1 = await createPc(gateway, here, 1)
  // The first pcs of two projects have the same MAC address.
  await createPc(gateway, there, 3)
  await createPc(gateway, elsewhere, 3)
  const [pc2, far] = [await createPc(gateway, there, 2), await createPc(gateway, elsewhere, 4)]
  expect((await patch(gateway, pc1, pc2)).status).toBe(201)
  await start(gateway, pc1, pc2, far)
  const console = await openSocketConsole(gateway, pc1)
  await console.expect('PC1> ')
  console.socket.send(pingTwice)
  await console.expect('10.0.0.2 icmp_seq=2 ttl=64')
  await gateway.call('DELETE', `${pc1}/adapters/0/ports/0/nio`)
  expect((await patch(gateway, pc1, far)).status).toBe(201)
  console.socket.send('ping 10.0.0.4 -c 2 -i 50\r')
  await console.expect('10.0.0.4 icmp_seq=2 ttl=64')
})

test('a console and a live capture go through gateway, tunnel and keeper', async () => {
  const { gateway } = lab
  const project = await lab.project(lab.farId)
  const [pc1, pc2] = [await createPc(gateway, project, 1), await createPc(gateway, project, 2)]
  expect((await patch(gateway, pc1, pc2)).status).toBe(201)
  await start(gateway, pc1, pc2)
  const console = await openSocketConsole(gateway, pc1)
  const port = `${pc1}/adapters/0/ports/0`
  const live = collect(await gateway.fetch(`${port}/capture/stream`, { method: 'POST', body: '{}' }))
  await console.expect('PC1> ')
  console.socket.send(pingTwice)
  await console.expect('icmp_seq=2 ttl=64')
  const pings = () => readPcap(live.bytes()).records.filter(({ frame }) => frame.readUInt16BE(12) === 0x0800)
  await expect.poll(pings).toHaveLength(4)
  await gateway.call('DELETE', `${port}/nio`)
  await live.ended
  await gateway.call('POST', `${pc1}/stop`)
  await console.closed
})

test.each(['a', 'far'] as const)(
  'a file is uploaded to %s and downloaded, at the speed of the receiver',
  async (name) => {
    const { gateway } = lab
    const compute = lab[name]
    const project = await lab.project(name === 'a' ? name : lab.farId)
    const content = randomBytes(16 * 2 ** 20)
    const file = `${project}/files/whole.bin`
    expect((await gateway.fetch(file, { method: 'POST', body: content })).status).toBeLessThan(300)
    const back = Buffer.from(await (await gateway.fetch(file)).arrayBuffer())
    expect(back.equals(content)).toBe(true)

    // Halfabyte that nobody reads, or takes.
    const places = join(compute.data, 'projects', idOf(project))
    await truncate(join(places, await pathIn(places, 'whole.bin')), 2 ** 29)
    const before = await bytesRead(compute)
    const over = new AbortController()
    const down = await gateway.fetch(file, { signal: over.signal })
    expect(down.headers.get('content-length')).toBe(String(2 ** 29))
    expect((await settled(() => bytesRead(compute))) - before).toBeLessThan(2 ** 27)
    process.kill(compute.pid, 'SIGSTOP')
    onTestFinished(() => void process.kill(compute.pid, 'SIGCONT'))
    let sent = 0
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (over.signal.aborted) return controller.close()
        controller.enqueue(content.slice(0, 2 ** 20))
        sent += 2 ** 20
      },
    })
    const init = { method: 'POST', body: endless, duplex: 'half', signal: over.signal } as RequestInit
    const up = gateway.fetch(`${project}/files/endless.bin`, init)
    expect(await settled(async () => sent)).toBeLessThan(2 ** 26)
    over.abort()
    await expect(up).rejects.toThrow()
    process.kill(compute.pid, 'SIGCONT')
    expect((await gateway.fetch(project)).status).toBe(200)
  },
)

test('200 clients at once: each has its project and its node once, and the computes share them', async () => {
  await serveManyClients(lab.gateway, lab.computes)
})

test('projects of a killed compute are 503 until it is back; all others go on', async () => {
  const { gateway, a } = lab
  const [onA, onB] = [await lab.project('a'), await lab.project('b')]
  const pc = await createPc(gateway, onA, 1)
  await start(gateway, pc)
  const port = portOf(a)
  await a.kill('SIGKILL')
  await lab.shows('a', { connected: false })
  const gone = await gateway.fetch(pc)
  expect([gone.status, Number(gone.headers.get('retry-after'))]).toEqual([503, expect.any(Number)])
  expect(Number(gone.headers.get('retry-after'))).toBeGreaterThan(0)
  const list = await gateway.fetch(projects)
  expect(list.headers.get('x-patchbay-unreachable')).toBe('compute%20a')
  expect(idsOf(await list.json())).toContain(idOf(onB))
  expect((await gateway.fetch(`${onB}/pc/nodes`)).status).toBe(200)
  const elsewhere = await gateway.call<Project>('POST', projects, { name: 'lab' })
  expect((await gateway.fetch(`${projects}/${elsewhere.project_id}`)).status).toBe(200)
  const wanted = { method: 'POST', body: JSON.stringify({ name: 'lab', compute_id: 'a' }) }
  expect((await gateway.fetch(projects, wanted)).status).toBe(503)

  await a.restart(port)
  await lab.shows('a', { connected: true })
  // Its keeper held the node.
  expect(await status(gateway, pc)).toBe('started')
  expect(idsOf(await gateway.call('GET', projects))).toEqual(expect.arrayContaining([onA, onB].map(idOf)))
})

test('a killed gateway has all acknowledged changes after its start, and its computes connect again', async () => {
  const { gateway } = lab
  const before = [await lab.project('a'), await lab.project('b'), await lab.project(lab.farId)]
  const ids = Array.from({ length: 30 }, () => randomUUID())
  const wanted = new Set<string>(ids)
  let count = 0
  let tenth = () => {}
  const enough = new Promise<void>((resolve) => (tenth = resolve))
  const ends = Promise.allSettled(
    ids.map(async (project_id) => {
      await gateway.call('POST', projects, { name: 'lab', project_id })
      if (++count === 10) tenth()
    }),
  )
  await enough
  const port = portOf(gateway)
  await gateway.kill('SIGKILL')
  const told = new Set((await ends).flatMap(({ status }, index) => (status === 'fulfilled' ? [ids[index]] : [])))
  await gateway.restart(port)
  for (const id of ['a', 'b', lab.farId]) await lab.shows(id, { connected: true })
  const figures = parseExposition(await (await gateway.fetch('/metrics')).text())
  expect(figure(figures, 'patchbay_computes', { state: 'connected' })).toBe(3)
  expect(figures.get('patchbay_info')?.samples).toHaveLength(1)
  for (const path of before) expect((await gateway.fetch(path)).status).toBe(200)
  for (const id of told) expect((await gateway.fetch(`${projects}/${id}`)).status).toBe(200)
  // What nobody was told of may be there or not: it is asked for again, and is there once.
  await Promise.all(ids.map((project_id) => gateway.call('POST', projects, { name: 'lab', project_id })))
  const all = await Promise.all(lab.computes.map((compute) => compute.call<Project[]>('GET', projects)))
  const found = all.flatMap(idsOf).filter((id) => wanted.has(id))
  expect(found.sort()).toEqual(ids.toSorted())
})

test('computes that are silent, slow or lie are named in lists, and delay answers only for a limited time', async () => {
  const { gateway, b } = lab
  const [onA, onB] = [await lab.project('a'), await lab.project('b')]
  const { version } = await gateway.call<{ version: string }>('GET', '/v2/compute/version')
  const standIn = async (compute_id: string, answer: StandIn['answer'], said: unknown = version) => {
    const it = await StandIn.start()
    it.capabilities = (_, res) => json(res, 200, { version: said, platform: 'linux', node_types: ['pc'] })
    it.answer = answer
    const input = it.input({ compute_id, name: compute_id, accepts_projects: false })
    return gateway.fetch('/v2/computes', { method: 'POST', body: JSON.stringify(input) })
  }
  expect((await standIn('slow', () => {})).status).toBe(201)
  expect((await standIn('liar', (_, res) => json(res, 200, { what: 'ever' }))).status).toBe(201)
  const other = await standIn('other', () => {}, '99.0.0')
  expect([other.status, await other.json()]).toMatchObject([409, { message: /99\.0\.0/ }])
  onTestFinished(async () => {
    for (const id of ['slow', 'liar']) await gateway.call('DELETE', `/v2/computes/${id}`)
  })

  process.kill(b.pid, 'SIGSTOP')
  onTestFinished(() => void process.kill(b.pid, 'SIGCONT'))
  const began = Date.now()
  const waiting = gateway.fetch(onB)
  const list = await gateway.fetch(projects)
  expect(Date.now() - began).toBeLessThan(30_000)
  expect(list.headers.get('x-patchbay-unreachable')?.split(', ').sort()).toEqual(['compute%20b', 'liar', 'slow'])
  expect(idsOf(await list.json())).toContain(idOf(onA))
  expect((await gateway.fetch(onA)).status).toBe(200)
  expect([503, 504]).toContain((await waiting).status)
  expect(Date.now() - began).toBeLessThan(45_000)
  await lab.shows('b', { connected: false })
  const refused = await gateway.fetch(onB)
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5'])
  process.kill(b.pid, 'SIGCONT')
  await lab.shows('b', { connected: true })
  expect((await gateway.fetch(onB)).status).toBe(200)
})

const idOf = (path: string): string => path.slice(projects.length + 1)
const idsOf = (list: unknown): string[] => (list as Project[]).map(({ project_id }) => project_id)

const pathIn = async (directory: string, name: string): Promise<string> =>
  (await readdir(directory, { recursive: true })).find((path) => path.endsWith(name)) ?? ''

/** Bytes that a service has read from files and sockets. */
async function bytesRead({ pid }: TestService): Promise<number> {
  return Number(/rchar: (\d+)/.exec(await readFile(`/proc/${pid}/io`, 'utf8'))?.[1])
}

/** A count when it grows no more. */
async function settled(count: () => Promise<number>): Promise<number> {
  for (let before = -1, same = 0; ; ) {
    const now = await count()
    // Services say something now and then.
    same = now - before < 2 ** 16 ? same + 1 : 0
    if (now > 0 && same === 5) return now
    before = now
    await setTimeout(100)
  }
}
