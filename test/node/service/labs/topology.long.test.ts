import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { projectIdOf } from '../../../../src/labfile/ids.ts'
import type { LabJob } from '../../../../src/model/lab/job.ts'
import type { LabLink } from '../../../../src/model/lab/link.ts'
import type { LabNode } from '../../../../src/model/lab/node.ts'
import type { LabPlan } from '../../../../src/model/lab/topology.ts'
import { hangMs } from '../../../support/limits.ts'
import { requireProgram } from '../../../support/require.ts'
import { TestService } from '../../../support/service.ts'
import { testWith } from '../../../support/test-with.ts'

const lab = '/v2/projects/campus'

const start = () => TestService.start({ 'pc.engine': 'embedded' })

/** A lab of pcs at one switch. */
const pcs = (count: number, more = '') => {
  const names = Array.from({ length: count }, (_, index) => `PC${index}`)
  return [
    'lab: campus',
    'nodes:',
    ...names.map((name, index) => `  ${name}: { kind: pc, config: { text: "ip 10.0.0.${index + 1}/24" } }`),
    'segments:',
    `  lan: { kind: switch, members: [${names.join(', ')}] }`,
    more,
  ].join('\n')
}

const put = (service: TestService, file: string, options: object = {}) =>
  service.call<LabPlan>('PUT', `${lab}/topology`, { document: file, ...options })

async function ended(service: TestService, id: string | undefined): Promise<LabJob> {
  const get = () => service.call<LabJob>('GET', `/v2/jobs/${id}`)
  await expect.poll(async () => (await get()).status, { timeout: hangMs, interval: 20 }).not.toBe('running')
  return get()
}

/** Resolves when the feed of the lab tells that a step of a job is done, or what else `state` finds. */
async function untilStep(
  service: TestService,
  job_id: string | undefined,
  state = /"job\.step".*"state":"done"/,
): Promise<void> {
  const feed = await service.fetch(`${lab}/notifications?since=0`)
  const decoder = new TextDecoder()
  let text = ''
  for await (const bytes of feed.body as ReadableStream<Uint8Array>) {
    text += decoder.decode(bytes, { stream: true })
    const isDone = (line: string) => state.test(line) && line.includes(`"${job_id}"`)
    if (text.split('\n').some(isDone)) return
  }
}

const nodesOf = (service: TestService) => service.call<LabNode[]>('GET', `${lab}/nodes`)
const linksOf = (service: TestService) => service.call<LabLink[]>('GET', `${lab}/links`)

