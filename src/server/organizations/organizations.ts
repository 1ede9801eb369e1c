import { KeyedMutex } from '../../lib/async/keyed-mutex.ts'
import { badRequest, conflict, notFound } from '../../lib/errors/api-error.ts'
import { compareText } from '../../lib/text/compare-text.ts'
import { maxComputes } from '../../model/compute.ts'
import {
  defaultOrganization,
  type Organization,
  type OrganizationCreate,
  type OrganizationUpdate,
  withoutLimits,
} from '../../model/organization.ts'

/** Stores the organizations: `default` only when it was changed. */
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

/** `default` as it is until it is changed. */
const unchanged: Organization = {
  organization_id: defaultOrganization,
  name: 'default',
  created_at: null,
  ...withoutLimits,
}

/** The organizations of a deployment, for its administrator. `default` is always there, at first without limits. */
export class Organizations {
  readonly #options: OrganizationsOptions
  readonly #mutex = new KeyedMutex()

  constructor(options: OrganizationsOptions) {
    this.#options = options
  }

  /** `default` first, then the oldest first. */
  async list(): Promise<Organization[]> {
    const key = ({ created_at, organization_id }: Organization) => `${created_at} ${organization_id}`
    const made = (await this.#made()).toSorted((a, b) => compareText(key(a), key(b)))
    return [await this.get(defaultOrganization), ...made]
  }

  /** 404. */
  async get(id: string): Promise<Organization> {
    const found = await this.#options.store.get(id)
    if (found !== undefined) return found
    if (id === defaultOrganization) return unchanged
    throw noSuchOrganization(id)
  }

  async has(id: string): Promise<boolean> {
    return id === defaultOrganization || (await this.#options.store.get(id)) !== undefined
  }

  /** 409 for an id that is taken, and above the limit of the deployment; 400 for a limit that could not be in force. */
  async create({ organization_id: id, name, ...limits }: OrganizationCreate): Promise<Organization> {
    requirePossible(limits.max_computes)
    const { store, states, max, now = Date.now } = this.#options
    // One at a time: the number is limited.
    return this.#mutex.run('', async () => {
      if (await this.has(id)) throw conflict(`organization_id: an organization ${id} already exists`)
      if ((await this.#made()).length >= max)
        throw conflict(`The limit of ${max} organizations is reached: delete some first`, {
          code: 'limit-reached',
        })
      const organization: Organization = {
        organization_id: id,
        name: name ?? id,
        max_projects: limits.max_projects ?? 0,
        max_computes: limits.max_computes ?? 0,
        requests_per_s: limits.requests_per_s ?? 0,
        created_at: new Date(now()).toISOString(),
      }
      await states.made(organization)
      await store.put(organization)
      return organization
    })
  }

  /** A limit below the present number deletes nothing. 404; 400 as for `create`, but for what an earlier version took. */
  update(id: string, changes: OrganizationUpdate): Promise<Organization> {
    return this.#mutex.run('', async () => {
      const before = await this.get(id)
      if (changes.max_computes !== before.max_computes) requirePossible(changes.max_computes)
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
      if (id === defaultOrganization) throw conflict('The organization default cannot be deleted')
      await this.get(id)
      const { store, states } = this.#options
      const { projects, computes } = force ? { projects: 0, computes: 0 } : await states.content(id)
      if (projects + computes > 0)
        throw conflict(
          `The organization ${id} has projects (${projects}) or computes (${computes}): delete them first, or set force=yes`,
        )
      await states.remove(id, () => store.remove(id))
    })
  }

  /** All but `default`. */
  async #made(): Promise<Organization[]> {
    const all = await this.#options.store.list()
    return all.filter(({ organization_id }) => organization_id !== defaultOrganization)
  }
}

export const noSuchOrganization = (id: string) =>
  notFound(`No such organization: ${id}`, { code: 'no-such-organization' })

/** 400 for more computes than a gateway takes for an organization. */
function requirePossible(max: number | null | undefined): void {
  if (max == null || max <= maxComputes) return
  throw badRequest(`max_computes: a gateway allows at most ${maxComputes} computes per organization, got ${max}`)
}
