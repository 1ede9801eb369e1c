import { expect, test } from 'vitest'
import { DirectoryRegistry } from '../../../src/labs/directory-registry.ts'
import type { ProjectRecord } from '../../../src/labs/lab/document.ts'
import { withDefaults } from '../../../src/labs/lab/fields.ts'
import { defaultLabLimits } from '../../../src/labs/lab/lab-limits.ts'
import type { LabRegistry } from '../../../src/labs/registry.ts'
import type { LabListEvent } from '../../../src/model/lab/event.ts'
import { labSettings } from '../../../src/model/lab/project.ts'
import { MemoryLabs } from '../../support/memory-labs.ts'

const id = '6b3f0c1e-0000-4000-8000-000000000001'
const other = '6b3f0c1e-0000-4000-8000-000000000002'

const headOf = (project_id: string, name: string): ProjectRecord => ({
  ...{ project_id, name, path: '/there', revision: 0, computes: ['local'], is_open: false },
  ...withDefaults(labSettings, {}),
})

function registryOf(heads: ConstructorParameters<typeof LabRegistry>[0]['heads'] = new Map()) {
  const warnings: string[] = []
  const warn = (message: string) => void warnings.push(message)
  const registry = new DirectoryRegistry({ heads, limits: () => defaultLabLimits, warn }, new MemoryLabs())
  const seen: string[] = []
  registry.listen(({ action }) => void seen.push(action))
  return { registry, warnings, seen }
}

test('a lab is found by its name in any case, and two have no name in common', () => {
  const { registry } = registryOf()
  registry.add(id, headOf(id, 'Campus'))
  expect(registry.idOf('campus')).toBe(id)
  expect(() => registry.add(other, headOf(other, 'CAMPUS'))).toThrow('already exists')
  expect(() => registry.idOf('branch')).toThrow('there is no project branch')
})

test('a name is reserved while a lab is being renamed', () => {
  const { registry } = registryOf()
  {
    using _ = registry.reserveName(id, 'branch')
    expect(() => registry.requireFreeName(other, 'branch')).toThrow('already exists')
  }
  expect(() => registry.requireFreeName(other, 'branch')).not.toThrow()
})

test('a lab that cannot be read stays closed, and this is reported once', () => {
  const { registry, warnings } = registryOf(new Map([[id, { head: headOf(id, 'campus'), fault: 'it is damaged' }]]))
  registry.markUnreadable(id, 'it is damaged')
  expect(warnings).toEqual([`The project campus (${id}) stays closed: it is damaged`])
  const head = registry.get(id) as ProjectRecord
  expect(registry.view(id, head).status_reason).toBe('it is damaged')
})

test('the heads that processes of labs report become events, unless nothing has changed that a list shows', async () => {
  const { registry, seen } = registryOf()
  const head = headOf(id, 'campus')
  await registry.register(id, { ...head, path: null })
  await registry.register(id, head)
  await registry.register(id, { ...head, revision: 1 })
  await registry.register(id, { ...head, is_open: true })
  await registry.remove(id)
  expect(seen).toEqual(['project.created', 'project.opened', 'project.deleted'])
})

test('an archive that fails is an event with the reason, and another attempt that begins is none', async () => {
  const { registry } = registryOf()
  const head = headOf(id, 'campus')
  await registry.register(id, head)
  const seen: LabListEvent[] = []
  registry.listen((event) => void seen.push(event))
  const again_at = '2026-01-01T00:00:00.000Z'
  await registry.register(id, { ...head, revision: 1, archiveAttempts: { tries: 1, again_at } })
  expect(seen).toEqual([])
  await registry.register(id, {
    ...head,
    revision: 2,
    archiveAttempts: { tries: 1, again_at, failure: 'the disk is full' },
  })
  const status_reason = 'It could not be archived (it will be tried again): the disk is full'
  expect(seen).toMatchObject([{ action: 'project.updated', event: { project_id: id, status_reason } }])
})
