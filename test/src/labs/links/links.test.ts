import { expect, test } from 'vitest'
import { findEnd } from '../../../../src/labs/links/link-ends.ts'
import { createLink, removeLink, updateLink } from '../../../../src/labs/links/links.ts'
import { createNode } from '../../../../src/labs/nodes/create-node.ts'
import { removeNode } from '../../../../src/labs/nodes/nodes.ts'
import { updateNode } from '../../../../src/labs/nodes/update-node.ts'
import { undoEdit } from '../../../../src/labs/undo/undo.ts'
import { labsInMemory, MemoryCompute, type OperationName, wrapping } from '../../../support/memory-compute.ts'

/** A lab with a pc and a switch, and an operation of its compute that takes until `end` is called. */
async function withSlow(operation: OperationName) {
  const compute = new MemoryCompute()
  const labs = await labsInMemory(compute)
  const { agent } = labs.computes
  const { project_id } = await labs.creation.create({ name: 'race', compute_id: 'local' }, agent)
  const lab = await labs.lab(project_id)
  for (const [name, node_type] of [['PC1', 'pc'] as const, ['SW', 'switch'] as const])
    await createNode(labs, lab, { name, node_type, compute_id: 'local' }, { agentFor: agent })
  let [begin, end] = [() => {}, () => {}]
  const begun = new Promise<void>((resolve) => {
    begin = resolve
  })
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  const agentFor = () =>
    wrapping(agent('local'), operation, (real) => async (...input) => {
      begin()
      await ended
      return real(...input)
    })
  const link = (by = agent) => createLink(labs, lab, { nodes: ['PC1:eth0', 'SW:Ethernet0'] as never }, by)
  const isFree = () => lab.document.links.size === 0 && compute.links.size === 0 && findEnd(lab, 'SW:Ethernet0')
  return { labs, lab, compute, agent, agentFor, link, isFree, begun, end: () => end() }
}

test('a link to a node that is deleted meanwhile is 404, and leaves the other port free', async () => {
  const { labs, lab, agent, agentFor, link, isFree, begun, end } = await withSlow('links.join')
  const linking = link(agentFor)
  await begun
  await removeNode(labs, lab, 'PC1', agent)
  end()
  await expect(linking).rejects.toMatchObject({ status: 404 })
  expect(isFree()).toBeTruthy()
})

test('a link that is made while its node is being deleted is deleted with the node', async () => {
  const { labs, lab, agentFor, link, isFree, begun, end } = await withSlow('nodes.remove')
  const removing = removeNode(labs, lab, 'PC1', agentFor)
  await begun
  await link()
  end()
  await removing
  expect(isFree()).toBeTruthy()
})

test('a link or a node that is deleted while it is changed does not come back', async () => {
  const links = await withSlow('links.join')
  const { link_id } = await links.link()
  const suspending = updateLink(links.lab, link_id, { suspend: true }, links.agentFor)
  await links.begun
  const removing = removeLink(links.labs, links.lab, link_id, links.agent)
  links.end()
  await Promise.all([suspending, removing])
  expect(links.isFree()).toBeTruthy()

  const nodes = await withSlow('nodes.update')
  const { node_id } = nodes.lab.node('PC1')
  // Its compute has answered when the node is deleted.
  const more = async () => {
    await removeNode(nodes.labs, nodes.lab, node_id, nodes.agent)
    return {}
  }
  await expect(updateNode(nodes.labs, nodes.lab, node_id, { x: 1 }, nodes.agent, { more })).rejects.toMatchObject({
    status: 404,
  })
  expect([...nodes.lab.document.nodes.values()].map(({ name }) => name)).toEqual(['SW'])
})

test('a link that is changed while it is deleted is not made anew on its compute', async () => {
  const { labs, lab, agent, link, isFree } = await withSlow('nodes.remove')
  const { link_id } = await link()
  let changing: Promise<unknown> = Promise.resolve()
  const removing = () =>
    wrapping(agent('local'), 'links.remove', (remove) => async (...given) => {
      await remove(...given)
      changing = updateLink(lab, link_id, { suspend: true }, agent).catch((error: unknown) => error)
      // What the change asks of the compute in memory is done by then.
      await new Promise(setImmediate)
    })
  await removeLink(labs, lab, link_id, removing)
  expect(await changing).toMatchObject({ status: 404, code: 'no-such-link' })
  expect(isFree()).toBeTruthy()
})

