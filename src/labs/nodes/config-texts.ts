import { sha256, toHex } from '../../lib/crypto/secret.ts'
import type { KindDescriptor } from '../../model/kinds/kind.ts'
import { kindOf } from '../../model/kinds/node.ts'
import { isKnownKind } from '../../model/lab/node.ts'
import type { ComputeAgents } from '../computes/agents.ts'
import type { NodeRecord } from '../lab/document.ts'
import type { Lab } from '../lab/lab.ts'
import { nodeRefOf } from '../lab/node-on-compute.ts'

/** Texts of the configurations of a node, by name. */
export async function configTexts(
  lab: Lab,
  record: NodeRecord,
  agentFor: ComputeAgents,
): Promise<Record<string, string>> {
  const { configs = {} }: Pick<KindDescriptor, 'configs'> = isKnownKind(record.node_type)
    ? kindOf(record.node_type)
    : {}
  const { nodes } = agentFor(record.compute_id)
  const ref = nodeRefOf(lab, record)
  const known = lab.reported.get(record.node_id)
  // The guest of a running node may have saved a configuration since.
  const isCurrent = known?.status === 'stopped'
  const read = new Map<string | undefined, Promise<unknown>>()
  const texts: Record<string, string> = {}
  for (const [name, { field, action }] of Object.entries(configs)) {
    const shown =
      read.get(action) ??
      (action === undefined ? (isCurrent ? Promise.resolve(known) : nodes.get(ref)) : nodes.action(ref, action, {}))
    read.set(action, shown)
    const value = ((await shown) as Readonly<Record<string, unknown>>)[field]
    texts[name] = typeof value === 'string' ? value : ''
  }
  return texts
}

/** SHA-256 of these texts. */
export async function configDigests(
  lab: Lab,
  record: NodeRecord,
  agentFor: ComputeAgents,
): Promise<Record<string, string>> {
  const texts = Object.entries(await configTexts(lab, record, agentFor))
  return Object.fromEntries(await Promise.all(texts.map(async ([name, text]) => [name, toHex(await sha256(text))])))
}
