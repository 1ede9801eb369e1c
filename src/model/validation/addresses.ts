import { badRequest } from '../../lib/errors/api-error.ts'
import type { KindDescriptor } from '../kinds/kind.ts'

type Members = Readonly<Record<string, unknown>>

/**
 * 400 for MAC addresses that no adapter can have, or that occur twice in a node, unless the node has them already. `current` reads the
 * node, only for kinds with such addresses.
 */
export async function requireAddresses(
  { addressIssue }: Pick<KindDescriptor, 'addressIssue'>,
  input: Members,
  current: () => Promise<Members | undefined>,
): Promise<void> {
  if (addressIssue === undefined) return
  const node = (await current()) ?? {}
  const settings = { ...node, ...Object.fromEntries(Object.entries(input).filter(([, value]) => value != null)) }
  const issue = addressIssue(settings)
  if (issue !== undefined && issue !== addressIssue(node)) throw badRequest(issue)
}
