import { badRequest } from '../../lib/errors/api-error.ts'
import { validate } from '../../model/validation/validate.ts'
import type { Members } from './members.ts'
import { defaultsIn, templateSchema, templateTypes } from './template-schemas.ts'

/** Categories of templates as numbers, which earlier clients send. */
export const categories = ['router', 'switch', 'guest', 'firewall']
/** Members of earlier clients, by those of 2.2. */
const earlier = { compute_id: 'server', template_type: 'node_type', linked_clone: 'linked_base' } as const

/** A new template with all its members, as GNS3 2.2 stores it. 400 for an unknown type, an unknown member and a wrong value. */
export function completedTemplate(body: Members): Members {
  const { category, ...given } = body
  const named: Record<string, unknown> = {
    ...given,
    ...(category !== undefined && { category: typeof category === 'number' ? categories[category] : category }),
  }
  for (const [now, before] of Object.entries(earlier)) {
    if (!(before in named)) continue
    named[now] ??= named[before]
    delete named[before]
  }
  const { template_type: type } = named
  const schema = templateSchema(type, named.platform)
  if (schema === undefined)
    throw badRequest(`template_type: expected one of ${templateTypes.join(', ')}, got ${JSON.stringify(type)}`)
  return { ...defaultsIn(schema), ...(validate(schema, named) as Members) }
}
