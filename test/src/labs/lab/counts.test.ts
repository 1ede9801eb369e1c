import { expect, onTestFinished, test, vi } from 'vitest'
import { listProjects } from '../../../../src/labs/catalog.ts'
import type { ComputeAgents } from '../../../../src/labs/computes/agents.ts'
import { DirectoryRegistry } from '../../../../src/labs/directory-registry.ts'
import { Changes } from '../../../../src/labs/lab/document.ts'
import { keepState } from '../../../../src/labs/links/link-states.ts'
import { createLink } from '../../../../src/labs/links/links.ts'
import { createNode } from '../../../../src/labs/nodes/create-node.ts'
import { removeNode, runNodeAction } from '../../../../src/labs/nodes/nodes.ts'
import { undoEdit } from '../../../../src/labs/undo/undo.ts'
import { type DirectLinkVerdict, worstVerdict } from '../../../../src/model/direct-link.ts'
import { labsInMemory, MemoryCompute } from '../../../support/memory-compute.ts'
import { MemoryLabs, memoryPorts } from '../../../support/memory-labs.ts'
import { MemoryPresent } from '../../../support/memory-present.ts'

/** A lab of two pcs and a switch; one pc is linked with the switch. */
async function campus() {
  const compute = new MemoryCompute()
  const labs = await labsInMemory(compute)
  const agentFor: ComputeAgents = compute.agent
  const { project_id } = await labs.creation.create({ name: 'Campus 1' }, agentFor)
  const lab = await labs.lab(project_id)
  for (const [name, node_type] of [
    ['PC1', 'pc'],
    ['PC2', 'pc'],
    ['S1', 'switch'],
  ] as const)
    await createNode(labs, lab, { name, node_type }, { agentFor })
  const { link_id } = await createLink(labs, lab, { nodes: ['PC1:e0', 'S1:e0'] }, agentFor)
  const listed = async () => (await labs.list(agentFor))[0]
  return { labs, lab, link_id, agentFor, listed }
}

test('the list has the number of nodes of an open lab, and of its running nodes without segments', async () => {
  const { labs, lab, agentFor, listed } = await campus()
  await runNodeAction(labs, lab, lab.node('PC2'), 'start', agentFor)
  expect(await listed()).toMatchObject({
    compute_ids: ['local'],
    counts: { nodes: 3, segments: 1, links: 1, running: 1 },
  })
})

test('it has the same numbers of a closed lab, whose document is not in memory', async () => {
  const { labs, lab, agentFor, listed } = await campus()
  await removeNode(labs, lab, 'PC1', agentFor)
  await labs.lifecycle.close(lab.id, agentFor)
  const closed = { status: 'closed', counts: { nodes: 2, segments: 1, links: 0, running: 0 }, compute_ids: ['local'] }
  expect(await listed()).toMatchObject(closed)
  expect((await labs.find(lab.id)).project()).toEqual(await listed())
})

test('an undo restores the numbers', async () => {
  const { labs, lab, agentFor, listed } = await campus()
  await removeNode(labs, lab, 'S1', agentFor)
  expect(await listed()).toMatchObject({ counts: { nodes: 2, segments: 0, links: 0 } })
  await undoEdit(labs, lab, { way: 'undo', check: () => {} }, agentFor)
  expect(await listed()).toMatchObject({ counts: { nodes: 3, segments: 1, links: 1 } })
})

test('the time of the last change is that of the last edit', async () => {
  const { labs, lab, agentFor } = await campus()
  const { changed_at: before = '' } = lab.project()
  const begun = new Date().toISOString()
  await labs.settings.update(lab.id, { zoom: 50 }, agentFor)
  const { changed_at = '' } = lab.project()
  expect([before <= begun, changed_at >= begun]).toEqual([true, true])
})

test('a lab that is opened, closed or archived is not changed', async () => {
  const { labs, lab, agentFor, listed } = await campus()
  const { changed_at = '', revision } = lab.project()
  vi.useFakeTimers({ toFake: ['Date'], now: Date.parse(changed_at) + 3_600_000 })
  onTestFinished(() => void vi.useRealTimers())
  await labs.lifecycle.close(lab.id, agentFor)
  await labs.lifecycle.open(lab.id, agentFor)
  const now = await labs.lab(lab.id)
  await labs.documents.saveServiceChange(now, (project) =>
    new Changes().project({ ...project, archivedRevision: project.revision }),
  )
  expect(now.project().revision).toBeGreaterThan(revision)
  expect(await listed()).toMatchObject({ changed_at })
})

test('the worst verdict of links is reported while their states are known', async () => {
  const { lab, link_id } = await campus()
  const none = { frames: 0, bytes: 0, dropped: 0, frames_per_s: 0, bits_per_s: 0 }
  keepState(lab, { link_id, verdict: 'one_way', reason: 'nothing comes back', ab: none, ba: none })
  lab.linksReadAt = Date.now()
  expect(lab.counts()).toMatchObject({ worst_verdict: 'one_way', links_passing: 0 })
  lab.linksReadAt -= 60_000
  expect(lab.counts()).not.toHaveProperty('worst_verdict')
})

test('the running nodes of a compute that is not connected are unknown', async () => {
  const { lab } = await campus()
  lab.statusReason = 'Its compute is not connected'
  expect(lab.counts()).toEqual({ nodes: 3, segments: 1, links: 1 })
})

test('a list of labs in other processes has their sizes from their heads', async () => {
  const { lab } = await campus()
  const registry = new DirectoryRegistry({ ...memoryPorts(), heads: new Map() }, new MemoryLabs(), new MemoryPresent())
  const { computes } = await labsInMemory(new MemoryCompute())
  await registry.register(lab.id, lab.document.project)
  const [listed] = await listProjects({ registry, computes }, computes.agent)
  // Those processes know what runs.
  expect(listed).toMatchObject({ status: 'opened', changed_at: lab.project().changed_at, compute_ids: ['local'] })
  expect(listed?.counts).toEqual({ nodes: 3, segments: 1, links: 1 })
  // A document of an earlier version has no sizes.
  const { sizes: _, changed_at: __, ...earlier } = lab.document.project
  await registry.register(lab.id, earlier)
  const [unknown] = await listProjects({ registry, computes }, computes.agent)
  expect(unknown).not.toHaveProperty('counts')
  expect(unknown).not.toHaveProperty('changed_at')
})

test('the worst verdict is the one with the most severe effect', () => {
  expect(worstVerdict(['ok', 'stopped', 'silent', 'ok'])).toBe('silent')
  expect(worstVerdict(['suspended', 'ok'])).toBe('suspended')
  expect(worstVerdict(['of a newer compute' as DirectLinkVerdict, 'ok'])).toBe('ok')
  expect(worstVerdict([])).toBeUndefined()
})
