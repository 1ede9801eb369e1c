import { expect, test } from 'vitest'
import { EventLog } from '../../../src/fleet/events/event-log.ts'
import { LabAccess } from '../../../src/labs/access.ts'
import { LabDocuments } from '../../../src/labs/documents.ts'
import type { ProjectRecord } from '../../../src/labs/lab/document.ts'
import { withDefaults } from '../../../src/labs/lab/fields.ts'
import { defaultLabLimits } from '../../../src/labs/lab/lab-limits.ts'
import { LabRegistry } from '../../../src/labs/registry.ts'
import type { ComputeSync } from '../../../src/labs/sync.ts'
import type { LabEvent } from '../../../src/model/lab/event.ts'
import { labSettings } from '../../../src/model/lab/project.ts'
import { MemoryLabs } from '../../support/memory-labs.ts'

const id = '6b3f0c1e-0000-4000-8000-000000000001'

/** Access to one closed lab, `campus`, whose computes are not asked. */
async function accessOf() {
  const head: ProjectRecord = {
    ...{ project_id: id, name: 'campus', path: '/there', revision: 0, computes: ['local'], is_open: false },
    ...withDefaults(labSettings, {}),
  }
  const [store, limits] = [new MemoryLabs(), () => defaultLabLimits]
  const registry = new LabRegistry({ heads: new Map([[id, { head }]]), limits, warn: () => {} })
  const events = new EventLog<LabEvent>({ history: 1, feeds: () => 1 })
  const documents = new LabDocuments({ store, events, registry, limits })
  await documents.saveNew(id, head)
  const sync = { beforeRead: async () => {}, recordReason: async () => false } as Partial<ComputeSync> as ComputeSync
  return { access: new LabAccess(registry, documents, sync), documents }
}

test('a lab is found by its name, and changed only while it is open', async () => {
  const { access, documents } = await accessOf()
  const lab = await access.find('Campus')
  expect(lab.id).toBe(id)
  await expect(access.lab('campus')).rejects.toMatchObject({ status: 404, code: 'project-closed' })
  lab.isOpen = true
  documents.addOpen(lab)
  expect(await access.lab('campus')).toBe(lab)
})

test('operations on a lab run one after the other', async () => {
  const { access } = await accessOf()
  const did: string[] = []
  let finish = () => {}
  const first = access.exclusively(id, async () => {
    did.push('first')
    await new Promise<void>((resolve) => {
      finish = resolve
    })
    did.push('first is over')
  })
  const second = access.exclusively(id, async () => void did.push('second'))
  await expect.poll(() => did).toEqual(['first'])
  finish()
  await Promise.all([first, second])
  expect(did).toEqual(['first', 'first is over', 'second'])
})

test('a lab that is being moved is not changed meanwhile', async () => {
  const { access } = await accessOf()
  {
    using _ = access.beginMove(id)
    await expect(access.exclusively(id, async () => {})).rejects.toMatchObject({ status: 409 })
  }
  await access.exclusively(id, async () => {})
})
