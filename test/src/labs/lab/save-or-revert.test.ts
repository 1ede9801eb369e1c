import { expect, test } from 'vitest'
import type { ComputeAgents } from '../../../../src/labs/computes/agents.ts'
import { openProject } from '../../../../src/labs/computes/agents.ts'
import type { Lab } from '../../../../src/labs/lab/lab.ts'
import type { LabEntries } from '../../../../src/labs/lab/store.ts'
import { recordEndedCaptures, startCapture, stopCapture } from '../../../../src/labs/links/captures.ts'
import { createLink, createLinks, removeLink, updateLink } from '../../../../src/labs/links/links.ts'
import { writeConfig } from '../../../../src/labs/nodes/configs.ts'
import { createNode } from '../../../../src/labs/nodes/create-node.ts'
import { removeNode, runNodeAction } from '../../../../src/labs/nodes/nodes.ts'
import { updateNode } from '../../../../src/labs/nodes/update-node.ts'
import type { Labs } from '../../../../src/labs/service.ts'
import { undoEdit } from '../../../../src/labs/undo/undo.ts'
import { ApiError } from '../../../../src/lib/errors/api-error.ts'
import { labsInMemory, MemoryCompute } from '../../../support/memory-compute.ts'
import { MemoryLabs } from '../../../support/memory-labs.ts'

/** A store with room for so many saves. */
class FullStore extends MemoryLabs {
  room = Number.POSITIVE_INFINITY

  set isFull(isFull: boolean) {
    this.room = isFull ? 0 : Number.POSITIVE_INFINITY
  }

  override async save(id: string, changes: LabEntries): Promise<void> {
    if (this.room === 0) throw new ApiError(507, 'The disk is nearly full')
    this.room -= 1
    await super.save(id, changes)
  }
}

interface Setting {
  readonly labs: Labs
  readonly lab: Lab
  readonly agentFor: ComputeAgents
  readonly compute: MemoryCompute
  /** A compute on which the lab has no node. */
  readonly other: MemoryCompute
  /** The link of PC1 and SW. */
  readonly link_id: string
}

const node = { node_type: 'pc', compute_id: 'local' }

/** A lab with the nodes PC1, PC2 and SW, of which PC1 and SW are linked. */
async function newLab() {
  const [store, compute, other] = [new FullStore(), new MemoryCompute(), new MemoryCompute()]
  const labs = await labsInMemory(compute, store, { others: new Map([['other', other]]) })
  const agentFor = labs.computes.agent
  const { project_id } = await labs.creation.create({ name: 'full', compute_id: 'local' }, agentFor)
  const lab = await labs.lab(project_id)
  for (const name of ['PC1', 'PC2'])
    await createNode(labs, lab, { ...node, name, properties: { startup_script: 'ip dhcp' } }, { agentFor })
  await createNode(labs, lab, { ...node, node_type: 'switch', name: 'SW' }, { agentFor })
  const { link_id } = await createLink(labs, lab, { nodes: ['PC1:eth0', 'SW:Ethernet0'] }, agentFor)
  return { store, labs, lab, agentFor, compute, other, link_id }
}

/** What the document and the compute have. */
const wholeOf = ({ labs, lab, compute, other }: Setting): unknown =>
  structuredClone({
    ...{ name: labs.registry.nameOf(lab.id), computes: labs.registry.computesOf(lab.id), isOpen: lab.isOpen },
    projects: compute.projects,
    there: other.projects,
    nodesThere: other.nodes,
    document: lab.document.entries(),
    nodes: new Map([...compute.nodes].sort()),
    links: compute.links,
    captures: compute.captures,
    shown: new Map([...lab.reported].sort()),
  })

const undo = { way: 'undo', check: () => {} } as const
const free = { nodes: ['PC2:eth0', 'SW:Ethernet1'] as [string, string] }