test('a node is deleted while another request deletes one of its links', async () => {
  const { labs, lab, agentFor, agent, link, begun, end } = await withSlow('links.remove')
  await createNode(labs, lab, { name: 'PC2', node_type: 'pc', compute_id: 'local' }, { agentFor: agent })
  await link()
  const { link_id } = await createLink(labs, lab, { nodes: ['PC2:eth0', 'SW:Ethernet1'] as never }, agent)
  const node = removeNode(labs, lab, 'SW', agentFor)
  await begun
  await removeLink(labs, lab, link_id, agent)
  end()
  await node
  expect([...lab.document.nodes.values()].map(({ name }) => name)).toEqual(['PC1', 'PC2'])
  expect(lab.document.links.size).toBe(0)
})

test('a compute has both of two changes of a link at once', async () => {
  const { lab, compute, agent, agentFor, link, begun, end } = await withSlow('links.join')
  const { link_id } = await link()
  const suspending = updateLink(lab, link_id, { suspend: true }, agentFor)
  await begun
  const losing = updateLink(lab, link_id, { filters: { packet_loss: [10] } }, agent)
  end()
  await Promise.all([suspending, losing])
  const both = { suspend: true, filters_ab: { packet_loss: [10] } }
  expect(compute.links.get(link_id)).toMatchObject(both)
  expect(lab.linkView(lab.link(link_id))).toMatchObject({ suspend: true, filters: { packet_loss: [10] } })
})

test('of two links with one id at once one is refused', async () => {
  const { labs, lab, agent, agentFor, begun, end } = await withSlow('links.join')
  await createNode(labs, lab, { name: 'PC2', node_type: 'pc', compute_id: 'local' }, { agentFor: agent })
  const link_id = crypto.randomUUID()
  const first = createLink(labs, lab, { link_id, nodes: ['PC1:eth0', 'SW:Ethernet0'] as never }, agentFor)
  await begun
  const second = createLink(labs, lab, { link_id, nodes: ['PC2:eth0', 'SW:Ethernet1'] as never }, agent)
  await expect(second).rejects.toMatchObject({ status: 409 })
  end()
  await first
  expect(lab.document.linksOf(lab.node('PC2').node_id)).toEqual([])
})

test('of two nodes with one id at once one is refused', async () => {
  const { labs, lab, compute, agent, agentFor, begun, end } = await withSlow('nodes.create')
  const node = { node_id: crypto.randomUUID(), node_type: 'pc', compute_id: 'local' }
  const first = createNode(labs, lab, { ...node, name: 'PC2' }, { agentFor })
  await begun
  const second = createNode(labs, lab, { ...node, name: 'PC3' }, { agentFor: agent })
  await expect(second).rejects.toMatchObject({ status: 409 })
  expect(compute.nodes.has(node.node_id)).toBe(false)
  end()
  expect(await first).toMatchObject({ name: 'PC2' })
})

const undo = { way: 'undo', check: () => {} } as const

test('a change of a link that comes during an undo is made after it', async () => {
  const { labs, lab, compute, agent, agentFor, link, begun, end } = await withSlow('links.join')
  const { link_id } = await link()
  await updateLink(lab, link_id, { suspend: true }, agent)
  const undoing = undoEdit(labs, lab, undo, agentFor)
  await begun
  const losing = updateLink(lab, link_id, { filters: { packet_loss: [10] } }, agent)
  // What it can do without the undo is done by then.
  await new Promise(setImmediate)
  end()
  await Promise.all([undoing, losing])
  expect(compute.links.get(link_id)).toMatchObject({ suspend: false, filters_ab: { packet_loss: [10] } })
  expect(lab.linkView(lab.link(link_id))).toMatchObject({ suspend: false, filters: { packet_loss: [10] } })
})

