import { expect, onTestFinished, test, vi } from 'vitest'
import type { NodeAgent } from '../../../src/host-agent.ts'
import type { ComputeAgents } from '../../../src/labs/computes/agents.ts'
import { createDrawing } from '../../../src/labs/drawings.ts'
import type { SnapshotRecord } from '../../../src/labs/lab/document.ts'
import type { ReportedNode } from '../../../src/labs/lab/node-on-compute.ts'
import type { LabDirectory } from '../../../src/labs/lab/store.ts'
import { createNode } from '../../../src/labs/nodes/create-node.ts'
import { duplicateNode, removeNode } from '../../../src/labs/nodes/nodes.ts'
import { updateNode } from '../../../src/labs/nodes/update-node.ts'
import { restoreSnapshot, snapshotView, takeSnapshot } from '../../../src/labs/snapshots/snapshots.ts'
import { ApiError, conflict, missingImage } from '../../../src/lib/errors/api-error.ts'
import type { LabListEvent } from '../../../src/model/lab/event.ts'
import { composeLab } from '../../../src/server/compose.ts'
import { labsInMemory, MemoryCompute, overriding } from '../../support/memory-compute.ts'
import { MemoryLabs, memoryPorts } from '../../support/memory-labs.ts'

test('a closed lab that an export is closing on its compute again is opened there for the next export after that', async () => {
  const labs = await labsInMemory(new MemoryCompute())
  const { agent } = labs.computes
  const { project_id } = await labs.creation.create({ name: 'twice', compute_id: 'local' }, agent)
  await labs.lifecycle.close(project_id, agent)
  const lab = await labs.find(project_id)
  const did: string[] = []
  let mayClose = () => {}
  const closing = new Promise<void>((resolve) => {
    mayClose = resolve
  })
  const agentFor = () =>
    overriding(agent('local'), {
      projects: {
        async create() {
          did.push('open')
          return {}
        },
        async close() {
          did.push('closing')
          await closing
          did.push('closed')
        },
      },
    })

  const first = labs.parts.withOpen(lab, agentFor, async () => void did.push('first'))
  await expect.poll(() => did).toEqual(['open', 'first', 'closing'])
  const second = labs.parts.withOpen(lab, agentFor, async () => void did.push('second'))
  mayClose()
  await Promise.all([first, second])
  expect(did).toEqual(['open', 'first', 'closing', 'closed', 'open', 'second', 'closing', 'closed'])
})

test('a lab that one of its computes does not close stays open on the others', async () => {
  const [near, far] = [new MemoryCompute(), new MemoryCompute()]
  const labs = await labsInMemory(near, new MemoryLabs(), { others: new Map([['far', far]]) })
  const { agent } = labs.computes
  const { project_id } = await labs.creation.create({ name: 'wide', compute_id: 'local' }, agent)
  const lab = await labs.lab(project_id)
  await labs.lifecycle.attachCompute(lab, 'far', agent)
  const refusing: ComputeAgents = (id) => {
    const close = async () => {
      throw conflict('It is busy')
    }
    return id === 'far' ? overriding(agent(id), { projects: { close } }) : agent(id)
  }
  await expect(labs.lifecycle.close(project_id, refusing)).rejects.toMatchObject({ status: 409, message: 'It is busy' })
  expect(lab.project().status).toBe('opened')
  expect([near, far].map(({ projects }) => projects.get(project_id)?.isOpen)).toEqual([true, true])
  await labs.lifecycle.close(project_id, agent)
  expect([near, far].map(({ projects }) => projects.get(project_id)?.isOpen)).toEqual([false, false])
})

