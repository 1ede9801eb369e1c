import { lstat, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { guestsName } from '../../../../runtime/node/drivers/nat/addresses.ts'
import { NatKind } from '../../../../runtime/node/drivers/nat/nat.ts'
import type { NatKindNode } from '../../../../runtime/node/drivers/nat/properties.ts'
import { natSettings } from '../../../../src/model/kinds/nat.ts'
import { freshDirectory } from '../../../support/directory.ts'

const defaults = Object.fromEntries(Object.entries(natSettings).map(([key, schema]) => [key, schema.default ?? '']))

test('the guests of a running nat are written to a file of their own, whatever links are in its directory', async () => {
  const directory = await freshDirectory()
  const victim = join(await freshDirectory(), 'victim')
  await writeFile(victim, 'precious')
  for (const name of [guestsName, `${guestsName}.writing`]) await symlink(victim, join(directory, name))
  const node = { key: 'n', status: 'started', directory, record: { name: 'net', ports: {}, properties: defaults } }
  const kind = new NatKind({ nodes: () => [], isLocal: () => false } as never)
  const guests = [{ port_number: 0, name: 'R1', address: '192.168.122.50' }]
  await kind.update(node as unknown as NatKindNode, { guests })
  expect(await readFile(victim, 'utf8')).toBe('precious')
  expect(JSON.parse(await readFile(join(directory, guestsName), 'utf8'))).toEqual(guests)
  // Readable to the process of the nat, which may be of another user.
  expect((await lstat(join(directory, guestsName))).mode.toString(8)).toBe('100644')
})
