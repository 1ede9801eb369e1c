import { expect, test } from 'vitest'
import { archivedLab } from '../../../src/controller/archive-document.ts'

/** The console types that nodes of an archive of GNS3 get, by their names. */
function consolesOf(types: Readonly<Record<string, string>>): Record<string, string> {
  const nodes = Object.entries(types).map(([name, node_type]) => ({
    ...{ node_id: crypto.randomUUID(), name, node_type, compute_id: 'local', console: 5000, console_type: 'telnet' },
    properties: {},
  }))
  const topology = { computes: [], drawings: [], links: [], nodes }
  const document = { name: 'theirs', project_id: crypto.randomUUID(), revision: 9, version: '2.2.59', topology }
  const lab = archivedLab(document, undefined, crypto.randomUUID())
  return Object.fromEntries(lab.nodes.map(({ name, console_type }) => [name, console_type]))
}

test('a node whose kind has no console is read without the console that GNS3 gave it', () => {
  const types = { SW: 'ethernet_switch', Hub: 'ethernet_hub', Cloud: 'cloud', PC: 'vpcs', Box: 'docker' }
  expect(consolesOf(types)).toEqual({ SW: 'none', Hub: 'none', Cloud: 'none', PC: 'telnet', Box: 'telnet' })
})