test('a snapshot of a closed lab that is being opened is one of the open lab', async () => {
  const labs = await labsInMemory(new MemoryCompute())
  const { agent } = labs.computes
  const { project_id } = await labs.creation.create({ name: 'opening', compute_id: 'local' }, agent)
  await labs.lifecycle.close(project_id, agent)
  const closed = await labs.find(project_id)
  let [begin, end] = [() => {}, () => {}]
  const begun = new Promise<void>((resolve) => {
    begin = resolve
  })
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  const slow = () =>
    overriding(agent('local'), {
      projects: {
        async create() {
          begin()
          await ended
          return {}
        },
      },
    })
  const taking = () =>
    overriding(agent('local'), {
      snapshots: {
        take: async (_: string, snapshot_id: string) => ({ snapshot_id, created_at: 0, size: 1, ran: {} }),
      },
    })

  const opening = labs.lifecycle.open(project_id, slow)
  await begun
  const snapshot = takeSnapshot(labs, closed, 'before', taking)
  end()
  await opening
  const { snapshot_id } = await snapshot
  const { document } = await labs.lab(project_id)
  expect([...document.snapshots.keys()]).toEqual([snapshot_id])
  expect(document.project.is_open).toBe(true)
})

test('a compute emits events only to labs that have a part on it', async () => {
  const liar = new MemoryCompute()
  const { agent: ofLiar } = liar
  const lies: { project_id: string; isTaken: boolean }[] = []
  const open = async () =>
    new ReadableStream(
      {
        pull(controller) {
          const next = lies.find(({ isTaken }) => !isTaken)
          if (next === undefined) return new Promise(() => {})
          next.isTaken = true
          const { project_id } = next
          controller.enqueue({
            kind: 'event',
            event: { seq: 1, project_id, payload: { type: 'log.error', message: `of the liar to ${project_id}` } },
          })
        },
      },
      { highWaterMark: 0 },
    )
  Object.assign(liar, { agent: () => overriding(ofLiar(), { events: { open } }) })
  const labs = await labsInMemory(new MemoryCompute(), new MemoryLabs(), { others: new Map([['liar', liar]]) })
  const { agent } = labs.computes
  const [other, own] = [crypto.randomUUID(), crypto.randomUUID()]
  await labs.creation.create({ name: 'other', project_id: other, compute_id: 'local' }, agent)
  const feed = labs.events.open({ signal: new AbortController().signal }).getReader()
  lies.push({ project_id: other, isTaken: false }, { project_id: own, isTaken: false })
  await labs.creation.create({ name: 'own', project_id: own, compute_id: 'liar' }, agent)
  const told: unknown[] = []
  while (!JSON.stringify(told).includes(`of the liar to ${own}`)) told.push((await feed.read()).value)
  expect(JSON.stringify(told)).not.toContain(`of the liar to ${other}`)
})

test('a project of a compute whose document cannot be saved is not a lab, and is opened when there is room', async () => {
  const store = new MemoryLabs()
  const labs = await labsInMemory(new MemoryCompute(), store)
  const agentFor = () =>
    overriding(labs.computes.agent('local'), { projects: { list: async () => [{ project_id: id, name: 'there' }] } })
  const id = crypto.randomUUID()
  const save = vi.spyOn(store, 'save').mockRejectedValueOnce(new ApiError(507, 'The disk is full'))
  await expect(labs.lifecycle.open(id, agentFor)).rejects.toMatchObject({ status: 507 })
  expect(save).toHaveBeenCalledOnce()
  expect([...labs.registry.ids()]).toEqual([])
  await labs.lifecycle.open(id, agentFor)
  expect([...labs.registry.ids()]).toEqual([id])
})

/** What the compute does slowly: it is done there, and the answer comes when `end` is called. */
type Slow = 'create' | 'update' | 'remove' | 'duplicate' | 'take' | 'replicate'

