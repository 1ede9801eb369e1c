import { ignore } from '../../../src/lib/async/ignore.ts'
import { defaultOrganization, type Organization } from '../../../src/model/organization.ts'
import type { OrganizationContent, OrganizationStates } from '../../../src/server/organizations/organizations.ts'
import type { Env } from '../shared/env.ts'
import { resultOf } from '../shared/object-reply.ts'
import { Objects } from '../shared/objects.ts'
import { encode } from '../shared/rpc-json.ts'

/** Most organizations of a deployment. */
export const maxOrganizations = 1000

/** The objects of organizations: each organization has its own, which its directory knows. */
export class OrganizationObjects implements OrganizationStates {
  readonly #env: Env

  constructor(env: Env) {
    this.#env = env
  }

  content(id: string): Promise<OrganizationContent> {
    return this.#objectOf(id).content()
  }

  /** First removes what a deletion that broke off has left. */
  async made(organization: Organization): Promise<void> {
    await this.#discard(organization.organization_id)
    await this.changed(organization)
  }

  async changed(organization: Organization): Promise<void> {
    // Its object has the table in which it was just stored.
    if (organization.organization_id === defaultOrganization) return
    await this.#objectOf(organization.organization_id).keepOrganization(encode(organization))
  }

  async remove(id: string, forget: () => Promise<void>): Promise<void> {
    await this.#discard(id)
    await forget()
  }

  async #discard(id: string): Promise<void> {
    const isThere = await resultOf(this.#objectOf(id).discard())
    if (isThere) await this.#objectOf(id).end().catch(ignore('a call of an object that ends has no answer'))
  }

  #objectOf(id: string) {
    return new Objects(this.#env, id).directory()
  }
}
