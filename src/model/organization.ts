import { type Static, Type } from '@sinclair/typebox'
import { maxComputes } from './compute.ts'
import { closedSchema, maybe, maybes, Name, nullable, objectSchema } from './schema/fields.ts'

/** The organization of a deployment that has made none, and of every credential that names none. */
export const defaultOrganization = 'default'

/** A part of names of directories, objects and tokens: no separator of those may be in it. */
export const organizationIdForm = /^[a-z][a-z0-9-]{0,39}$/
export const OrganizationId = Type.String({
  pattern: organizationIdForm.source,
  description: 'Id of the organization: 1 to 40 lower-case letters, digits and "-"; it cannot be changed',
  expects: 'an id of 1 to 40 lower-case letters, digits and "-", the first one a letter',
})

const limit = (description: string) =>
  Type.Integer({ minimum: 0, maximum: 1_000_000, description: `${description}; 0: no limit of its own` })
const limits = {
  max_projects: limit('Limit of projects, including labs'),
  max_computes: limit(`Limit of computes, at most ${maxComputes}`),
  requests_per_s: limit('Limit of requests per second for all its credentials together; in a Worker, for each isolate'),
}

export type Organization = Static<typeof Organization>
export const Organization = objectSchema('Organization', 'Its projects, computes and tokens are invisible to others', {
  organization_id: OrganizationId,
  name: Name,
  ...limits,
  created_at: nullable(
    Type.String({ description: 'Time in UTC (RFC 3339); null for `default`, which is always there' }),
  ),
})

/** What an organization may use; 0: as much as the deployment. */
export type OrganizationLimits = Pick<Organization, keyof typeof limits>

export const withoutLimits: OrganizationLimits = { max_projects: 0, max_computes: 0, requests_per_s: 0 }

export type OrganizationCreate = Static<typeof OrganizationCreate>
export const OrganizationCreate = closedSchema('OrganizationCreate', 'A new organization, by default without limits', {
  organization_id: OrganizationId,
  name: maybe(Name),
  ...maybes(limits),
})

export type OrganizationUpdate = Static<typeof OrganizationUpdate>
export const OrganizationUpdate = closedSchema('OrganizationUpdate', 'Changes of an organization', {
  name: maybe(Name),
  ...maybes(limits),
})
