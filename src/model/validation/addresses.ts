import { badRequest } from '../../lib/errors/api-error.ts'
import type { KindDescriptor } from '../kinds/kind.ts'

/** 400 for MAC addresses that no adapter can have, or that occur twice in a node, unless the node has them already. */
export function requireAddresses(
  { addressIssue }: Pick<KindDescriptor, 'addressIssue'>,
  input: Readonly<Record<string, unknown>>,
  node: Readonly<Record<string, unknown>> = {},
): void {
  const settings = { ...node, ...Object.fromEntries(Object.entries(input).filter(([, value]) => value != null)) }
  const issue = addressIssue?.(settings)
  if (issue !== undefined && issue !== addressIssue?.(node)) throw badRequest(issue)
}
