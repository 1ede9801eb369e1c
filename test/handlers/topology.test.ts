import { expect, test } from 'vitest'
import type { LabJob } from '../../src/model/lab/job.ts'
import type { LabLink } from '../../src/model/lab/link.ts'
import type { LabNode } from '../../src/model/lab/node.ts'
import type { LabPlan, LabTopology } from '../../src/model/lab/topology.ts'
import { body, del, post, put, send } from '../support/api.ts'
import { openFeed } from '../support/feed.ts'
import { requireProgram } from '../support/require.ts'
import { testWith } from '../support/test-with.ts'

const projects = '/v2/projects'
/** A name that no other test has. */
const newName = () => `lab-${crypto.randomUUID().slice(0, 8)}`
const at = (lab: string) => `${projects}/${lab}/topology`

const fileOf = (name: string, { delay = '20ms', third = '  PC3: { kind: pc }\n' } = {}) => `
lab: ${name}
nodes:
  PC1: { kind: pc, config: { text: "ip 10.0.0.1/24" } }
  PC2: { kind: pc, config: { text: "ip 10.0.0.2/24" }, after: [PC1] }
${third}segments:
  lan: { kind: switch, members: [PC1, { end: PC2, delay: ${delay} }] }
checks:
  - { from: PC1, ping: PC2 }
  - { not: { from: PC1, ping: 10.0.0.9, within: 2s } }
`

/** Sends a lab file. */
const apply = (file: string, lab: string, query = '', headers: Record<string, string> = {}): Promise<Response> =>
  send(`${at(lab)}${query}`, { method: 'PUT', body: file, headers: { 'content-type': 'application/yaml', ...headers } })

const planned = async (answer: Promise<Response>, status: number): Promise<LabPlan> => {
  const it = await answer
  if (it.status !== status) throw new Error(`${it.status}: ${await it.text()}`)
  return body<LabPlan>(it)
}

/** Applies a lab file, and waits for its job. */
async function applied(file: string, lab: string, query = ''): Promise<LabJob> {
  const { job_id } = await planned(apply(file, lab, query), 202)
  return ended(job_id as string)
}

