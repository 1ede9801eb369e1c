import { defaultOrganization } from '../../src/model/organization.ts'
import type { Env } from './env.ts'
import type { FleetObject } from './fleet-object.ts'
import type { ProjectObject } from './project-object.ts'

/** The name of the object with the state of the fleet, within its organization. */
const fleetName = 'fleet'

/**
 * The Durable Objects of one organization. Their names begin with the id of the organization and `/`, so that no id of a project or of a
 * compute leads to the object of another organization. Those of `default` have no such beginning, as versions before organizations
 * named them.
 */
export class Objects {
  readonly organization: string
  readonly #env: Pick<Env, 'FLEET' | 'PROJECTS'>

  constructor(env: Pick<Env, 'FLEET' | 'PROJECTS'>, organization = defaultOrganization) {
    this.#env = env
    this.organization = organization
  }

  /** The objects of the organization that an object itself belongs to. */
  static around(env: Env, { id }: DurableObjectState): Objects {
    const { name } = id
    if (name === undefined) throw new Error('An object of the gateway has a name')
    const slash = name.indexOf('/')
    return new Objects(env, slash === -1 ? defaultOrganization : name.slice(0, slash))
  }

  /** The organization as tokens and apps know it: undefined for `default`. */
  get named(): string | undefined {
    return this.organization === defaultOrganization ? undefined : this.organization
  }

  fleet(): DurableObjectStub<FleetObject> {
    return this.#env.FLEET.getByName(this.#named(fleetName))
  }

  /** The object of a lab. */
  project(id: string): DurableObjectStub<ProjectObject> {
    return this.#env.PROJECTS.getByName(this.#named(id))
  }

  #named(name: string): string {
    return this.organization === defaultOrganization ? name : `${this.organization}/${name}`
  }
}
