import { expect, test } from 'vitest'
import { gns3Dialect } from '../../../../src/endpoints/gns3/dialect.ts'
import { Changes } from '../../../../src/labs/lab/document.ts'
import { freshLinks } from '../../../../src/labs/links/link-states.ts'
import { createLink } from '../../../../src/labs/links/links.ts'
import { createNode } from '../../../../src/labs/nodes/create-node.ts'
import { runNodeAction } from '../../../../src/labs/nodes/nodes.ts'
import { labsInMemory, MemoryCompute, overriding } from '../../../support/memory-compute.ts'

test('the states of links are read while a feed with such events is open', async () => {
  const compute = new MemoryCompute()
  const labs = await labsInMemory(compute)
  const { project_id } = await labs.creation.create({ name: 'lab' }, compute.agent, {})
  const lab = await labs.lab(project_id)
  const feed = (showsLinks: boolean) => {
    const over = new AbortController()
    labs.sync.feed(lab, { projectId: lab.id, signal: over.signal }, showsLinks)
    return () => over.abort()
  }
  const [theirs, ours, more] = [feed(false), feed(true), feed(true)]
  expect(lab.linkReaders).toBe(2)
  ours()
  theirs()
  expect(lab.linkReaders).toBe(1)
  more()
  expect(lab.linkReaders).toBe(0)
})

test('clients of GNS3 do not get them', () => {
  const dialect = gns3Dialect({ version: '2.2.59', own: '0.1.0', hasWebUi: false })
  expect(['node.updated', 'link.updated', 'link.state'].map((it) => dialect.hears(it))).toEqual([true, true, false])
})

/** An open lab with a link of two pcs, whose state the compute tells as `told` says. */
async function labOfPair() {
  const compute = new MemoryCompute()
  const labs = await labsInMemory(compute)
  const { project_id } = await labs.creation.create({ name: 'pair' }, compute.agent, {})
  const lab = await labs.lab(project_id)
  for (const name of ['PC1', 'PC2'])
    await createNode(labs, lab, { name, node_type: 'pc', compute_id: 'local' }, { agentFor: compute.agent })
  const { link_id } = await createLink(labs, lab, { nodes: ['PC1:e0', 'PC2:e0'] as never }, compute.agent)
  const told = { verdict: 'stopped' }
  let reads = 0
  const state = async () => {
    reads += 1
    const traffic = { frames: 0, bytes: 0, dropped: 0, frames_per_s: 0, bits_per_s: 0 }
    return {
      states: [{ link_id, verdict: told.verdict, reason: null, ab: traffic, ba: traffic }],
      next: '',
      more: false,
    }
  }
  const agentFor = () => overriding(compute.agent(), { links: { changes: state } })
  const verdict = () => lab.linkView(lab.link(link_id)).verdict
  return { labs, lab, agentFor, told, verdict, reads: () => reads }
}

test('the state of a link is read again right after a node has started', async () => {
  const { labs, lab, agentFor, told, verdict, reads } = await labOfPair()
  await freshLinks(lab, agentFor)
  await freshLinks(lab, agentFor)
  expect([verdict(), reads()]).toEqual(['stopped', 1])
  await runNodeAction(labs, lab, lab.node('PC1'), 'start', agentFor)
  told.verdict = 'ok'
  // The second request waits for the read of the first.
  await Promise.all([freshLinks(lab, agentFor), freshLinks(lab, agentFor).then(() => expect(verdict()).toBe('ok'))])
  expect([verdict(), reads()]).toEqual(['ok', 2])
})

test('of a compute that always has more states only as many are read and kept as it can have links', async () => {
  const { lab, agentFor } = await labOfPair()
  const traffic = { frames: 0, bytes: 0, dropped: 0, frames_per_s: 0, bits_per_s: 0 }
  let reads = 0
  const changes = async () => {
    reads += 1
    const stateOf = () => ({ link_id: crypto.randomUUID(), verdict: 'ok', reason: null, ab: traffic, ba: traffic })
    return { states: Array.from({ length: 100 }, stateOf), next: '', more: true }
  }
  const lying = () => overriding(agentFor(), { links: { changes } })
  for (const already of [0, 11, 22, 33]) {
    lab.linksReadAt = 0
    await freshLinks(lab, lying)
    // freshLinks waits for a read in progress for a limited time only.
    await lab.linksRead
    expect([reads, lab.linkStates.size <= 1002]).toEqual([already + 11, true])
  }
})

test('the state of a link that another compute has is not taken', async () => {
  const { labs, lab, agentFor, told, verdict } = await labOfPair()
  const [record] = lab.document.links.values()
  if (record === undefined) throw new Error('there is no link')
  const link_id = crypto.randomUUID()
  await labs.documents.saveServiceChange(lab, (project) =>
    new Changes()
      .project({ ...project, computes: ['local', 'other'] })
      .put('link', record.link_id, { ...record, wiring: { type: 'direct', compute_id: 'other' } })
      .put('link', link_id, { ...record, link_id, wiring: { type: 'direct', compute_id: 'local' } }),
  )
  told.verdict = 'peer_unreachable'
  const silent = { changes: async () => ({ states: [], next: '', more: false }) }
  lab.linksReadAt = 0
  const before = verdict()
  await freshLinks(lab, (id) => (id === 'local' ? agentFor() : overriding(agentFor(), { links: silent })))
  expect(verdict()).toBe(before)
})

test('the verdict on a link over two computes follows the rule of one within a compute', async () => {
  const { labs, lab, agentFor, verdict } = await labOfPair()
  const [record] = lab.document.links.values()
  if (record === undefined) throw new Error('there is no link')
  const save = (suspend: boolean) =>
    labs.documents.saveServiceChange(lab, (project) =>
      new Changes().project(project).put('link', record.link_id, { ...record, suspend, wiring: { type: 'udp' } }),
    )
  const counters = { in_frames: 0, in_bytes: 0, dropped: {} }
  const links = ['ok', 'ok']
  const asking = () => {
    const nioState = async ({ node_id }: { node_id: string }) => ({
      ...{ counters, link: links[node_id === record.nodes[0]?.node_id ? 0 : 1], link_reason: null },
    })
    return overriding(agentFor(), { nodes: { nioState } })
  }
  const read = async () => {
    lab.linksReadAt = 0
    await freshLinks(lab, asking)
    return verdict()
  }
  await save(false)
  expect(await read()).toBe('stopped')
  expect(lab.linkView(lab.link(record.link_id)).verdict_reason).toBe('PC1 is not running: start it')
  await runNodeAction(labs, lab, lab.node('PC1'), 'start', asking)
  expect(await read()).toBe('stopped')
  await runNodeAction(labs, lab, lab.node('PC2'), 'start', asking)
  expect(await read()).toBe('ok')
  // The worse of both ends, whichever it is.
  links[0] = 'one_way'
  links[1] = 'peer_unreachable'
  expect(await read()).toBe('peer_unreachable')
  await save(true)
  expect(await read()).toBe('suspended')
})