/** A lab with the nodes PC1 and PC2, and agents of its compute which do an operation slowly. */
async function withSlow(operation: Slow) {
  const compute = new MemoryCompute()
  const store = new MemoryLabs()
  const labs = await labsInMemory(compute, store)
  const { agent } = labs.computes
  const { project_id } = await labs.creation.create({ name: 'kept', compute_id: 'local' }, agent)
  const lab = await labs.lab(project_id)
  for (const name of ['PC1', 'PC2'])
    await createNode(labs, lab, { name, node_type: 'pc', compute_id: 'local' }, { agentFor: agent })
  let [begin, end] = [() => {}, () => {}]
  const begun = new Promise<void>((resolve) => {
    begin = resolve
  })
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  /** The nodes of the compute when the snapshot ended. */
  let there = new Map<string, ReportedNode>()
  const withImage = new Set<string>()
  const agentFor = () => {
    const { nodes } = agent('local')
    const pause = async (which: Slow) => {
      if (which !== operation) return
      begin()
      await ended
    }
    const slowly =
      <T extends unknown[], R>(which: Slow, run: (...given: T) => Promise<R>) =>
      async (...given: T): Promise<R> => {
        const done = await run(...given)
        await pause(which)
        return done
      }
    return overriding(agent('local'), {
      nodes: {
        create: slowly('create', async (...given: Parameters<NodeAgent['create']>) => {
          if (operation === 'replicate' && !withImage.has('an image')) throw missingImage('It is not here', 'an image')
          return nodes.create(...given)
        }),
        update: slowly('update', nodes.update),
        remove: slowly('remove', nodes.remove),
        duplicate: slowly('duplicate', async () => {}),
      },
      images: {
        async replicate(image: string) {
          await pause('replicate')
          withImage.add(image)
          return 'copied'
        },
      },
      snapshots: {
        async take(_: string, snapshot_id: string) {
          await pause('take')
          there = structuredClone(compute.nodes)
          return { snapshot_id, created_at: 0, size: 1, ran: {} }
        },
        async restore(_: string, __: string, step: string) {
          if (step !== 'commit') return
          compute.nodes.clear()
          for (const [id, node] of there) compute.nodes.set(id, node)
        },
      },
    })
  }
  const namesIn = (nodes: Iterable<{ name: string }>) => [...nodes].map(({ name }) => name)
  const keptNames = async (snapshotId: string) => {
    const kept = (await labs.documents.readSideDocument(snapshotId)) as { node: { name: string }[] }
    return namesIn(kept.node)
  }
  return {
    labs,
    lab,
    agentFor,
    compute,
    store,
    begun,
    keptNames,
    /** Names of the nodes of the compute: at the end of the snapshot, and now. */
    there: () => namesIn(there.values()),
    onCompute: () => namesIn(compute.nodes.values()),
    inLab: () => namesIn(lab.document.nodes.values()),
    end: () => end(),
  }
}

/** What can be done without the end of a slow operation is done then. */
const turn = () => new Promise(setImmediate)
const pc3 = { name: 'PC3', node_type: 'pc', compute_id: 'local' }

type Changing = Awaited<ReturnType<typeof withSlow>>
const changing = {
  create: ({ labs, lab, agentFor }: Changing) => createNode(labs, lab, pc3, { agentFor }),
  update: ({ labs, lab, agentFor }: Changing) => updateNode(labs, lab, 'PC2', { name: 'R2' }, agentFor),
  remove: ({ labs, lab, agentFor }: Changing) => removeNode(labs, lab, 'PC2', agentFor),
} as const
const waits = [
  ['creation', 'create', ['PC1', 'PC2', 'PC3']],
  ['change', 'update', ['PC1', 'R2']],
  ['deletion', 'remove', ['PC1']],
] as const

test.for(waits)('a snapshot waits for the %s of a node that is under way', async ([, operation, names]) => {
  const setting = await withSlow(operation)
  const { labs, lab, agentFor, keptNames, there, begun, end } = setting
  const change = changing[operation](setting)
  await begun
  const taking = takeSnapshot(labs, lab, 'now', agentFor)
  await turn()
  end()
  await change
  const { snapshot_id } = await taking
  expect([await keptNames(snapshot_id), there()]).toEqual([names, names])
})

