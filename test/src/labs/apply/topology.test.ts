import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import type { Desired } from '../../../../src/labfile/desired.ts'
import { applyPlan } from '../../../../src/labs/apply/executor.ts'
import { changesAnything, planView, prepare } from '../../../../src/labs/apply/prepare.ts'
import type { ComputeAgents } from '../../../../src/labs/computes/agents.ts'
import type { Lab } from '../../../../src/labs/lab/lab.ts'

import { removeLink, updateLink } from '../../../../src/labs/links/links.ts'
import { removeNode, runNodeAction } from '../../../../src/labs/nodes/nodes.ts'
import { updateNode } from '../../../../src/labs/nodes/update-node.ts'
import type { PlanOptions } from '../../../../src/labs/plan/types.ts'
import { ApiError, conflict, tooMany } from '../../../../src/lib/errors/api-error.ts'
import type { NodeRef } from '../../../../src/model/kinds/node.ts'
import { desiredOf, type SmallLab, smallLabs } from '../../../support/desired.ts'
import { labsInMemory, MemoryCompute, overriding, wrapping } from '../../../support/memory-compute.ts'

const all: PlanOptions = { restart: true, recreate: true, delete_extra: true, config_from_file: true }

/** A new empty lab on a compute in memory. */
async function newLab() {
  const compute = new MemoryCompute()
  const labs = await labsInMemory(compute)
  const agentFor: ComputeAgents = compute.agent
  const { project_id } = await labs.creation.create({ name: 'lab' }, agentFor, { lastApplied: { by: 'me' } })
  const lab = await labs.lab(project_id)
  const plan = (desired: Desired, options: PlanOptions = all) => prepare(labs, lab, desired, options, agentFor)
  const apply = async (desired: Desired, options: PlanOptions = all) => {
    const prepared = await plan(desired, options)
    if (!changesAnything(lab, 'me', prepared)) return
    await applyPlan(labs, lab, { prepared, by: 'me' }, agentFor).over
  }
  return { compute, labs, lab, agentFor, plan, apply }
}

/**
 * What a file decides of a lab, by names. Free ports of segments are left out: a member keeps the port that it has. So does a pc its MAC address,
 * which the file need not give.
 */
function shapeOf(lab: Lab, { nodes: given, links: wanted }: Pick<Desired, 'nodes' | 'links'>): unknown {
  const { nodes, links } = lab.document
  const macOf = (name: string, mac: unknown) =>
    given.some((it) => it.name === name && 'mac_address' in it.properties) ? mac : 'any'
  const isOpen = (name: string) =>
    wanted.some(({ ends }) => ends.some((end) => end.node === name && end.port_number === undefined))
  // A member that has kept its port may be beyond those that a switch has anyway.
  const portsOf = (name: string, ports: unknown) => (isOpen(name) ? (ports as unknown[]).slice(0, 8) : ports)
  return {
    nodes: [...nodes.values()]
      .map(
        ({
          name,
          node_type,
          properties: { startup_script, ports_mapping, mac_address, ...properties },
          labels,
          after,
          symbol,
        }) => ({
          name,
          node_type,
          labels,
          after,
          symbol,
          properties: {
            ...properties,
            ports_mapping: portsOf(name, ports_mapping),
            mac_address: macOf(name, mac_address),
            startup_script: startup_script ?? '',
          },
        }),
      )
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
    links: [...links.values()]
      .map(({ nodes: ends, name, filters, filters_ab, filters_ba, suspend }) => ({
        name,
        filters,
        suspend,
        ends: ends
          .map((end, index) => {
            const node = nodes.get(end.node_id)?.name ?? ''
            const both = index === 0 ? [filters_ab, filters_ba] : [filters_ba, filters_ab]
            return JSON.stringify([node, end.adapter_number, isOpen(node) ? 'any' : end.port_number, ...both])
          })
          .sort(),
      }))
      .sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)),
  }
}

/** Everything that the document and the compute have, but for the number and the time of the last edit. */
function wholeOf(lab: Lab, compute: MemoryCompute): unknown {
  const { project, nodes, links } = lab.document
  const { revision: _, changed_at: __, ...rest } = project
  const byId = (map: ReadonlyMap<string, unknown>) => Object.fromEntries([...map].sort(([a], [b]) => (a < b ? -1 : 1)))
  const [there, wires] = [byId(compute.nodes), byId(compute.links)]
  return structuredClone({ project: rest, nodes: byId(nodes), links: byId(links), there, wires })
}

