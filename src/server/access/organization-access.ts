import { badRequest, forbidden } from '../../lib/errors/api-error.ts'
import type { Identity } from '../../model/access/identity.ts'
import { organizationHeader } from '../../model/access/organization-header.ts'
import { defaultOrganization, organizationIdForm } from '../../model/organization.ts'
import { tokenOfKey } from '../auth/tokens.ts'
import { noSuchOrganization } from '../organizations/organizations.ts'

/**
 * The identity in the organization for which the request is: its own, or for the administrator of the deployment the one that the
 * header names. 403 for a header that names another's, 404 for an organization that is not there.
 */
export function inOrganization(
  identity: Identity,
  { headers }: Request,
  exists: (organization: string) => boolean | Promise<boolean>,
): Identity | Promise<Identity> {
  const named = headers.get(organizationHeader)?.toLowerCase()
  const wanted = named ?? identity.organization ?? defaultOrganization
  return wanted === defaultOrganization && identity.organization === undefined
    ? identity
    : inAnother(identity, wanted, exists)
}

async function inAnother(
  identity: Identity,
  wanted: string,
  exists: (organization: string) => boolean | Promise<boolean>,
): Promise<Identity> {
  const own = identity.organization ?? defaultOrganization
  if (!organizationIdForm.test(wanted))
    throw badRequest(
      `${organizationHeader}: expected the id of an organization, got ${JSON.stringify(wanted.slice(0, 80))}`,
    )
  if (wanted !== own && identity.isOfDeployment !== true)
    throw forbidden(`${organizationHeader}: "${identity.name}" belongs to the organization ${own}`)
  const { organization: _, ...rest } = identity
  if (wanted === defaultOrganization) return rest
  // A token holds only while its organization does.
  if ((wanted !== own || tokenOfKey(identity.key) === undefined) && !(await exists(wanted)))
    throw noSuchOrganization(wanted)
  return { ...rest, organization: wanted }
}