test.for(waits)('the %s of a node waits for a snapshot that is being taken', async ([, operation, names]) => {
  const setting = await withSlow('take')
  const { labs, lab, agentFor, keptNames, there, inLab, begun, end } = setting
  const taking = takeSnapshot(labs, lab, 'now', agentFor)
  await begun
  const change = changing[operation](setting)
  await turn()
  end()
  const { snapshot_id } = await taking
  await change
  const both = ['PC1', 'PC2']
  expect([await keptNames(snapshot_id), there()]).toEqual([both, both])
  expect(inLab()).toEqual(names)
})

test('the number of running nodes in a snapshot is without segments, which a restore starts, too', async () => {
  const { labs, lab, agentFor } = await withSlow('duplicate')
  const nat = await createNode(labs, lab, { name: 'NAT1', node_type: 'nat', compute_id: 'local' }, { agentFor })
  const ran = { [nat.node_id]: 'started', [lab.node('PC1').node_id]: 'suspended' } as const
  const running = () =>
    overriding(agentFor(), {
      snapshots: { take: async (_: string, snapshot_id: string) => ({ snapshot_id, created_at: 0, size: 1, ran }) },
    })
  const { snapshot_id, ...snapshot } = await takeSnapshot(labs, lab, 'now', running)
  expect(snapshot).toMatchObject({ running: 1 })
  const { running: _, ...record } = lab.document.snapshots.get(snapshot_id) as SnapshotRecord
  expect(record).toMatchObject({ lastRunning: ran })
  // A record of an earlier version has no number.
  expect(snapshotView(lab, record)).toMatchObject({ running: 2 })
})

test('a snapshot waits for the files of a copy of a node', async () => {
  const { labs, lab, agentFor, keptNames, there, begun, end } = await withSlow('duplicate')
  const copying = duplicateNode(labs, lab, 'PC2', { x: 1, y: 2, z: 1 }, { agentFor })
  await begun
  const taking = takeSnapshot(labs, lab, 'now', agentFor)
  await turn()
  expect(there()).toEqual([])
  end()
  expect(await copying).toMatchObject({ name: 'PC3', x: 1 })
  const { snapshot_id } = await taking
  const all = ['PC1', 'PC2', 'PC3']
  expect([await keptNames(snapshot_id), there()]).toEqual([all, all])
})

test('a copy of a node whose files cannot be copied leaves nothing', async () => {
  const { labs, lab, agentFor, onCompute, inLab, end } = await withSlow('duplicate')
  end()
  const failing = () =>
    overriding(agentFor(), {
      nodes: {
        async duplicate() {
          throw conflict('The image of the disk is missing')
        },
      },
    })
  const copying = duplicateNode(labs, lab, 'PC2', { x: 1, y: 2, z: 1 }, { agentFor: failing })
  await expect(copying).rejects.toMatchObject({ status: 409 })
  const both = ['PC1', 'PC2']
  expect([inLab(), onCompute()]).toEqual([both, both])
})

test('a snapshot does not wait for the images of a new node', async () => {
  const { labs, lab, agentFor, keptNames, there, inLab, begun, end } = await withSlow('replicate')
  const creating = createNode(labs, lab, pc3, { agentFor })
  await begun
  const { snapshot_id } = await takeSnapshot(labs, lab, 'now', agentFor)
  end()
  await creating
  const both = ['PC1', 'PC2']
  expect([await keptNames(snapshot_id), there()]).toEqual([both, both])
  expect(inLab()).toEqual([...both, 'PC3'])
})

test('a restore waits for the creation of a node, and then neither the project nor the compute has the node', async () => {
  const { labs, lab, agentFor, inLab, onCompute, begun, end } = await withSlow('create')
  const { snapshot_id } = await takeSnapshot(labs, lab, 'before', agentFor)
  const creating = createNode(labs, lab, pc3, { agentFor })
  await begun
  const restoring = restoreSnapshot(labs, lab, snapshot_id, agentFor)
  await turn()
  end()
  await creating
  await restoring
  expect([inLab(), onCompute()]).toEqual([
    ['PC1', 'PC2'],
    ['PC1', 'PC2'],
  ])
})