test('applied twice, a file changes nothing more', async () => {
  await fc.assert(
    fc.asyncProperty(smallLabs, async (small) => {
      const { lab, plan, apply } = await newLab()
      const desired = desiredOf(small)
      await apply(desired)
      const again = await plan(desired)
      expect(planView(again.plan, desired, { project_id: lab.id, revision: 0 })).toMatchObject({
        steps: [],
        withheld: [],
        extra: [],
      })
      expect(changesAnything(lab, 'me', again)).toBe(false)
    }),
    { numRuns: 40 },
  )
})

test('an apply of a file gives the same lab after any other file as for a new lab', async () => {
  await fc.assert(
    fc.asyncProperty(smallLabs, smallLabs, async (first, second) => {
      const [a, b] = [await newLab(), await newLab()]
      const desired = desiredOf(second)
      await a.apply(desiredOf(first))
      await a.apply(desired)
      await b.apply(desired)
      expect(shapeOf(a.lab, desired)).toEqual(shapeOf(b.lab, desired))
      expect((await a.plan(desired)).plan).toMatchObject({ steps: [], withheld: [] })
    }),
    { numRuns: 40 },
  )
})

/** A configuration leaves the file of a running node, and a setting comes that needs no restart. */
const leftConfig: [SmallLab, SmallLab] = [
  { nodes: [{ kind: 'pc', config: 'ip 10.0.0.1/24' }], switches: [], links: [], offset: 0 },
  { nodes: [{ kind: 'pc', console: 5100 }], switches: [], links: [], offset: 0 },
]

test('an apply without flags takes the steps that need none, and a later one with all flags the rest', async () => {
  await fc.assert(
    fc.asyncProperty(smallLabs, smallLabs, async (first, second) => {
      const [a, b] = [await newLab(), await newLab()]
      const desired = desiredOf(second)
      await a.apply(desiredOf(first))
      for (const node of a.lab.document.nodes.values()) await runNodeAction(a.labs, a.lab, node, 'start', a.agentFor)
      await a.apply(desired, {})
      const { steps } = (await a.plan(desired, {})).plan
      expect(steps).toEqual([])
      await a.apply(desired)
      await b.apply(desired)
      expect(shapeOf(a.lab, desired)).toEqual(shapeOf(b.lab, desired))
    }),
    { numRuns: 35, examples: [leftConfig] },
  )
})

test('settings that only a new node can have are withheld together, without delaying other changes of the node', async () => {
  const { lab, plan, apply } = await newLab()
  const file = (mac: string, label: string, more = {}): Desired =>
    desiredOf({ nodes: [{ kind: 'pc', mac, label, ...more }], switches: [], links: [], offset: 0 })
  await apply(file('00:50:79:66:68:0a', 'core'), { start: true })
  const changed = file('00:50:79:66:68:0b', 'edge', { config: 'ip dhcp' })
  const moved = { ...changed, nodes: changed.nodes.map((it) => ({ ...it, compute_id: 'other' })) }
  const withheld = [
    {
      ...{ name: 'n0', how: 'recreate', flag: 'recreate' },
      because: 'it is on the compute local; mac_address is read at creation only',
    },
    { name: 'n0', how: 'restart', flag: 'restart', because: 'config' },
  ]
  const first = await plan(moved, {})
  expect(first.plan).toMatchObject({
    withheld,
    steps: [{ name: 'n0', how: 'live', because: expect.stringMatching(/^labels /) }],
  })
  await apply(moved, {})
  expect([...lab.document.nodes.values()]).toMatchObject([
    { labels: { role: 'edge' }, properties: { mac_address: '00:50:79:66:68:0a' } },
  ])
  expect((await plan(moved, {})).plan).toMatchObject({ withheld, steps: [] })
})

test('changes of links come before or after their node is made again, and not in between', async () => {
  const { compute, labs, lab, agentFor, plan, apply } = await newLab()
  const file = (mac: string): Desired =>
    desiredOf({
      nodes: [{ kind: 'pc', mac }, { kind: 'pc' }],
      ...{ switches: [{}], offset: 0 },
      links: [{ from: 0, to: 2 }],
    })
  await apply(file('00:50:79:66:68:0a'), { ...all, start: false })
  const [link] = [...lab.document.links.values()]
  const link_id = link?.link_id as string
  const prepared = await plan(file('00:50:79:66:68:0b'), { ...all, start: false })
  expect(prepared.plan.steps).toMatchObject([{ how: 'recreate' }])
  const others: Promise<unknown>[] = []
  const unwiring: ComputeAgents = (id) => {
    return wrapping(agentFor(id), 'links.remove', (remove) => async (...given) => {
      await remove(...given)
      others.push(updateLink(lab, link_id, { suspend: true }, agentFor), removeLink(labs, lab, link_id, agentFor))
      // What they can do without the apply is done by then.
      await new Promise(setImmediate)
    })
  }
  await applyPlan(labs, lab, { prepared, by: 'me' }, unwiring).over
  await Promise.all(others)
  expect(others).toHaveLength(2)
  expect([...lab.document.links.values(), ...compute.links.values()]).toEqual([])
})

