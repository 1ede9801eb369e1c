import { expect, test } from 'vitest'
import {
  decodeEntries,
  decodeHead,
  encodeEntries,
  encodeHead,
  recordStorage,
} from '../../../../src/labs/lab/document-codec.ts'
import { MemoryLabs } from '../../../support/memory-labs.ts'

/** A made-up document in its stored form, with each member and word that has another name in code. */
const project = (way: string) => ({
  project_id: 'p',
  name: 'campus',
  file: { by: 'ann', begun: { job_id: 'j', stopped: ['n'] } },
  taking: 's',
  restoring: { snapshot_id: 's', way, ran: { n: 'started', left: 'suspended' }, left: ['c3'] },
  moving: { from: 'c1', to: 'c2' },
  left: ['c4'],
  unjoined: ['l'],
  archived: 7,
  archiving: { tries: 1 },
  variables: [{ name: 'taking', value: 'unjoined' }],
})
const node = {
  node_id: 'n',
  unmade: 'no such image',
  properties: { made: 1, own: 2, left: 3 },
  file: {
    made: true,
    keys: ['left', 'own'],
    own: ['ram'],
    shownAs: { own: ['a', 'b'] },
    configs: { made: { file: 'a', node: 'b' } },
    day0: 'd',
  },
}
const link = {
  link_id: 'l',
  capture: { end: 0, file: 'b.pcap', asked: 'a.pcap', made: true },
  file: { made: true },
}
const stored = (way: string) =>
  new Map<string, unknown>([
    ['project', project(way)],
    ['node/n', node],
    ['node/m', { node_id: 'm', file: null }],
    ['link/l', link],
    ['link/k', { link_id: 'k', capture: null }],
    ['drawing/d', { drawing_id: 'd', left: 1 }],
    ['snapshot/s', { snapshot_id: 's', ran: { n: 'started' }, running: 1 }],
    ['ran', ['n']],
    ['order/node', ['n', 'm']],
    ['node/gone', undefined],
    ['document', { project: project(way), node: [node], link: [link], drawing: [{ left: 1 }] }],
  ])
const textOf = (entries: ReadonlyMap<string, unknown>) => JSON.stringify([...entries])

test('a stored document is read and written unchanged, to the byte', () => {
  for (const way of ['forward', 'on', 'back', 'undone', 'a word of a later version'])
    expect(textOf(encodeEntries(decodeEntries(stored(way))))).toBe(textOf(stored(way)))
})

test('records have the names of the code', () => {
  const read = decodeEntries(stored('on'))
  expect(read.get('project')).toMatchObject({
    lastApplied: { by: 'ann', pendingApply: { job_id: 'j' } },
    snapshotInProgress: 's',
    restoring: {
      snapshot_id: 's',
      phase: 'committed',
      lastRunning: { n: 'started', left: 'suspended' },
      formerComputes: ['c3'],
    },
    formerComputes: ['c4'],
    pendingLinks: ['l'],
    archivedRevision: 7,
    archiveAttempts: { tries: 1 },
    variables: [{ name: 'taking', value: 'unjoined' }],
  })
  expect(read.get('node/n')).toMatchObject({
    creationError: 'no such image',
    properties: node.properties,
    lastApplied: {
      managed: true,
      computeDefaults: ['ram'],
      normalizedValues: { own: ['a', 'b'] },
      configs: node.file.configs,
    },
  })
  expect(read.get('link/l')).toMatchObject({
    capture: { fileName: 'b.pcap', requestedName: 'a.pcap', managed: true },
    lastApplied: { managed: true },
  })
  expect(read.get('snapshot/s')).toMatchObject({ lastRunning: { n: 'started' } })
  expect(read.get('drawing/d')).toEqual({ drawing_id: 'd', left: 1 })
  const { node: nodes, link: links } = read.get('document') as Record<string, unknown[]>
  expect([nodes, links]).toEqual([[read.get('node/n')], [read.get('link/l')]])
})

test('a damaged head is read as it is', () => {
  for (const value of [undefined, null, 7, 'left', []]) expect(encodeHead(decodeHead(value))).toEqual(value)
})

test('a store keeps the stored names', async () => {
  const files = new MemoryLabs()
  const store = recordStorage(files)
  await files.save('lab', stored('back'))
  const read = await store.load('lab')
  if (read === undefined) throw new Error('The document is missing')
  await store.save('copy', read)
  expect(textOf((await files.load('copy')) ?? new Map())).toBe(textOf((await files.load('lab')) ?? new Map()))
})
