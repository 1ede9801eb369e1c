import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Type } from '@sinclair/typebox'
import {
  defaultOrganization,
  type Organization,
  Organization as OrganizationSchema,
  organizationIdForm,
  withoutLimits,
} from '../../../../src/model/organization.ts'
import type { OrganizationStore } from '../../../../src/server/organizations/organizations.ts'
import { withDiskErrors } from '../../engine/storage/disk.ts'
import { jsonOf, makeDirectory, removeTree, renameDurable } from '../../engine/storage/durable-file.ts'
import { ServiceRecords } from '../../engine/storage/service-records.ts'

const FileContent = Type.Object({ version: Type.Literal(1), organization: OrganizationSchema })

const format = {
  file: 'organization.json',
  name: 'the settings of an organization',
  parse: jsonOf(FileContent),
  lost: 'it has no limits any more',
}

/** The end of the name of a directory that is being deleted; no id has a dot. */
const removedEnd = '.removed'

interface Stored {
  readonly organization: Organization
  /** The records in the directory of the organization. */
  readonly records: ServiceRecords
}

/**
 * The organizations, each with its records in `{data}/organizations/{id}`. A directory there is an organization. The records of `default`
 * are those of the service; its settings are there once they were changed.
 */
export class OrganizationFiles implements OrganizationStore {
  readonly #records: ServiceRecords
  readonly #directory: string
  readonly #minFreeMb: () => number
  readonly #stored = new Map<string, Stored>()

  private constructor(records: ServiceRecords, minFreeMb: () => number) {
    this.#records = records
    this.#directory = records.pathOf('organizations')
    this.#minFreeMb = minFreeMb
  }

  /** Also removes what a deletion that broke off has left. */
  static async open(records: ServiceRecords, minFreeMb: () => number): Promise<OrganizationFiles> {
    const files = new OrganizationFiles(records, minFreeMb)
    const { value } = await records.read(format)
    if (value !== undefined) files.#keep({ ...value.organization, organization_id: defaultOrganization }, records)
    for (const name of await namesIn(files.#directory)) {
      if (name.endsWith(removedEnd)) await removeTree(join(files.#directory, name))
      else if (organizationIdForm.test(name)) await files.#load(name)
    }
    return files
  }

  async list(): Promise<readonly Organization[]> {
    return [...this.#stored.values()].map(({ organization }) => organization)
  }

  async get(id: string): Promise<Organization | undefined> {
    return this.#stored.get(id)?.organization
  }

  /** The present settings and the records of an organization. */
  find(id: string): Stored | undefined {
    return this.#stored.get(id)
  }

  /** 507 when the disk is full. */
  async put(organization: Organization): Promise<void> {
    const { organization_id: id } = organization
    if (id === defaultOrganization) {
      await this.#records.write(format, { version: 1, organization })
      return this.#keep(organization, this.#records)
    }
    const known = this.#stored.get(id)
    const records = known?.records ?? (await withDiskErrors('The organization was not created', () => this.#open(id)))
    const write = () => records.write(format, { version: 1, organization }, { isMore: known === undefined })
    if (known === undefined) await write().catch((error: unknown) => this.#undo(id, error))
    else await write()
    this.#keep(organization, records)
  }

  /** Takes the organization away; `removeFiles` then removes its files. */
  async remove(id: string): Promise<void> {
    const path = this.#path(id)
    await withDiskErrors('The organization was not deleted', () => renameDurable(path, `${path}${removedEnd}`))
    this.#stored.delete(id)
  }

  /** Removes the files of a deleted organization. */
  removeFiles(id: string): Promise<void> {
    return removeTree(`${this.#path(id)}${removedEnd}`)
  }

  #keep(organization: Organization, records: ServiceRecords): void {
    this.#stored.set(organization.organization_id, { organization, records })
  }

  #path(id: string): string {
    return join(this.#directory, id)
  }

  async #open(id: string): Promise<ServiceRecords> {
    const { log } = this.#records
    await makeDirectory(this.#path(id))
    return ServiceRecords.open({ data: this.#path(id), minFreeMb: this.#minFreeMb, log })
  }

  async #load(id: string): Promise<void> {
    const records = await this.#open(id)
    const { value } = await records.read(format)
    const lost: Organization = {
      organization_id: id,
      name: id,
      ...withoutLimits,
      created_at: new Date(0).toISOString(),
    }
    this.#keep({ ...(value?.organization ?? lost), organization_id: id }, records)
  }

  async #undo(id: string, error: unknown): Promise<never> {
    await removeTree(this.#path(id))
    throw error
  }
}

const namesIn = (directory: string): Promise<string[]> =>
  readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