test('of several failures of an apply every defect is logged, also one after a refusal', async () => {
  const reported: unknown[] = []
  const compute = new MemoryCompute()
  const labs = await labsInMemory(compute, undefined, { report: (error) => void reported.push(error) })
  const agentFor: ComputeAgents = compute.agent
  const { project_id } = await labs.creation.create({ name: 'lab' }, agentFor, { lastApplied: { by: 'me' } })
  const lab = await labs.lab(project_id)
  const pcs = { nodes: [{ kind: 'pc' }, { kind: 'pc' }, { kind: 'pc' }], switches: [], offset: 0, links: [] } as const
  const prepared = await prepare(labs, lab, desiredOf({ ...pcs, nodes: [...pcs.nodes] } as never), all, agentFor)
  const failures = [conflict('A refusal of the test'), new TypeError('A defect'), new RangeError('Another defect')]
  const [, ...defects] = failures
  compute.beforeChange = () => {
    const failure = failures.shift()
    if (failure !== undefined) throw failure
  }
  await expect(applyPlan(labs, lab, { prepared, by: 'me' }, agentFor).over).rejects.toThrow('A refusal of the test')
  expect(reported).toEqual(defects)
})

/** An apply that has made so many pcs, and starts them: `answer` ends the starts, with or without a failure. */
async function whileStarting(count: number) {
  const { lab, labs, agentFor, plan } = await newLab()
  const pcs = Array.from({ length: count }, () => ({ kind: 'pc' as const }))
  const prepared = await plan(desiredOf({ nodes: pcs, switches: [], links: [], offset: 0 }), { ...all, start: true })
  let answer = (_failure?: Error) => {}
  const answered = new Promise<void>((resolve, reject) => {
    answer = (failure) => (failure === undefined ? resolve() : reject(failure))
  })
  const start = vi.fn(() => answered)
  const starting: ComputeAgents = (id) => {
    const agent = agentFor(id)
    const nodes = { start: (ref: NodeRef) => start().then(() => agent.nodes.start(ref)) }
    return overriding(agent, { nodes })
  }
  const { id, over } = applyPlan(labs, lab, { prepared, by: 'me' }, starting)
  over.catch(() => {})
  await vi.waitFor(() => expect(start).toHaveBeenCalled())
  return { lab, labs, agentFor, id, over, answer }
}

const refusal = conflict('A refusal of the test')

test('no node that does not start is a done step of its apply, also beyond those that the job of the starts shows', async () => {
  const { labs, id, over, answer } = await whileStarting(103)
  answer(refusal)
  await expect(over).rejects.toThrow(refusal.message)
  const { done, failed, skipped } = labs.jobs.get(id)
  expect([done, failed + skipped]).toEqual([103, 103])
})

test('an apply whose project is deleted while its nodes start shows how the starts ended', async () => {
  const { lab, labs, agentFor, over, answer } = await whileStarting(1)
  const emit = vi.spyOn(lab, 'emit')
  await labs.lifecycle.remove(lab.id, agentFor)
  answer(refusal)
  await over
  const steps = emit.mock.calls.flatMap(([{ action, event }]) => (action === 'job.step' ? [event] : []))
  expect(steps).toMatchObject([{ do: 'start', state: 'cancelled' }])
})

test('an apply whose nodes are renamed and deleted while they start fails with what their computes say', async () => {
  const { lab, labs, agentFor, id, over, answer } = await whileStarting(2)
  const [renamed, deleted] = [...lab.document.nodes.keys()] as [string, string]
  await updateNode(labs, lab, renamed, { name: 'other' }, agentFor)
  await removeNode(labs, lab, deleted, agentFor)
  answer(refusal)
  await expect(over).rejects.toThrow(refusal.message)
  expect(labs.jobs.get(id)).toMatchObject({ status: 'failed', failed: 2 })
})

