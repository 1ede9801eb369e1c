import { KeyedMutex } from '../async/keyed-mutex.ts'
import { conflict, notFound } from '../errors/api-error.ts'
import {
  defaultOrganization,
  type Organization,
  type OrganizationCreate,
  type OrganizationUpdate,
} from '../model/organization.ts'

/** Stores the organizations but `default`. */
export interface OrganizationStore {
  list(): Promise<readonly Organization[]>
  get(id: string): Promise<Organization | undefined>
  /** Saves a new or a changed one before the promise resolves. */
  put(organization: Organization): Promise<void>
  remove(id: string): Promise<void>
}

/** What is in an organization. */
export interface OrganizationContent {
  readonly projects: number
  readonly computes: number
}

/** The state of organizations: their tokens, computes and projects. */
export interface OrganizationStates {
  content(id: string): Promise<OrganizationContent>
  /** Prepares the state of a new organization, before it is stored. */
  made(organization: Organization): Promise<void>
  /** Tells the state its limits. */
  changed(organization: Organization): Promise<void>
  /** Ends what runs for the organization, runs `forget`, which removes it from the store, and then removes its state and its tokens. */
  remove(id: string, forget: () => Promise<void>): Promise<void>
}

export interface OrganizationsOptions {
  readonly store: OrganizationStore
  readonly states: OrganizationStates
  /** Most organizations, without `default`. */
  readonly max: number
  readonly now?: () => number
}

const theDefault: Organization = {
  ...{ organization_id: defaultOrganization, name: 'default', created_at: null },
  ...{ max_projects: 0, max_computes: 0, requests_per_s: 0 },
}

/** The organizations of a deployment, for its administrator. `default` is always there, and has no limits. */
export class Organizations {
  readonly #options: OrganizationsOptions
  readonly #mutex = new KeyedMutex()

  constructor(options: OrganizationsOptions) {
    this.#options = options
  }

  /** `default` first, then the oldest first. */
  async list(): Promise<Organization[]> {
    const made = await this.#options.store.list()
    const key = ({ created_at, organization_id }: Organization) => `${created_at} ${organization_id}`
    return [theDefault, ...made.toSorted((a, b) => (key(a) < key(b) ? -1 : 1))]
  }

  /** 404. */
  async get(id: string): Promise<Organization> {
    const found = id === defaultOrganization ? theDefault : await this.#options.store.get(id)
    if (found === undefined) throw noSuchOrganization(id)
    return found
  }

  async has(id: string): Promise<boolean> {
    return id === defaultOrganization || (await this.#options.store.get(id)) !== undefined
  }

  /** 409 for an id that is taken, and above the limit of the deployment. */
  create({ organization_id: id, name, ...limits }: OrganizationCreate): Promise<Organization> {
    const { store, states, max, now = Date.now } = this.#options
    // One at a time: the number is limited.
    return this.#mutex.run('', async () => {
      if (await this.has(id)) throw conflict(`organization_id: there is an organization ${id} already`)
      if ((await store.list()).length >= max)
        throw conflict(`There are ${max} organizations already, and no more are possible: delete some first`, {
          word: 'limit-reached',
        })
      const organization: Organization = {
        ...{ organization_id: id, name: name ?? id },
        ...{ max_projects: limits.max_projects ?? 0, max_computes: limits.max_computes ?? 0 },
        ...{ requests_per_s: limits.requests_per_s ?? 0, created_at: new Date(now()).toISOString() },
      }
      await states.made(organization)
      await store.put(organization)
      return organization
    })
  }

  /** A lower limit than what is there takes nothing away. 404; 409 for `default`. */
  update(id: string, changes: OrganizationUpdate): Promise<Organization> {
    return this.#mutex.run('', async () => {
      const before = await this.#own(id)
      const organization: Organization = {
        ...before,
        name: changes.name ?? before.name,
        max_projects: changes.max_projects ?? before.max_projects,
        max_computes: changes.max_computes ?? before.max_computes,
        requests_per_s: changes.requests_per_s ?? before.requests_per_s,
      }
      await this.#options.store.put(organization)
      await this.#options.states.changed(organization)
      return organization
    })
  }

  /** 404; 409 for `default`, and unless `force` for one with projects or computes. Its tokens end. */
  remove(id: string, { force }: { readonly force: boolean }): Promise<void> {
    return this.#mutex.run('', async () => {
      await this.#own(id)
      const { store, states } = this.#options
      const { projects, computes } = force ? { projects: 0, computes: 0 } : await states.content(id)
      if (projects + computes > 0)
        throw conflict(
          `The organization ${id} has projects (${projects}) or computes (${computes}): delete them first, or use force=yes`,
        )
      await states.remove(id, () => store.remove(id))
    })
  }

  async #own(id: string): Promise<Organization> {
    if (id === defaultOrganization) throw conflict('The organization default is always there, and has no limits')
    return this.get(id)
  }
}

export const noSuchOrganization = (id: string) =>
  notFound(`There is no organization ${id}`, { word: 'no-such-organization' })
