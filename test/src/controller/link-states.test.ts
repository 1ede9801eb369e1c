import { expect, onTestFinished, test } from 'vitest'
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