type Change = (it: Setting) => Promise<unknown>
/** Changes, and what comes before them. */
const changes: readonly (readonly [what: string, change: Change, first?: Change])[] = [
  ['a new node', ({ labs, lab, agentFor }) => createNode(labs, lab, { ...node, name: 'PC3' }, { agentFor })],
  [
    'other settings of a node',
    ({ labs, lab, agentFor }) =>
      updateNode(labs, lab, 'PC1', { name: 'R', properties: { startup_script: 'ip 10.0.0.1/24' } }, agentFor),
  ],
  [
    'another configuration of a node',
    ({ lab, agentFor }) =>
      writeConfig(lab, 'PC1', { name: 'startup', text: 'ip 10.0.0.1/24', ifMatch: null, agentFor }),
  ],
  ['the deletion of a node', ({ labs, lab, agentFor }) => removeNode(labs, lab, 'PC2', agentFor)],
  ['the deletion of a linked node', ({ labs, lab, agentFor }) => removeNode(labs, lab, 'SW', agentFor)],
  ['a new link', ({ labs, lab, agentFor }) => createLink(labs, lab, free, agentFor)],
  ['new links', ({ labs, lab, agentFor }) => createLinks(labs, lab, [free], agentFor)],
  ['another state of a link', ({ lab, link_id, agentFor }) => updateLink(lab, link_id, { suspend: true }, agentFor)],
  ['the deletion of a link', ({ labs, lab, link_id, agentFor }) => removeLink(labs, lab, link_id, agentFor)],
  ['a capture', ({ lab, link_id, agentFor }) => startCapture(lab, link_id, {}, agentFor)],
  [
    'the undo of a new node',
    ({ labs, lab, agentFor }) => undoEdit(labs, lab, undo, agentFor),
    ({ labs, lab, agentFor }) => createNode(labs, lab, { ...node, name: 'PC3' }, { agentFor }),
  ],
  [
    'the undo of other settings of a node',
    ({ labs, lab, agentFor }) => undoEdit(labs, lab, undo, agentFor),
    ({ labs, lab, agentFor }) =>
      updateNode(labs, lab, 'PC1', { properties: { startup_script: 'ip 10.0.0.1/24' } }, agentFor),
  ],
  [
    'the undo of the deletion of a node',
    ({ labs, lab, agentFor }) => undoEdit(labs, lab, undo, agentFor),
    ({ labs, lab, agentFor }) => removeNode(labs, lab, 'PC2', agentFor),
  ],
  [
    'the undo of a new link',
    ({ labs, lab, agentFor }) => undoEdit(labs, lab, undo, agentFor),
    ({ labs, lab, agentFor }) => createLink(labs, lab, free, agentFor),
  ],
  [
    'the undo of another state of a link',
    ({ labs, lab, agentFor }) => undoEdit(labs, lab, undo, agentFor),
    ({ lab, link_id, agentFor }) => updateLink(lab, link_id, { suspend: true }, agentFor),
  ],
  [
    'the undo of the deletion of a link',
    ({ labs, lab, agentFor }) => undoEdit(labs, lab, undo, agentFor),
    ({ labs, lab, link_id, agentFor }) => removeLink(labs, lab, link_id, agentFor),
  ],
  ['another name of the project', ({ labs, lab, agentFor }) => labs.settings.set(lab, { name: 'other' }, agentFor)],
  [
    'another setting of the project',
    ({ labs, lab, agentFor }) => labs.settings.set(lab, { auto_start: true }, agentFor),
  ],
  [
    'a node on a further compute',
    ({ labs, lab, agentFor }) => createNode(labs, lab, { ...node, compute_id: 'other', name: 'PC3' }, { agentFor }),
  ],
  ['the closing of the project', ({ labs, lab, agentFor }) => labs.lifecycle.close(lab.id, agentFor)],
  [
    'the start of a placeholder',
    ({ labs, lab, agentFor }) => runNodeAction(labs, lab, lab.node('PC2'), 'start', agentFor),
    async ({ labs, lab, agentFor }) => {
      await removeNode(labs, lab, 'PC2', agentFor)
      const made = await createNode(labs, lab, { ...node, name: 'PC2' }, { agentFor })
      const record = { ...lab.node(made.node_id), creationError: 'There is no room' }
      await agentFor('local').nodes.remove({ project_id: lab.id, kind: 'pc', node_id: made.node_id })
      lab.document.apply(new Map([[`node/${made.node_id}`, record]]))
      lab.reported.delete(made.node_id)
    },
  ],
]

const rows = changes.map(([what, change, first]) => ({ what, change, first }))
test.each(rows)(
  '$what that cannot be saved is reverted on the compute, and can be made later',
  async ({ change, first }) => {
    const { store, ...setting } = await newLab()
    await first?.(setting)
    const before = wholeOf(setting)
    store.isFull = true
    await expect(change(setting)).rejects.toMatchObject({ status: 507 })
    expect(wholeOf(setting)).toEqual(before)
    store.isFull = false
    await change(setting)
    expect(wholeOf(setting)).not.toEqual(before)
  },
)