test('a new node does not get the name of one that a snapshot has brought back while its image was copied', async () => {
  const { labs, lab, agentFor, inLab, onCompute, begun, end } = await withSlow('replicate')
  const { agent } = labs.computes
  const { snapshot_id } = await takeSnapshot(labs, lab, 'before', agentFor)
  await removeNode(labs, lab, 'PC2', agent)
  const creating = createNode(labs, lab, { ...pc3, name: 'PC2' }, { agentFor })
  await begun
  await restoreSnapshot(labs, lab, snapshot_id, agentFor)
  end()
  await expect(creating).rejects.toMatchObject({ status: 409, code: 'name-taken' })
  expect([inLab(), onCompute()]).toEqual([
    ['PC1', 'PC2'],
    ['PC1', 'PC2'],
  ])
})

test('a project that its directory refuses at the end is left neither on its compute nor in the store', async () => {
  const [compute, store] = [new MemoryCompute(), new MemoryLabs()]
  const id = '11111111-2222-4333-8444-555555555555'
  const directory: LabDirectory = {
    put: async (_, { path }) => {
      if (path !== null) throw conflict('The directory refuses')
    },
    remove: async () => {},
    freeName: async (name) => name,
    job: async () => {},
    present: async () => {},
  }
  const create = async () => {
    await compute.agent().projects.create({ project_id: id, name: 'lab' })
    return { project: { path: '/lab' }, created: true }
  }
  const { computes } = await labsInMemory(compute)
  const host = { version: '1', metrics: async () => [] }
  const { labs } = await composeLab({ ...memoryPorts(store), id, directory, computes, host })
  onTestFinished(() => labs.shutdown())
  const agentFor = () => overriding(compute.agent(), { projects: { create } })
  await expect(labs.creation.create({ name: 'lab' }, agentFor)).rejects.toMatchObject({ status: 409 })
  expect([compute.projects.size, await store.load(id), labs.registry.has(id)]).toEqual([0, undefined, false])
})

test('a deletion of a project waits for a new node, and nothing remains of either', async () => {
  const { labs, lab, agentFor, store, begun, end } = await withSlow('create')
  const creating = createNode(labs, lab, pc3, { agentFor })
  await begun
  const removing = labs.lifecycle.remove(lab.id, agentFor)
  await turn()
  end()
  await creating
  await removing
  expect(await store.load(lab.id)).toBeUndefined()
  // Each would write the project again.
  const gone = { status: 404, code: 'project-closed' }
  await expect(createDrawing(lab, { svg: '<svg/>' })).rejects.toMatchObject(gone)
  await expect(createNode(labs, lab, pc3, { agentFor })).rejects.toMatchObject(gone)
  await expect(lab.saveLastRunning()).rejects.toMatchObject(gone)
  expect(await store.load(lab.id)).toBeUndefined()
})