describe('an apply of a lab file', () => {
  it.each([
    ['a node', /"job\.step".*"state":"done"/],
    ['its links', /"job\.step".*"what":"link".*"state":"running"/],
  ])('that was killed while it made %s is finished by the next one', async (_, state) => {
    const service = await start()
    const killedIn = async (file: string) => {
      const first = await put(service, file)
      await untilStep(service, first.job_id, state)
      await service.kill('SIGKILL')
      await service.restart()
      await expect.poll(async () => (await service.call('GET', lab)).status, { timeout: hangMs }).toBe('opened')
      return put(service, file)
    }
    const file = pcs(60)
    let plan = await killedIn(file)
    // On a busy host the signal may come when all is made.
    for (let tries = 0; plan.interrupted !== true && tries < 5; tries++) {
      await service.call('DELETE', lab)
      plan = await killedIn(file)
    }
    expect(plan.interrupted).toBe(true)
    expect(await ended(service, plan.job_id)).toMatchObject({ status: 'done' })
    expect(await put(service, file)).toMatchObject({ steps: [], withheld: [], extra: [] })
    const nodes = await nodesOf(service)
    expect([nodes.length, (await linksOf(service)).length]).toEqual([61, 60])
    const there = await service.call<unknown[]>('GET', `/v2/compute/projects/${nodes[0]?.project_id}/pc/nodes`)
    expect(there).toHaveLength(60)
  })

  it('writes several links at once, and nodes that are created meanwhile', async () => {
    const service = await start()
    const [count, first] = [60, await put(service, pcs(60))]
    expect(await ended(service, first.job_id)).toMatchObject({ status: 'done', done: 2 * count + 1 })
    const journal = await readFile(join(service.data, 'labs', `${first.project_id}.jsonl`), 'utf8')
    const writesOf = (table: string) => journal.split('\n').filter((line) => line.includes(`"${table}/`)).length
    expect(writesOf('link')).toBe(1)
    expect(writesOf('node')).toBeLessThan(count)
  })

  it('is refused before any change when a compute is not connected', async () => {
    const service = await start()
    const document = 'lab: campus\nnodes:\n  A: { kind: pc }\n  B: { kind: pc, compute: rack }\n'
    const refused = await service.fetch(`${lab}/topology`, { method: 'PUT', body: JSON.stringify({ document }) })
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { errors: [{ line: 4, column: 27, path: 'nodes.B.compute', message: 'there is no compute "rack"' }] },
    ])
    expect((await service.fetch(lab)).status).toBe(404)
  })

  it('may be requested twice at once', async () => {
    const service = await start()
    const plans = await Promise.all([1, 2, 3].map(() => put(service, pcs(4), { start: true })))
    for (const { job_id } of plans)
      if (job_id !== undefined) expect(await ended(service, job_id)).toMatchObject({ status: 'done' })
    expect(await put(service, pcs(4), { start: true })).toMatchObject({ steps: [], withheld: [], extra: [] })
  })

  it('does not delete a project that another request creates at the same time', async () => {
    const service = await start()
    const byHand = () => service.call('POST', '/v2/projects', { name: 'campus', project_id: projectIdOf('campus') })
    // Whichever comes first has the project; the other one is refused.
    const ends = await Promise.allSettled([put(service, pcs(1)), byHand(), put(service, pcs(1))])
    expect(ends.some(({ status }) => status === 'fulfilled')).toBe(true)
    expect((await service.fetch(lab)).status).toBe(200)
  })

  it('gives a new node its console port, or fails when another one has it', async () => {
    const service = await start()
    await ended(service, (await put(service, pcs(1))).job_id)
    const port = ((await nodesOf(service)).find(({ name }) => name === 'PC0')?.console ?? 0) + 5
    await service.call('DELETE', lab)
    const file = (more: string) => `{ lab: campus, nodes: { A: { kind: pc, console: ${port}${more} } } }`
    expect(await ended(service, (await put(service, file(''))).job_id)).toMatchObject({ status: 'done', reason: null })
    const anew = file(', mac_address: "00:50:79:66:68:42"')
    expect(await ended(service, (await put(service, anew, { recreate: true })).job_id)).toMatchObject({
      status: 'done',
      reason: null,
    })
    expect(await put(service, anew)).toMatchObject({ steps: [], withheld: [] })
    const other = await service.call<LabPlan>('PUT', '/v2/projects/other/topology', {
      document: file('').replace('campus', 'other'),
    })
    expect(await ended(service, other.job_id)).toMatchObject({
      status: 'failed',
      reason: expect.stringContaining(`A: console: port ${port} is in use`),
    })
  })

  it('that was killed after it had stopped nodes starts them again, and the next one does the rest', async () => {
    const service = await start()
    await ended(service, (await put(service, pcs(40), { start: true })).job_id)
    const changed = pcs(40).replaceAll('10.0.0.', '10.0.1.')
    const { job_id } = await put(service, changed, { restart: true })
    await untilStep(service, job_id)
    await service.kill('SIGKILL')
    await service.restart()
    const running = async () => (await nodesOf(service)).filter(({ status }) => status === 'started').length
    await expect.poll(() => running().catch(() => 0), { timeout: hangMs }).toBe(41)
    const plan = await put(service, changed, { restart: true })
    expect(plan.interrupted).toBe(true)
    expect(await ended(service, plan.job_id)).toMatchObject({ status: 'done' })
    const last = await put(service, changed, { restart: true })
    expect(last).toMatchObject({ steps: [], withheld: [], extra: [] })
    expect(last.interrupted).toBeUndefined()
    expect(await running()).toBe(41)
  })

  it('that is cancelled leaves the lab unchanged, and a new lab is deleted', async () => {
    const service = await start()
    const cancelled = async (file: string) => {
      const { job_id } = await put(service, file)
      await untilStep(service, job_id)
      await service.call('DELETE', `/v2/jobs/${job_id}`)
      return ended(service, job_id)
    }
    expect(await cancelled(pcs(80))).toMatchObject({ status: 'cancelled', done: 0 })
    expect(await service.call('GET', '/v2/projects')).toEqual([])
    expect(await service.call('GET', '/v2/compute/projects')).toEqual([])

    await ended(service, (await put(service, pcs(2))).job_id)
    const before = await nodesOf(service)
    expect(await cancelled(pcs(80))).toMatchObject({ status: 'cancelled', done: 0 })
    expect((await nodesOf(service)).map(({ name }) => name)).toEqual(before.map(({ name }) => name))
    expect(await linksOf(service)).toHaveLength(2)
  })

  it('starts its nodes in the order of the file, and fails when one is not ready', async () => {
    const service = await start()
    const file = `
lab: campus
nodes:
  A: { kind: pc, after: [B] }
  B: { kind: pc, ready: { console: no pc shows this, within: 1s } }
  C: { kind: pc, ready: { console: "C>", press: "\\r" } }
starting: { at_once: 1 }
`
    const job = await ended(service, (await put(service, file, { start: true })).job_id)
    expect(job).toMatchObject({
      status: 'failed',
      reason: expect.stringMatching(/^B: The node was not ready within 1 s/),
    })
    const nodes = await nodesOf(service)
    expect(nodes.find(({ name }) => name === 'A')).toMatchObject({ status: 'stopped', after: ['B'] })
    // What was made stays.
    expect(nodes).toHaveLength(3)

    // B runs, and is waited for again: A does not start after it as if it were ready.
    const again = await ended(service, (await put(service, file, { start: true })).job_id)
    expect(again).toMatchObject({
      status: 'failed',
      steps: expect.arrayContaining([expect.objectContaining({ do: 'start', name: 'B', because: 'it was not ready' })]),
    })
    expect((await nodesOf(service)).find(({ name }) => name === 'A')).toMatchObject({ status: 'stopped' })
  })

  it('ends a capture that the file has started, and no other one', async () => {
    const service = await start()
    const file = (capture: string, inTwo = '') => `
lab: campus
nodes: { A: { kind: pc }, B: { kind: pc }, C: { kind: pc }, D: { kind: pc } }
links:
  - { name: one, ends: [A, B]${capture} }
  - { name: two, ends: [C, D]${inTwo} }
`
    const becauseOf = async (document: string) => {
      const { steps, job_id } = await put(service, document)
      if (job_id !== undefined) expect(await ended(service, job_id)).toMatchObject({ status: 'done' })
      return steps.map(({ name, because }) => [name, because])
    }
    const captures = async () =>
      Object.fromEntries((await linksOf(service)).map((it) => [it.name, it.capture_file_name]))
    await becauseOf(file(', capture: first.pcap', ', capture: true'))
    // The person stops the capture of the file, and starts an own one.
    const two = (await linksOf(service)).find(({ name }) => name === 'two')?.link_id
    await service.call('POST', `${lab}/links/${two}/stop_capture`)
    await service.call('POST', `${lab}/links/${two}/start_capture`, { capture_file_name: 'own.pcap' })
    const yaml = await (await service.fetch(`${lab}/topology?format=yaml`)).text()
    expect(yaml.match(/capture: .*pcap/g)).toEqual(['capture: first.pcap'])
    expect(await becauseOf(yaml)).toEqual([])

    expect(await becauseOf(file(', capture: other.pcap'))).toEqual([['one', 'capture in other.pcap']])
    expect(await captures()).toEqual({ one: 'other.pcap', two: 'own.pcap' })
    expect(await becauseOf(file(', delay: 5ms'))).toEqual([
      ['one', 'impairment: delay none -> 5ms'],
      ['one', 'no capture'],
    ])
    expect(await captures()).toEqual({ one: null, two: 'own.pcap' })
    expect(await becauseOf(file(', delay: 5ms'))).toEqual([])
  })

  it('continues the captures of a node that is made again, in another file', async () => {
    const service = await start()
    const file = (more: string) => `
lab: campus
nodes: { A: { kind: pc${more} }, B: { kind: pc }, C: { kind: pc } }
segments: { hub1: { kind: hub } }
links:
  - { name: one, ends: [A, hub1], capture: one.pcap }
  - { name: two, ends: [B, hub1] }
`
    await ended(service, (await put(service, file(''), { start: true })).job_id)
    const anew = file(', mac_address: "00:50:79:66:68:42"')
    const job = await ended(service, (await put(service, anew, { recreate: true, start: true })).job_id)
    expect(job).toMatchObject({ status: 'done' })
    const [one] = (await linksOf(service)).filter(({ name }) => name === 'one')
    expect(one).toMatchObject({ capturing: true, capture_file_name: 'one-2.pcap' })
    // It is one: a compute that has no capture at the port would refuse to follow it.
    const pcap = await service.fetch(`${lab}/links/${one?.link_id}/pcap`)
    expect(pcap.status).toBe(200)
    await pcap.body?.cancel()
    const files = await service.call<{ path: string }[]>('GET', `/v2/compute/projects/${one?.project_id}/files`)
    expect(files.map(({ path }) => path)).toEqual(
      expect.arrayContaining(['project-files/captures/one.pcap', 'project-files/captures/one-2.pcap']),
    )
    // The file of the lab names the first one, and says what the lab is.
    expect(await put(service, anew)).toMatchObject({ steps: [], withheld: [], extra: [] })
    const yaml = await (await service.fetch(`${lab}/topology?format=yaml`)).text()
    expect(yaml).toContain('capture: one.pcap')
  })

  it('renames by `was`, and keeps ports of a switch when others come and go', async () => {
    const service = await start()
    await ended(service, (await put(service, pcs(3))).job_id)
    const first = (await nodesOf(service)).find(({ name }) => name === 'PC0')
    const portOf = async (name: string) => {
      const nodes = await nodesOf(service)
      const id = nodes.find((node) => node.name === name)?.node_id
      const link = (await linksOf(service)).find((it) => it.nodes.some(({ node_id }) => node_id === id))
      return link?.nodes.find(({ node_id }) => node_id !== id)?.port_number
    }
    expect(await portOf('PC2')).toBe(2)
    const file = pcs(3)
      .replace('  PC0: { kind: pc,', '  Web: { kind: pc, was: PC0,')
      .replace('members: [PC0, PC1, PC2]', 'members: [PC2, Web]')
    expect((await put(service, file)).steps).toMatchObject([
      { do: 'delete', what: 'link' },
      { do: 'update', name: 'Web', because: 'its name was PC0' },
    ])
    await expect.poll(async () => (await put(service, file)).steps, { timeout: hangMs }).toEqual([])
    expect((await nodesOf(service)).find(({ name }) => name === 'Web')?.node_id).toBe(first?.node_id)
    expect([await portOf('PC2'), await portOf('Web')]).toEqual([2, 0])
  })

  testWith(requireProgram('qemu-system-x86_64')).each([
    { medium: 'cd', property: 'cdrom_image', name: 'day0.iso', at: 0x8001, magic: 'CD001' },
    { medium: 'disk', property: 'hdb_disk_image', name: 'day0.img', at: 54, magic: 'FAT16' },
  ])('gives a machine a $medium with the files of `day0`, with which it starts', async (made) => {
    const service = await start()
    const file = (text: string) => `
lab: campus
nodes:
  R1:
    kind: machine
    platform: x86_64
    day0: { medium: ${made.medium}, label: cidata, files: { user-data: { text: "${text}" }, meta-data: { text: "" } } }
`
    expect(await ended(service, (await put(service, file('one'))).job_id)).toMatchObject({ status: 'done' })
    const [node] = await nodesOf(service)
    expect(node?.properties[made.property]).toBe(`./${made.name}`)
    const path = join(node?.node_directory ?? '', made.name)
    const image = await readFile(path)
    expect(image.toString('latin1', made.at, made.at + 5)).toBe(made.magic)
    expect(image.includes('one')).toBe(true)
    expect(await put(service, file('one'))).toMatchObject({ steps: [], withheld: [] })
    const own = `/v2/projects/${node?.project_id}/nodes/${node?.node_id}`
    expect(await service.call('POST', `${own}/start`)).toMatchObject({ status: 'started' })
    await service.call('POST', `${own}/stop`)
    expect((await put(service, file('two'))).withheld).toMatchObject([{ how: 'recreate', flag: 'recreate' }])
    await ended(service, (await put(service, file('two'), { recreate: true })).job_id)
    expect((await readFile(path)).includes('two')).toBe(true)
    expect(await put(service, file('two'))).toMatchObject({ steps: [], withheld: [] })
  })
})
