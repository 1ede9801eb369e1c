import { Check } from '@sinclair/typebox/value'
import { Organization } from '../../../src/model/organization.ts'
import type { OrganizationStore } from '../../../src/server/organizations/organizations.ts'

/** Organizations in a table of a directory: that of `default` has all that were made or changed, every other one its own. */
export class OrganizationTable implements OrganizationStore {
  readonly #sql: SqlStorage

  constructor(sql: SqlStorage) {
    this.#sql = sql
    sql.exec('CREATE TABLE IF NOT EXISTS organizations (id TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID')
  }

  async list(): Promise<readonly Organization[]> {
    return this.#sql.exec<Row>('SELECT record FROM organizations').toArray().flatMap(organizationOf)
  }

  async get(id: string): Promise<Organization | undefined> {
    return this.find(id)
  }

  find(id: string): Organization | undefined {
    return this.#sql.exec<Row>('SELECT record FROM organizations WHERE id = ?', id).toArray().flatMap(organizationOf)[0]
  }

  async put(organization: Organization): Promise<void> {
    const { organization_id: id } = organization
    this.#sql.exec('INSERT OR REPLACE INTO organizations VALUES (?, ?)', id, JSON.stringify(organization))
  }

  async remove(id: string): Promise<void> {
    this.#sql.exec('DELETE FROM organizations WHERE id = ?', id)
  }
}

interface Row extends Record<string, SqlStorageValue> {
  record: string
}

function organizationOf({ record }: Row): Organization[] {
  const value: unknown = JSON.parse(record)
  return Check(Organization, value) ? [value] : []
}