test('a project with more variables than a list can hold is refused, and one that has them from an earlier version may keep them', async () => {
  const labs = await labsInMemory(new MemoryCompute())
  const { agent } = labs.computes
  const variables = Array.from({ length: 10 }, (_, index) => ({ name: `v${index}`, value: 'x'.repeat(6000) }))
  const more = [...variables, { name: 'last', value: 'y'.repeat(6000) }]
  const message = /^variables, supplier and kept: expected at most 65536 characters of JSON in total, got \d+$/
  const refused = { status: 400, message: expect.stringMatching(message) }
  await expect(labs.creation.create({ name: 'large', variables: more }, agent)).rejects.toMatchObject(refused)
  const { project_id } = await labs.creation.create({ name: 'large', variables, compute_id: 'local' }, agent)
  await expect(labs.settings.update('large', { name: 'other', variables: more }, agent)).rejects.toMatchObject(refused)
  await expect(labs.settings.update('large', { kept: { more } }, agent)).rejects.toMatchObject(refused)
  expect(await labs.settings.update('large', { zoom: 50 }, agent)).toMatchObject({ project_id, zoom: 50, variables })

  const lab = await labs.lab(project_id)
  lab.document.project = { ...lab.document.project, variables: more }
  expect(await labs.settings.update('large', { zoom: 60 }, agent)).toMatchObject({
    name: 'large',
    zoom: 60,
    variables: more,
  })
  expect(await labs.settings.update('large', { variables: more.slice(1) }, agent)).toMatchObject({
    variables: more.slice(1),
  })
})

test('a project that only a compute has is read as it is listed, and is opened before it is changed', async () => {
  const compute = new MemoryCompute()
  const labs = await labsInMemory(compute)
  const project_id = '11111111-2222-4333-8444-555555555555'
  const theirs = { project_id, name: 'Theirs', path: '/theirs' }
  const agentFor = () =>
    overriding(compute.agent(), { projects: { list: async () => [theirs], get: async () => theirs } })
  const [listed] = await labs.list(agentFor)
  expect(listed).toMatchObject({ name: 'Theirs', status: 'closed', compute_ids: ['local'] })
  expect(await labs.lists.read(project_id, agentFor)).toEqual(listed)
  await expect(labs.settings.update(project_id, { zoom: 50 }, agentFor)).rejects.toMatchObject({
    status: 409,
    message: `Project Theirs exists only on a compute. Import it first with POST /v2/projects/${project_id}/open`,
  })
  await labs.lifecycle.open(project_id, agentFor)
  expect(await labs.settings.update(project_id, { zoom: 50 }, agentFor)).toMatchObject({ name: 'Theirs', zoom: 50 })
  const gone = () => overriding(compute.agent(), { projects: { list: async () => [] } })
  const other = '99999999-2222-4333-8444-555555555555'
  await expect(labs.lists.read(other, gone)).rejects.toMatchObject({ status: 404, code: 'no-such-project' })
  await expect(labs.settings.update(other, {}, gone)).rejects.toMatchObject({ status: 404, code: 'no-such-project' })
})

test('a compute that answers the opening of a lab with something else fails the opening, and the lab stays closed', async () => {
  const labs = await labsInMemory(new MemoryCompute())
  const { agent } = labs.computes
  const { project_id } = await labs.creation.create({ name: 'lab', compute_id: 'local' }, agent)
  await labs.lifecycle.close(project_id, agent)
  let closed = 0
  const agentFor = () =>
    overriding(agent('local'), {
      projects: {
        async create() {
          throw new ApiError(502, 'The compute sent a malformed answer')
        },
        async close() {
          closed += 1
        },
      },
    })
  await expect(labs.lifecycle.open(project_id, agentFor)).rejects.toMatchObject({ status: 502 })
  expect([closed, (await labs.find(project_id)).isOpen]).toEqual([1, false])
  await labs.lifecycle.open(project_id, agent)
  expect((await labs.find(project_id)).isOpen).toBe(true)
})

test('a lab that gets a node on another compute is an event for lists of labs', async () => {
  const labs = await labsInMemory(new MemoryCompute(), new MemoryLabs(), {
    others: new Map([['other', new MemoryCompute()]]),
  })
  const { agent } = labs.computes
  const { project_id } = await labs.creation.create({ name: 'wide', compute_id: 'local' }, agent)
  const seen: LabListEvent[] = []
  labs.registry.listen((event) => void seen.push(event))
  await labs.lifecycle.attachCompute(await labs.lab(project_id), 'other', agent)
  expect(seen).toMatchObject([{ action: 'project.updated', event: { project_id, compute_ids: ['local', 'other'] } }])
})
