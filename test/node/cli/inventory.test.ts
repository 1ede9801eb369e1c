import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import { inventoryTexts } from '../../../src/labs/export/inventory-text.ts'
import type { InventoryHost, LabInventory } from '../../../src/model/lab/inventory.ts'
import { freshDirectory } from '../../support/directory.ts'
import { requireProgram } from '../../support/require.ts'
import { testWith } from '../../support/test-with.ts'

const run = promisify(execFile)
const host = (name: string, more: Partial<InventoryHost>): InventoryHost => ({
  ...{ name, host_name: name, node_id: name, kind: 'container', groups: ['container'], address: null },
  ...{ forwards: [], console: null, ...more },
})
const ssh = { protocol: 'tcp', host_address: '0.0.0.0', host_port: 8022, guest_port: 22 } as const
const lab: LabInventory = {
  lab: 'wan',
  hosts: [host('web-1', { address: '172.20.20.11', forwards: [ssh] }), host('R1', { address: '172.20.20.12' })],
}

testWith(requireProgram('ansible-inventory'))('Ansible reads the hosts, their variables and groups', async () => {
  const file = join(await freshDirectory(), 'inventory.yaml')
  await writeFile(file, inventoryTexts.ansible(lab))
  const { stdout, stderr } = await run('ansible-inventory', ['-i', file, '--list'])
  expect(stderr).not.toContain('WARNING')
  expect(JSON.parse(stdout)).toMatchObject({
    _meta: {
      hostvars: {
        'web-1': { ansible_host: '127.0.0.1', ansible_port: 8022, patchbay_address: '172.20.20.11' },
        R1: { ansible_host: '172.20.20.12' },
      },
    },
    container: { hosts: ['web-1', 'R1'] },
  })
})

testWith(requireProgram('ssh'))('OpenSSH reads where to connect, by both names', async () => {
  const file = join(await freshDirectory(), 'config')
  await writeFile(file, inventoryTexts.ssh(lab))
  for (const name of ['web-1', 'web-1.wan'])
    expect((await run('ssh', ['-G', '-F', file, name])).stdout).toMatch(
      /^hostname 127\.0\.0\.1\nport 8022\n[\s\S]*^hostkeyalias web-1\.wan$/m,
    )
})
