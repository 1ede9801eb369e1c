import { expect, test } from 'vitest'
import type { Organization } from '../../../../src/model/organization.ts'
import { Organizations } from '../../../../src/server/organizations/organizations.ts'

/** The organizations of a deployment whose store has this one. */
function withStored(stored: Organization): Organizations {
  const records = new Map([[stored.organization_id, stored]])
  return new Organizations({
    store: {
      list: async () => [...records.values()],
      get: async (id) => records.get(id),
      put: async (organization) => void records.set(organization.organization_id, organization),
      remove: async (id) => void records.delete(id),
    },
    states: {
      content: async () => ({ projects: 0, computes: 0 }),
      made: async () => {},
      changed: async () => {},
      remove: async (_, remove) => remove(),
    },
    max: 10,
  })
}

const limits = { max_projects: 0, requests_per_s: 0 }
const school: Organization = {
  ...{ organization_id: 'school', name: 'The school', created_at: '2026-01-01T00:00:00.000Z' },
  ...{ ...limits, max_computes: 5000 },
}

test('more computes than a gateway takes are no limit; what an earlier version stored can be sent back, and lowered', async () => {
  const organizations = withStored(school)
  const refused = {
    status: 400,
    message: 'max_computes: a gateway allows at most 1000 computes per organization, got 1001',
  }
  await expect(organizations.create({ organization_id: 'lab', max_computes: 1001 })).rejects.toMatchObject(refused)
  await expect(organizations.update('school', { max_computes: 1001 })).rejects.toMatchObject(refused)
  expect(await organizations.get('school')).toEqual(school)
  const renamed = { ...school, name: 'A school' }
  expect(await organizations.update('school', { name: 'A school', ...limits, max_computes: 5000 })).toEqual(renamed)
  expect(await organizations.update('school', { max_computes: 1000 })).toEqual({ ...renamed, max_computes: 1000 })
})
