import { expect, onTestFinished, test } from 'vitest'
import type { ComputeClient } from '../../../src/controller/compute-client.ts'
import { freshLinks } from '../../../src/controller/link-states.ts'
import { createLink } from '../../../src/controller/links.ts'
import { actOn, createNode } from '../../../src/controller/nodes.ts'
import { gns3Dialect } from '../../../src/gns3/dialect.ts'
import { labsInMemory, MemoryCompute } from '../../support/memory-compute.ts'

test('the states of links are read while a feed is open whose client is told them', async () => {
  const compute = new MemoryCompute()
  const labs = await labsInMemory(compute)
  onTestFinished(() => labs.shutdown())
  const { project_id } = await labs.create({ name: 'lab' }, compute.client, {})
  const lab = await labs.lab(project_id)
  const feed = (showsLinks: boolean) => {
    const over = new AbortController()
    labs.feed(lab, { projectId: lab.id, signal: over.signal }, showsLinks)
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

test('clients of GNS3 are not told them', () => {
  const dialect = gns3Dialect({ version: '2.2.59', own: '0.1.0', hasWebUi: false })
  expect(['node.updated', 'link.updated', 'link.state'].map((it) => dialect.hears(it))).toEqual([true, true, false])
})

/** An open lab with a link of two pcs, whose state the compute tells as `told` says. */
async function labOfPair() {
  const compute = new MemoryCompute()
  const labs = await labsInMemory(compute)
  onTestFinished(() => labs.shutdown())
  const { project_id } = await labs.create({ name: 'pair' }, compute.client, {})
  const lab = await labs.lab(project_id)
  for (const name of ['PC1', 'PC2'])
    await createNode(labs, lab, { name, node_type: 'pc', compute_id: 'local' }, { ask: compute.client })
  const { link_id } = await createLink(labs, lab, { nodes: ['PC1:e0', 'PC2:e0'] as never }, compute.client)
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
  const ask = () => Object.assign(compute.client(), { linkChanges: state }) as ComputeClient
  const verdict = () => lab.linkView(lab.link(link_id)).verdict
  return { labs, lab, ask, told, verdict, reads: () => reads }
}

test('the state of a link is read again right after a node has started', async () => {
  const { labs, lab, ask, told, verdict, reads } = await labOfPair()
  await freshLinks(lab, ask)
  await freshLinks(lab, ask)
  expect([verdict(), reads()]).toEqual(['stopped', 1])
  await actOn(labs, lab, lab.node('PC1'), 'start', ask)
  told.verdict = 'ok'
  // The second request waits for the read of the first.
  await Promise.all([freshLinks(lab, ask), freshLinks(lab, ask).then(() => expect(verdict()).toBe('ok'))])
  expect([verdict(), reads()]).toEqual(['ok', 2])
})
