import { expect, test } from 'vitest'
import type { ComputeClient } from '../../../src/controller/compute-client.ts'
import { createNode, removeNode } from '../../../src/controller/nodes.ts'
import { takeSnapshot } from '../../../src/controller/snapshots.ts'
import { labsInMemory, MemoryCompute } from '../../support/memory-compute.ts'

test('a closed lab that an export is closing on its compute again is opened there for the next export after that', async () => {
  const labs = await labsInMemory(new MemoryCompute())
  const { client } = labs.computes
  const { project_id } = await labs.create({ name: 'twice', compute_id: 'local' }, client)
  await labs.close(project_id, client)
  const lab = await labs.find(project_id)
  const did: string[] = []
  let mayClose = () => {}
  const closing = new Promise<void>((resolve) => {
    mayClose = resolve
  })
  const ask = (): ComputeClient =>
    Object.assign(client('local'), {
      openProject: async () => void did.push('open'),
      async closeProject() {
        did.push('closing')
        await closing
        did.push('closed')
      },
    }) as ComputeClient

  const first = labs.whileOpen(lab, ask, async () => void did.push('first'))
  await expect.poll(() => did).toEqual(['open', 'first', 'closing'])
  const second = labs.whileOpen(lab, ask, async () => void did.push('second'))
  mayClose()
  await Promise.all([first, second])
  expect(did).toEqual(['open', 'first', 'closing', 'closed', 'open', 'second', 'closing', 'closed'])
})

test('a snapshot of a closed lab that is being opened is one of the open lab', async () => {
  const labs = await labsInMemory(new MemoryCompute())
  const { client } = labs.computes
  const { project_id } = await labs.create({ name: 'opening', compute_id: 'local' }, client)
  await labs.close(project_id, client)
  const closed = await labs.find(project_id)
  let [begin, end] = [() => {}, () => {}]
  const begun = new Promise<void>((resolve) => {
    begin = resolve
  })
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  const slow = (): ComputeClient =>
    Object.assign(client('local'), {
      async openProject() {
        begin()
        await ended
      },
    }) as ComputeClient
  const taking = (): ComputeClient =>
    Object.assign(client('local'), {
      takeSnapshot: async (_: string, snapshot_id: string) => ({ snapshot_id, created_at: 0, size: 1, ran: {} }),
    })

  const opening = labs.open(project_id, slow)
  await begun
  const snapshot = takeSnapshot(labs, closed, 'before', taking)
  end()
  await opening
  const { snapshot_id } = await snapshot
  const { document } = await labs.lab(project_id)
  expect([...document.snapshots.keys()]).toEqual([snapshot_id])
  expect(document.project.is_open).toBe(true)
})

/** A lab with the nodes PC1 and PC2, and clients of its compute by which a deletion or a snapshot takes until `end` is called. */
async function withSlow(operation: 'removeNode' | 'takeSnapshot') {
  const compute = new MemoryCompute()
  const labs = await labsInMemory(compute)
  const { client } = labs.computes
  const { project_id } = await labs.create({ name: 'kept', compute_id: 'local' }, client)
  const lab = await labs.lab(project_id)
  for (const name of ['PC1', 'PC2'])
    await createNode(labs, lab, { name, node_type: 'pc', compute_id: 'local' }, { ask: client })
  let [begin, end] = [() => {}, () => {}]
  const begun = new Promise<void>((resolve) => {
    begin = resolve
  })
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  /** Names of the nodes of the compute when the snapshot ended. */
  let there: string[] = []
  const ask = (): ComputeClient => {
    const its = client('local')
    const removeThere = its.removeNode.bind(its)
    const pause = async (which: typeof operation) => {
      if (which !== operation) return
      begin()
      await ended
    }
    return Object.assign(its, {
      async removeNode(...given: Parameters<ComputeClient['removeNode']>) {
        await removeThere(...given)
        await pause('removeNode')
      },
      async takeSnapshot(_: string, snapshot_id: string) {
        await pause('takeSnapshot')
        there = [...compute.nodes.values()].map(({ name }) => name)
        return { snapshot_id, created_at: 0, size: 1, ran: {} }
      },
    }) as ComputeClient
  }
  const keptNames = async (snapshotId: string) => {
    const kept = (await labs.readApart(snapshotId)) as { node: { name: string }[] }
    return kept.node.map(({ name }) => name)
  }
  return { labs, lab, ask, keptNames, there: () => there, begun, end: () => end() }
}

test('a snapshot waits for a deletion that is under way', async () => {
  const { labs, lab, ask, keptNames, there, begun, end } = await withSlow('removeNode')
  const removing = removeNode(labs, lab, 'PC2', ask)
  await begun
  const taking = takeSnapshot(labs, lab, 'now', ask)
  // What it can do without the end of the deletion is done by then.
  await new Promise(setImmediate)
  end()
  await removing
  const { snapshot_id } = await taking
  expect([await keptNames(snapshot_id), there()]).toEqual([['PC1'], ['PC1']])
})

test('a deletion waits for a snapshot that is being taken', async () => {
  const { labs, lab, ask, keptNames, there, begun, end } = await withSlow('takeSnapshot')
  const taking = takeSnapshot(labs, lab, 'now', ask)
  await begun
  const removing = removeNode(labs, lab, 'PC2', ask)
  await new Promise(setImmediate)
  end()
  const { snapshot_id } = await taking
  await removing
  const both = ['PC1', 'PC2']
  expect([await keptNames(snapshot_id), there()]).toEqual([both, both])
  expect([...lab.document.nodes.values()].map(({ name }) => name)).toEqual(['PC1'])
})