async function ended(id: string): Promise<LabJob> {
  for (;;) {
    const job = await body<LabJob>(send(`/v2/jobs/${id}`))
    if (job.status !== 'running') return job
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const nodesOf = async (lab: string) => body<LabNode[]>(send(`${projects}/${lab}/nodes`))
const linksOf = async (lab: string) => body<LabLink[]>(send(`${projects}/${lab}/links`))

test('a lab file makes a lab, is shown as a plan first, and changes nothing when it is applied again', async () => {
  const lab = newName()
  const plan = await planned(apply(fileOf(lab), lab, '?dry_run=true'), 200)
  expect(plan.steps.map((step) => `${step.do} ${step.what} ${step.name}`).slice(0, 5)).toEqual([
    `create project ${lab}`,
    ...['create node PC1', 'create node PC2', 'create node PC3', 'create segment lan'],
  ])
  expect((await send(`${projects}/${lab}`)).status).toBe(404)

  expect(await applied(fileOf(lab), lab, '?start=true')).toMatchObject({ action: 'apply', status: 'done' })
  const nodes = await nodesOf(lab)
  expect(nodes.map(({ name, status }) => [name, status])).toEqual(
    expect.arrayContaining(['PC1', 'PC2', 'PC3', 'lan'].map((name) => [name, 'started'])),
  )
  expect((await linksOf(lab)).map(({ filters }) => filters)).toEqual(expect.arrayContaining([{}, { delay: [20] }]))
  const topology = await send(at(lab))
  expect(await body<LabTopology>(topology)).toMatchObject({ segments: [{ name: 'lan' }], nodes: { length: 3 } })

  const again = await planned(apply(fileOf(lab), lab, '?start=true'), 200)
  expect(again).toMatchObject({ project_id: plan.project_id, steps: [], withheld: [], extra: [] })
  expect(topology.headers.get('etag')).toBe(`"${again.revision}"`)
  await del(`${projects}/${lab}`)
})

test('changes are made while nodes run, and disturbing steps are withheld until an option allows them', async () => {
  const lab = newName()
  await applied(fileOf(lab), lab, '?start=true')
  const changed = fileOf(lab, { delay: '40ms', third: '' }).replace('10.0.0.2', '10.0.0.3')
  const plan = await planned(apply(changed, lab), 202)
  expect(plan.steps).toMatchObject([
    { do: 'update', what: 'link', how: 'live', because: 'impairment: delay 20ms -> 40ms' },
  ])
  expect(plan.withheld).toMatchObject([
    { name: 'PC2', how: 'restart', because: 'config', flag: 'restart' },
    { do: 'delete', name: 'PC3', flag: 'delete_extra' },
  ])
  expect(await ended(plan.job_id as string)).toMatchObject({ status: 'done' })
  expect(await applied(changed, lab, '?restart=true&delete_extra=true')).toMatchObject({ status: 'done' })
  const nodes = await nodesOf(lab)
  expect(nodes.map(({ name, status }) => [name, status]).sort()).toEqual([
    ...[
      ['PC1', 'started'],
      ['PC2', 'started'],
      ['lan', 'started'],
    ],
  ])
  expect(nodes.find(({ name }) => name === 'PC2')?.properties.startup_script).toContain('10.0.0.3')

  // One undo takes the whole apply back.
  expect((await post(`${projects}/${lab}/undo`)).status).toBe(200)
  expect((await nodesOf(lab)).map(({ name }) => name)).toContain('PC3')
  await del(`${projects}/${lab}`)
})

test('a locked node that has left the file stays, also when extra nodes are deleted', async () => {
  const lab = newName()
  await applied(fileOf(lab), lab)
  await put(`${projects}/${lab}/nodes/PC3`, { locked: true })
  const plan = await planned(apply(fileOf(lab, { third: '' }), lab, '?dry_run=true&delete_extra=true'), 200)
  const because = 'it has left the file, and is locked'
  expect(plan).toMatchObject({ steps: [], withheld: [], extra: [{ what: 'node', name: 'PC3', because }] })
  await del(`${projects}/${lab}`)
})

test('the changed side of a configuration wins, and when both have changed, it stays', async () => {
  const lab = newName()
  await applied(fileOf(lab), lab)
  const config = `${projects}/${lab}/nodes/PC1/config`
  await send(config, { method: 'PUT', body: 'ip 10.0.0.7/24' })
  const kept = await planned(apply(fileOf(lab), lab), 200)
  expect(kept).toMatchObject({ steps: [], extra: [{ what: 'config', name: 'PC1' }] })
  const changed = fileOf(lab).replace('10.0.0.1/', '10.0.0.8/')
  expect((await planned(apply(changed, lab), 200)).withheld).toMatchObject([{ name: 'PC1', flag: 'config_from_file' }])
  await applied(changed, lab, '?config_from_file=true')
  expect(await (await send(config)).text()).toContain('10.0.0.8')
  await del(`${projects}/${lab}`)
})

test('the checks of a lab file run on the service', async () => {
  const lab = newName()
  await applied(fileOf(lab), lab, '?start=true')
  const headers = { 'content-type': 'application/yaml' }
  const run = await send(`${projects}/${lab}/checks`, { method: 'POST', body: fileOf(lab), headers })
  expect(run.status).toBe(201)
  expect(await ended((await body<LabJob>(run)).job_id)).toMatchObject({
    status: 'done',
    checks: [{ name: 'PC1 pings PC2', state: 'ok' }, { state: 'ok' }],
  })

  const some = (only: string[]) =>
    send(`${projects}/${lab}/checks`, {
      method: 'POST',
      body: JSON.stringify({ document: fileOf(lab), only }),
      headers: { 'content-type': 'application/json' },
    })
  const { job_id } = await body<LabJob>(some(['PC1 pings PC2']))
  expect((await ended(job_id)).checks).toMatchObject([{ name: 'PC1 pings PC2', state: 'ok' }])
  const refused = await some(['PC1 pings PC2', 'PC1 pings PC7'])
  expect([refused.status, (await body<{ message: string }>(Promise.resolve(refused))).message]).toEqual([
    ...[400, 'body.only: the lab file has no check "PC1 pings PC7"'],
  ])
  await del(`${projects}/${lab}`)
})

test('files that the lab file names are sent with it', async () => {
  const lab = newName()
  const document = fileOf(lab).replace('{ text: "ip 10.0.0.1/24" }', './pc1.vpc')
  const refused = await put(at(lab), { document })
  expect([refused.status, await refused.json()]).toMatchObject([
    400,
    { errors: [{ line: 4, path: 'nodes.PC1.config' }] },
  ])
  const { job_id } = await planned(put(at(lab), { document, files: { './pc1.vpc': 'ip 10.0.0.5/24' } }), 202)
  await ended(job_id as string)
  expect(await (await send(`${projects}/${lab}/nodes/PC1/config`)).text()).toBe('ip 10.0.0.5/24')
  await del(`${projects}/${lab}`)
})

test('all faults of a file are reported, and nothing is changed', async () => {
  const lab = newName()
  const file = `lab: ${lab}\nnodes:\n  PC1: { kind: pcc }\n  PC2: { kind: pc, imgae: x }\n`
  const answer = await apply(file, lab)
  expect(answer.status).toBe(400)
  const { errors } = await body<{ errors: { line: number; message: string }[] }>(answer)
  expect(errors.map(({ line }) => line)).toEqual([3, 4])
  const many = Array.from({ length: 33 }, (_, index) => `  PC${index}: { kind: pcc }\n`)
  const first = await body<{ errors: object[]; message: string }>(
    await apply(`lab: ${lab}\nnodes:\n${many.join('')}`, lab),
  )
  expect(first).toMatchObject({ more_errors: 13, message: expect.stringMatching(/\nand 13 more$/) })
  expect(first.errors).toHaveLength(20)
  expect((await send(`${projects}/${lab}`)).status).toBe(404)
  expect((await apply('{', lab, '', { 'content-type': 'application/json' })).status).toBe(400)
  expect((await put(at(lab), { document: file, bogus: 1 })).status).toBe(400)
  expect((await apply('', lab)).status).toBe(400)
})

test('a project that was not made from a lab file is not changed, unless it is taken over', async () => {
  const name = newName()
  await post(projects, { name })
  const refused = await apply(fileOf(name), name)
  expect([refused.status, refused.headers.get('x-patchbay-error')]).toEqual([409, 'made-otherwise'])
  expect(await applied(fileOf(name), name, '?take_over=true')).toMatchObject({ status: 'done' })
  expect((await planned(apply(fileOf(name), name), 200)).steps).toEqual([])
  await del(`${projects}/${name}`)
})

test('If-Match refuses a project that was changed meanwhile', async () => {
  const lab = newName()
  expect((await apply(fileOf(lab), lab, '', { 'if-match': '"1"' })).status).toBe(412)
  await applied(fileOf(lab), lab)
  const etag = (await send(at(lab))).headers.get('etag') ?? ''
  expect((await send(at(lab), { headers: { 'if-none-match': etag } })).status).toBe(304)
  expect((await apply(fileOf(lab), lab, '', { 'if-match': etag })).status).toBe(200)
  await put(`${projects}/${lab}/nodes/PC1`, { x: 3 })
  expect((await apply(fileOf(lab), lab, '', { 'if-match': etag })).status).toBe(412)
  await del(`${projects}/${lab}`)
})

testWith(requireProgram('qemu-system-x86_64'))(
  'with partial, a node whose image is missing is a placeholder with its links, and is made when the image is there',
  async () => {
    const lab = newName()
    const image = `router-${lab}.img`
    const file = `
lab: ${lab}
nodes:
  PC1: { kind: pc }
  PC2: { kind: pc }
  R1:
    kind: machine
    platform: x86_64
    image: ${image}
    adapters: 2
    ports: [ge-0, ge-1]
    at: [10, 20]
    day0: { label: cidata, files: { user-data: { text: "hostname: R1" } } }
links:
  - [PC1, R1:ge-1]
segments:
  lan: { kind: switch, members: [PC2, R1:ge-0] }
`
    expect((await apply(file, lab, '?start=true')).status).toBe(400)
    const cannot_run = [
      { name: 'R1', kind: 'machine-emulator', images: [image], reason: `there is no image "${image}"` },
    ]
    const plan = await planned(apply(file, lab, '?start=true&partial=true'), 202)
    expect(plan).toMatchObject({ cannot_run })
    expect((await ended(plan.job_id as string)).status).toBe('done')

    // A start names the image, for a client that uploads it and tries again.
    const start = send(`/v2/projects/${lab}/jobs`, {
      method: 'POST',
      body: JSON.stringify({ action: 'start', nodes: ['R1'] }),
    })
    const { job_id: startId } = await body<LabJob>(await start)
    const { nodes: failed } = await ended(startId)
    expect(failed).toMatchObject([{ name: 'R1', state: 'failed', image }])

    const nodes = await nodesOf(lab)
    const R1 = nodes.find(({ name }) => name === 'R1')
    expect(R1).toMatchObject({ x: 10, y: 20, status: 'stopped', status_reason: expect.stringContaining(image) })
    expect(R1?.ports.map(({ name }) => name)).toEqual(['ge-0', 'ge-1'])
    expect(nodes.filter(({ status }) => status === 'started').map(({ name }) => name)).toEqual(
      expect.arrayContaining(['PC1', 'PC2']),
    )
    expect(await linksOf(lab)).toHaveLength(3)
    // A placeholder has no disk to lose: it just gets a setting that only a new node takes.
    const other = file.replace('platform: x86_64', 'platform: aarch64')
    const changed = await planned(apply(other, lab, '?partial=true&recreate=true'), 202)
    expect(await ended(changed.job_id as string)).toMatchObject({ status: 'done' })
    await ended((await planned(apply(file, lab, '?partial=true&recreate=true'), 202)).job_id as string)

    // The same file again changes nothing, and still says what cannot run.
    expect(await planned(apply(file, lab, '?start=true&partial=true'), 200)).toMatchObject({ steps: [], cannot_run })

    await send(`/v2/compute/machine-emulator/images/${image}`, { method: 'POST', body: 'content' })
    const again = await planned(apply(file, lab, '?partial=true'), 202)
    expect(again.cannot_run).toBeUndefined()
    expect(await ended(again.job_id as string)).toMatchObject({ status: 'done', reason: null })
    expect((await nodesOf(lab)).find(({ name }) => name === 'R1')).toMatchObject({
      status_reason: null,
      properties: { hda_disk_image: image, cdrom_image: './day0.iso' },
    })
    expect((await linksOf(lab)).map(({ verdict }) => verdict)).not.toContain(null)
    expect(await planned(apply(file, lab), 200)).toMatchObject({ steps: [] })
    await del(`${projects}/${lab}`)
    await del(`/v2/compute/machine-emulator/images/${image}`)
  },
)

test('a failed apply leaves no changes, and reports which step failed', async () => {
  const lab = newName()
  const third = '  PC4: { kind: pc }\n  R1: { kind: hypervisor, vmname: there-is-none }\n'
  const first = await applied(fileOf(lab, { third }), lab)
  expect(first).toMatchObject({ status: 'failed', reason: expect.stringMatching(/^R1: /) })
  expect((await send(`${projects}/${lab}`)).status).toBe(404)
  expect(await body<{ name: string }[]>(send('/v2/compute/projects'))).not.toContainEqual(
    expect.objectContaining({ name: lab }),
  )

  await applied(fileOf(lab), lab)
  const before = (await nodesOf(lab)).map(({ name }) => name).sort()
  const feed = await openFeed(`${projects}/${lab}/notifications`)
  await feed.line()
  const job = await applied(fileOf(lab, { third }), lab)
  expect(job).toMatchObject({ status: 'failed', reason: expect.stringMatching(/^R1: /) })
  expect((await nodesOf(lab)).map(({ name }) => name).sort()).toEqual(before)
  for (;;) {
    const { action, event } = await feed.next()
    if (action === 'job.step' && (event as { state?: string }).state === 'failed') {
      expect(event).toMatchObject({ do: 'create', name: 'R1', job_id: job.job_id })
      break
    }
  }
  await del(`${projects}/${lab}`)
})