test.each(rows)(
  '$what leaves the same state in the project and on its compute, whichever save fails',
  async ({ change, first }) => {
    let isDone = false
    for (let room = 0; !isDone; room++) {
      const { store, ...setting } = await newLab()
      await first?.(setting)
      store.room = room
      isDone = await change(setting).then(
        () => true,
        (error: ApiError) => {
          expect(error).toMatchObject({ status: 507 })
          return false
        },
      )
      const { nodes, links, project } = setting.lab.document
      const made = [...nodes.values()].filter(({ creationError }) => creationError === undefined)
      const there = [...setting.compute.nodes.keys(), ...setting.other.nodes.keys()]
      expect(there.sort()).toEqual(made.map(({ node_id }) => node_id).sort())
      expect([...setting.compute.links.keys()].sort()).toEqual([...links.keys()].sort())
      expect(setting.compute.projects.get(setting.lab.id)).toEqual({ name: project.name, isOpen: setting.lab.isOpen })
      expect(setting.other.projects.has(setting.lab.id)).toBe(project.computes.includes('other'))
    }
  },
)

/** A compute on the disk of the service: it cannot make again what it has deleted, or open what it has closed. */
test('changes that could not be reverted on a full disk are refused there before anything changes', async () => {
  const { store, ...setting } = await newLab()
  const { labs, lab, agentFor, compute, link_id } = setting
  const before = wholeOf(setting)
  store.isFull = true
  compute.beforeChange = (what) => {
    if (what !== 'remove' && what !== 'unlink') throw new ApiError(507, 'The disk is nearly full')
  }
  const changes = [
    removeNode(labs, lab, 'PC2', agentFor),
    removeLink(labs, lab, link_id, agentFor),
    labs.lifecycle.close(lab.id, agentFor),
  ]
  for (const change of changes) await expect(change).rejects.toMatchObject({ status: 507 })
  expect(wholeOf(setting)).toEqual(before)
})

test('a project that cannot be saved is not on its compute either', async () => {
  const { store, labs, agentFor, compute } = await newLab()
  store.isFull = true
  await expect(labs.creation.create({ name: 'more', compute_id: 'local' }, agentFor)).rejects.toMatchObject({
    status: 507,
  })
  expect([...compute.projects.values()].map(({ name }) => name)).toEqual(['full'])
})

test('the end of a capture that cannot be saved is stored after the next read of the compute', async () => {
  const { store, lab, agentFor, link_id, compute } = await newLab()
  await startCapture(lab, link_id, {}, agentFor)
  store.isFull = true
  await expect(stopCapture(lab, link_id, agentFor)).rejects.toMatchObject({ status: 507 })
  store.isFull = false
  expect(compute.captures.size).toBe(0)
  await recordEndedCaptures(lab, ['local'], agentFor)
  expect(lab.linkView(lab.link(link_id)).capturing).toBe(false)
})

test('an opening that cannot be saved leaves the project closed, also on its compute', async () => {
  const { store, labs, lab, agentFor, compute } = await newLab()
  await labs.lifecycle.close(lab.id, agentFor)
  store.isFull = true
  await expect(labs.lifecycle.open(lab.id, agentFor)).rejects.toMatchObject({ status: 507 })
  await expect(labs.lab(lab.id)).rejects.toMatchObject({ code: 'project-closed' })
  expect(compute.projects.get(lab.id)?.isOpen).toBe(false)
  store.isFull = false
  expect((await labs.lifecycle.open(lab.id, agentFor)).status).toBe('opened')
})

test('when a lab cannot be saved, a compute keeps a project that it had before', async () => {
  const { store, labs, lab, agentFor, other } = await newLab()
  await openProject(agentFor('other'), { project_id: lab.id, name: 'theirs' })
  store.isFull = true
  await expect(labs.lifecycle.attachCompute(lab, 'other', agentFor)).rejects.toMatchObject({ status: 507 })
  expect(other.projects.get(lab.id)?.name).toBe('theirs')
})

test('two labs do not get one name at the same time', async () => {
  const { labs, lab, agentFor } = await newLab()
  const { project_id } = await labs.creation.create({ name: 'second', compute_id: 'local' }, agentFor)
  const second = await labs.lab(project_id)
  const both = await Promise.allSettled([
    labs.settings.set(lab, { name: 'Twin' }, agentFor),
    labs.settings.set(second, { name: 'twin' }, agentFor),
  ])
  expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
  expect([lab.document.project.name, second.document.project.name]).toEqual(['Twin', 'second'])
})
