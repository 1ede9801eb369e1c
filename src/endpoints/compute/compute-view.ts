import { computeNameOf } from '../../compute/remote/address.ts'
import type { Compute } from '../../model/compute.ts'
import type { Context } from '../../server/http/endpoint.ts'

/** A compute with the aliases of kinds that clients of this service see. Credentials for some projects do not see where it is, and who logs in there. */
export const computeView = (
  compute: Compute,
  { aliasOf, projects }: Pick<Context, 'aliasOf' | 'projects'>,
): Compute => ({
  ...compute,
  capabilities: { ...compute.capabilities, node_types: compute.capabilities.node_types.map(aliasOf) },
  ...(!projects.isWhole && {
    name: computeNameView(compute, { projects }),
    host: '',
    port: 0,
    user: null,
    last_error: compute.last_error && 'The compute is not connected',
  }),
})

/** A name that nobody gave has the address and the user in it; credentials for some projects see the id instead. */
export const computeNameView = (compute: Compute, { projects }: Pick<Context, 'projects'>): string =>
  projects.isWhole || compute.name !== computeNameOf({ ...compute, name: null }) ? compute.name : compute.compute_id
