import { Type } from '@sinclair/typebox'
import { notFound } from '../../../lib/errors/api-error.ts'
import { Organization, OrganizationCreate, OrganizationId, OrganizationUpdate } from '../../../model/organization.ts'
import { yesOrNo } from '../../../model/schema/fields.ts'
import { type Context, created, type Endpoint, endpoint, ok } from '../../../server/http/endpoint.ts'
import { noContentAfter } from '../../compute/no-content.ts'

const base = '/v2/organizations'
const deployment = { owner: 'self', tag: 'v2 organizations', role: 'admin', ofDeployment: true } as const
const noneHere = 'This service has no organizations: it is not a gateway'
const params = Type.Object({ organization_id: OrganizationId })
const notThere = { 404: 'There is no such organization, or this service has none' }

export const organizationEndpoints: readonly Endpoint[] = [
  endpoint({
    method: 'GET',
    path: base,
    ...deployment,
    summary: 'List the organizations',
    description:
      'Computes, projects and tokens of an organization are invisible to all others. For the administrator of the deployment, who has ' +
      'the credentials of its configuration; the header X-Patchbay-Organization of any request says in which one that administrator acts.',
    replies: { 200: { description: 'The organizations, `default` first', schema: Type.Array(Organization) } },
    errors: { 404: noneHere },
    handle: async (_, context) => ok(await organizationsOf(context).list()),
  }),
  endpoint({
    method: 'POST',
    path: base,
    ...deployment,
    summary: 'Create an organization',
    body: OrganizationCreate,
    viewSchema: Organization,
    replies: { 201: { description: 'The organization', schema: Organization } },
    errors: { 404: noneHere, 409: 'The id is taken, or there are too many', 507: 'The disk is full' },
    handle: async ({ body }, context) => created(await organizationsOf(context).create(body)),
  }),
  endpoint({
    method: 'GET',
    path: `${base}/{organization_id}`,
    ...deployment,
    summary: 'Read an organization',
    params,
    replies: { 200: { description: 'The organization', schema: Organization } },
    errors: notThere,
    handle: async ({ params }, context) => ok(await organizationsOf(context).get(params.organization_id)),
  }),
  endpoint({
    method: 'PUT',
    path: `${base}/{organization_id}`,
    ...deployment,
    summary: 'Change the name or the limits of an organization; a lower limit deletes nothing',
    params,
    body: OrganizationUpdate,
    viewSchema: Organization,
    current: ({ params }, context) => organizationsOf(context).get(params.organization_id),
    replies: { 200: { description: 'The changed organization', schema: Organization } },
    errors: { ...notThere, 507: 'The disk is full' },
    handle: async ({ params, body }, context) =>
      ok(await organizationsOf(context).update(params.organization_id, body)),
  }),
  endpoint({
    method: 'DELETE',
    path: `${base}/{organization_id}`,
    ...deployment,
    summary: 'Delete an organization, and revoke its tokens',
    params,
    query: Type.Object({
      force: yesOrNo(
        'Delete it even if it has projects or computes: the gateway forgets them, and nodes on the computes keep running',
      ),
    }),
    replies: { 204: { description: 'Deleted' } },
    errors: { ...notThere, 409: 'It has projects or computes, or is `default`', 507: 'The disk is full' },
    handle: ({ params, query }, context) =>
      noContentAfter(organizationsOf(context).remove(params.organization_id, { force: query.force === 'yes' })),
  }),
]

function organizationsOf({ organizations }: Context): NonNullable<Context['organizations']> {
  if (organizations === undefined) throw notFound(noneHere)
  return organizations
}