test('an undo that comes during a change of the link is refused, and changes nothing', async () => {
  const { labs, lab, compute, agent, agentFor, link, begun, end } = await withSlow('links.join')
  const { link_id } = await link()
  await updateLink(lab, link_id, { suspend: true }, agent)
  const losing = updateLink(lab, link_id, { filters: { packet_loss: [10] } }, agentFor)
  await begun
  const undoing = undoEdit(labs, lab, undo, agent).catch((error: unknown) => error)
  await new Promise(setImmediate)
  end()
  await losing
  expect(await undoing).toMatchObject({ status: 409, message: expect.stringContaining('was changed meanwhile') })
  expect(compute.links.get(link_id)).toMatchObject({ suspend: true, filters_ab: { packet_loss: [10] } })
  expect(lab.linkView(lab.link(link_id))).toMatchObject({ suspend: true, filters: { packet_loss: [10] } })
})

test('a link that is changed while an undo removes it is not made anew on its compute', async () => {
  const { labs, lab, agent, link, isFree } = await withSlow('nodes.remove')
  const { link_id } = await link()
  let changing: Promise<unknown> = Promise.resolve()
  const removing = () =>
    wrapping(agent('local'), 'links.remove', (remove) => async (...given) => {
      await remove(...given)
      changing = updateLink(lab, link_id, { suspend: true }, agent).catch((error: unknown) => error)
      await new Promise(setImmediate)
    })
  await undoEdit(labs, lab, undo, removing)
  expect(await changing).toMatchObject({ status: 404, code: 'no-such-link' })
  expect(isFree()).toBeTruthy()
})

test('a node that an undo makes again and a new one at the same time have different names', async () => {
  const { labs, lab, agent, agentFor, begun, end } = await withSlow('nodes.create')
  await removeNode(labs, lab, 'PC1', agent)
  const pc = { name: 'PC1', node_type: 'pc', compute_id: 'local' }
  const undoing = undoEdit(labs, lab, undo, agentFor)
  await begun
  expect(await createNode(labs, lab, pc, { agentFor: agent })).toMatchObject({ name: 'PC2' })
  const renaming = updateNode(labs, lab, 'SW', { name: 'pc1' }, agent)
  await expect(renaming).rejects.toMatchObject({ status: 409, code: 'name-taken' })
  end()
  await undoing
  expect([...lab.document.nodes.values()].map(({ name }) => name).sort()).toEqual(['PC1', 'PC2', 'SW'])
})

test('an undo is refused while another request gives the name to a node, and can be repeated', async () => {
  const { labs, lab, agent, agentFor, begun, end } = await withSlow('nodes.update')
  await removeNode(labs, lab, 'PC1', agent)
  const renaming = updateNode(labs, lab, 'SW', { name: 'PC1' }, agentFor)
  await begun
  await expect(undoEdit(labs, lab, undo, agent)).rejects.toMatchObject({
    status: 409,
    message: 'Another request is naming a node PC1: try again when it is done',
  })
  end()
  await renaming
  await undoEdit(labs, lab, undo, agent)
  await undoEdit(labs, lab, undo, agent)
  expect([...lab.document.nodes.values()].map(({ name }) => name).sort()).toEqual(['PC1', 'SW'])
})

test('a link is refused at a port that a link of an undo gets, and the other way round', async () => {
  const first = await withSlow('links.join')
  const { link_id } = await first.link()
  await removeLink(first.labs, first.lab, link_id, first.agent)
  const undoing = undoEdit(first.labs, first.lab, undo, first.agentFor)
  await first.begun
  await expect(first.link()).rejects.toMatchObject({ status: 409, code: 'port-taken' })
  first.end()
  await undoing
  expect([...first.lab.document.links.keys()]).toEqual([link_id])

  const second = await withSlow('links.join')
  const { link_id: other } = await second.link()
  await removeLink(second.labs, second.lab, other, second.agent)
  const linking = second.link(second.agentFor)
  await second.begun
  await expect(undoEdit(second.labs, second.lab, undo, second.agent)).rejects.toMatchObject({ status: 409 })
  second.end()
  const { link_id: made } = await linking
  expect([...second.lab.document.links.keys()]).toEqual([made])
})
