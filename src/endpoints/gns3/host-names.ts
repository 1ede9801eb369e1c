import { conflict } from '../../lib/errors/api-error.ts'
import type { Gns3Kind } from '../../model/kinds/kind.ts'
import type { Endpoint } from '../../server/http/endpoint.ts'
import type { Members } from './members.ts'
import { sharedKinds } from './names.ts'

type Rule = NonNullable<Gns3Kind['hostName']>

const label = /^(?!-)[a-z0-9-]{1,63}(?<!-)$/i

/** Names that GNS3 3 takes for nodes of some kinds: a host name (RFC 1123, 2.1), or that of a router of IOS. */
const rules: Readonly<Record<Rule, { readonly fits: (name: string) => boolean; readonly expects: string }>> = {
  rfc1123: {
    fits(name) {
      const labels = name.replace(/\.$/, '').split('.')
      return name.length <= 253 && !/^\d+$/.test(labels.at(-1) ?? '') && labels.every((it) => label.test(it))
    },
    expects: 'a host name (RFC 1123): letters, digits and hyphens',
  },
  ios: {
    fits: (name) => label.test(name) && /^[a-z]/i.test(name),
    expects: 'a name of IOS: at most 63 letters, digits and hyphens, a letter first',
  },
}

/** 409 when a node of GNS3 3 gets a name that its kind cannot have there. */
export function requireHostName({ body: schema }: Endpoint, { name }: Members): void {
  const found = sharedKinds.find(([{ create, update }]) => create === schema || update === schema)
  const rule = found?.[1].hostName
  if (rule === undefined || typeof name !== 'string' || rules[rule].fits(name)) return
  throw conflict(`name: expected ${rules[rule].expects}, got ${JSON.stringify(name.slice(0, 80))}`)
}