test('an apply whose starts are refused shows none of them as running', async () => {
  const { labs, lab, agentFor, plan } = await newLab()
  const emit = vi.spyOn(lab, 'emit')
  const pcs = { nodes: [{ kind: 'pc' as const }], switches: [], links: [], offset: 0 }
  const prepared = await plan(desiredOf(pcs), { ...all, start: true })
  vi.spyOn(labs.jobs, 'start').mockImplementation(() => {
    throw tooMany('200 jobs are already running')
  })
  await expect(applyPlan(labs, lab, { prepared, by: 'me' }, agentFor).over).rejects.toMatchObject({ status: 429 })
  const starts = emit.mock.calls.flatMap(([{ action, event }]) =>
    action === 'job.step' && event.do === 'start' ? [event] : [],
  )
  expect(starts.at(-1)).toMatchObject({ state: 'failed', reason: '200 jobs are already running' })
})

test('a capture that an apply has ended goes on, in a file of its own, when the apply fails', async () => {
  const { compute, lab, apply } = await newLab()
  const pcs = Array.from({ length: 4 }, () => ({ kind: 'pc' as const }))
  const ends = [
    { from: 0, to: 1, name: 'core' },
    { from: 2, to: 3, name: 'wan' },
  ]
  const plain = desiredOf({ nodes: pcs, switches: [], links: ends, offset: 0 })
  const captured = plain.links.map((link) => ({ ...link, capture: { file: `${link.name}.pcap`, at: link.at } }))
  await apply({ ...plain, links: captured })
  expect([...compute.captures.values()].sort()).toEqual(['core.pcap', 'wan.pcap'])
  let captures = 0
  compute.beforeChange = (what) => {
    if (what === 'capture' && ++captures === 2) throw new ApiError(503, 'A failure of the test')
  }
  await expect(apply(plain)).rejects.toMatchObject({ status: 503 })
  const files = [...lab.document.links.values()].map(({ capture }) => capture?.fileName)
  expect(files.sort()).toEqual([...compute.captures.values()].sort())
  expect(files).toContainEqual(expect.stringMatching(/^(core|wan)-2\.pcap$/))
})

/** Two links of the first file that have, in the second one, a port of each other; the failing request comes after both. */
const exchangedEnds: [SmallLab, SmallLab, number] = [
  {
    ...{ nodes: [{ kind: 'pc' }, { kind: 'pc' }, { kind: 'pc' }, { kind: 'pc' }], switches: [{}], offset: 0 },
    links: [
      { from: 0, to: 4, name: 'core' },
      { from: 1, to: 2, name: 'wan' },
    ],
  },
  {
    nodes: [
      { kind: 'pc', config: 'ip 10.0.0.1/24' },
      { kind: 'pc', config: 'ip 10.0.0.1/24' },
    ],
    ...{ switches: [{}, {}], offset: 0 },
    links: [
      { from: 0, to: 1, name: 'core' },
      { from: 3, to: 2, name: 'wan' },
    ],
  },
  7,
]

test.each([
  ['stopped', 40],
  // Their starts take time.
  ['running', 25],
] as const)(
  'an apply to %s nodes that fails at any request changes nothing, and the next one succeeds',
  async (nodes, numRuns) => {
    await fc.assert(
      fc.asyncProperty(smallLabs, smallLabs, fc.nat(30), async (first, second, at) => {
        const { compute, lab, apply, plan } = await newLab()
        // What runs is stopped for some changes, and runs again.
        await apply(desiredOf(first), { ...all, start: nodes === 'running' })
        const before = wholeOf(lab, compute)
        let count = 0
        let hasFailed = false
        compute.beforeChange = (what) => {
          // A node that does not start undoes nothing.
          if (what === 'act' || count++ !== at) return
          hasFailed = true
          throw conflict('A failure of the test')
        }
        const desired = desiredOf(second)
        // Nothing that destroys: what is destroyed cannot be put back.
        const gentle = { ...all, recreate: false }
        const failure = await apply(desired, gentle).catch((error: Error) => error)
        expect(failure === undefined).toBe(!hasFailed)
        compute.beforeChange = () => {}
        if (hasFailed) expect(withoutMarks(wholeOf(lab, compute))).toEqual(withoutMarks(before))
        await apply(desired, gentle)
        expect((await plan(desired, gentle)).plan.steps).toEqual([])
      }),
      { numRuns, examples: [exchangedEnds] },
    )
  },
)

const withoutMarks = (whole: unknown): unknown =>
  JSON.parse(
    JSON.stringify(whole, (key, value) =>
      key === 'lastApplied' || key === 'wiring' ? undefined : value === null ? '' : value,
    ),
  )
