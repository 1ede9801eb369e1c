import { expect, onTestFinished, test, vi } from 'vitest'
import { DirectoryRegistry } from '../../../src/labs/directory-registry.ts'
import type { ProjectRecord } from '../../../src/labs/lab/document.ts'
import { withDefaults } from '../../../src/labs/lab/fields.ts'
import { defaultLabLimits } from '../../../src/labs/lab/lab-limits.ts'
import type { LabRegistry } from '../../../src/labs/registry.ts'
import { SingleLabRegistry } from '../../../src/labs/single-lab-registry.ts'
import type { LabListEvent } from '../../../src/model/lab/event.ts'
import { labSettings } from '../../../src/model/lab/project.ts'
import { MemoryLabs } from '../../support/memory-labs.ts'
import { MemoryPresent } from '../../support/memory-present.ts'

const id = '6b3f0c1e-0000-4000-8000-000000000001'
const other = '6b3f0c1e-0000-4000-8000-000000000002'

const headOf = (project_id: string, name: string): ProjectRecord => ({
  ...{ project_id, name, path: '/there', revision: 0, computes: ['local'], is_open: false },
  ...withDefaults(labSettings, {}),
})

function registryOf(
  heads: ConstructorParameters<typeof LabRegistry>[0]['heads'] = new Map(),
  present = new MemoryPresent(),
) {
  const warnings: string[] = []
  const warn = (message: string) => void warnings.push(message)
  const registry = new DirectoryRegistry({ heads, limits: () => defaultLabLimits, warn }, new MemoryLabs(), present)
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

/** Time in the hands of the test. */
function useClock() {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
}

test('who has a lab open in another process is listed and told, until the lab is closed', async () => {
  useClock()
  const present = new MemoryPresent()
  const { registry } = registryOf(undefined, present)
  const head = { ...headOf(id, 'campus'), is_open: true }
  await registry.register(id, head)
  const told: unknown[] = []
  registry.listen(({ action, event }) => void told.push([action, 'present' in event ? event.present : undefined]))
  for (const names of [['ada'], ['ada'], ['ada', 'grace'], []]) await registry.keepPresent(id, names)
  expect(told.splice(0)).toEqual([['ada'], ['ada', 'grace'], undefined].map((names) => ['project.updated', names]))
  await registry.keepPresent(id, ['ada'])
  expect(registry.view(id, head).present).toEqual(['ada'])
  // A directory that was idle has them from its table.
  expect(registryOf(new Map([[id, { head }]]), present).registry.view(id, head).present).toEqual(['ada'])
  await registry.register(id, { ...head, is_open: false })
  await registry.register(id, head)
  expect(told.splice(0)).toEqual([
    ['project.updated', ['ada']],
    ['project.closed', undefined],
    ['project.opened', undefined],
  ])
  expect(present.reports.size).toBe(0)
  // A report of a lab that was deleted meanwhile.
  await registry.keepPresent(other, ['ada'])
  expect(present.reports.size).toBe(0)
})

test('a lab whose process has ended without a word has nobody after a while; the next report of any lab tells so', async () => {
  useClock()
  const { registry } = registryOf()
  for (const it of [id, other]) await registry.register(it, { ...headOf(it, it), is_open: true })
  await registry.keepPresent(id, ['ada'])
  const seen: string[] = []
  registry.listen(({ event }) => void seen.push((event as { project_id: string }).project_id))
  const view = () => registry.view(id, registry.get(id) as ProjectRecord)
  vi.advanceTimersByTime(149_000)
  expect(view().present).toEqual(['ada'])
  vi.advanceTimersByTime(1000)
  expect(view()).not.toHaveProperty('present')
  await registry.keepPresent(other, ['grace'])
  expect(seen).toEqual([id, other])
})

test('the process of a lab reports at once who comes and goes, and once a minute who stays', async () => {
  useClock()
  const reports: (readonly string[])[] = []
  let isThere = true
  const directory = {
    put: async () => {},
    remove: async () => {},
    freeName: async (name: string) => name,
    job: async () => {},
    present: async (_: string, names: readonly string[]) => {
      if (!isThere) throw new Error('The directory restarts')
      reports.push(names)
    },
  }
  const options = { heads: new Map(), limits: () => defaultLabLimits, warn: () => {} }
  const registry = new SingleLabRegistry(options, id, directory)
  const tell = async (present: readonly string[], isChange: boolean) => {
    registry.tellPresent({ id, present }, isChange)
    await vi.advanceTimersByTimeAsync(10_000)
    return reports.splice(0)
  }
  expect(await tell(['ada'], true)).toEqual([['ada']])
  expect(await tell(['ada', 'grace'], true)).toEqual([['ada', 'grace']])
  for (let times = 0; times < 5; times++) expect(await tell(['ada', 'grace'], false)).toEqual([])
  expect(await tell(['ada', 'grace'], false)).toEqual([['ada', 'grace']])
  isThere = false
  expect(await tell(['grace'], true)).toEqual([])
  isThere = true
  expect(await tell(['grace'], false)).toEqual([['grace']])
})
