import { badRequest } from '../../lib/errors/api-error.ts'
import { requireNoSeparator } from '../../lib/errors/project-name.ts'
import { isUuid } from '../../model/schema/fields.ts'

/** 403 for a name that separates parts of a path, 400 for one that looks like an id. */
export function requireName(name: string): void {
  requireNoSeparator(name)
  if (isUuid(name)) throw badRequest('name: a name must not look like an id (UUID); choose another name')
}
