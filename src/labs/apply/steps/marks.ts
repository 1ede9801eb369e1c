import type { DesiredNode } from '../../../labfile/desired.ts'
import type { KindDescriptor } from '../../../model/kinds/kind.ts'
import { kindOf } from '../../../model/kinds/node.ts'
import type { NodeLastApplied, NodeRecord } from '../../lab/document.ts'
import type { Lab } from '../../lab/lab.ts'
import { configDigests } from '../../nodes/config-texts.ts'
import { same } from '../../plan/json-equal.ts'
import { markOf } from '../../plan/marks.ts'
import type { ApplyContext } from '../context.ts'
import type { PreparedPlan } from '../prepare.ts'

/** The marks that a plan leaves on nodes without a step, where they differ from the present ones. */
export function newMarks(
  lab: Lab,
  { plan, actual, options }: PreparedPlan,
): { record: NodeRecord; lastApplied: NodeLastApplied }[] {
  return [...plan.marks].flatMap(([node_id, want]) => {
    const record = lab.document.nodes.get(node_id)
    if (record === undefined) return []
    const managed = record.lastApplied?.managed === true || options.take_over === true
    const lastApplied = markOf(
      want,
      record,
      { managed, configs: basesOf(want, record, actual.configs.get(node_id) ?? {}) },
      false,
    )
    return same(lastApplied, record.lastApplied) ? [] : [{ record, lastApplied }]
  })
}

/**
 * The new bases of configurations. A configuration that equals the file has the file as its base; another one keeps its base.
 * One that has left the file keeps its base while its removal from the node is withheld (`held`).
 */
function basesOf(
  want: DesiredNode,
  record: NodeRecord,
  now: Readonly<Record<string, string>>,
  held: readonly string[] = [],
): NodeLastApplied['configs'] {
  const { configs: access = {} }: Pick<KindDescriptor, 'configs'> = kindOf(want.kind)
  const keptBases = Object.entries(record.lastApplied?.configs ?? {}).filter(
    ([name]) => !(name in want.configs) && held.includes(access[name]?.field ?? ''),
  )
  const bases = Object.entries(want.configs).flatMap(([name, { digest }]) => {
    if (now[name] === digest) return [[name, { file: digest, node: digest }] as const]
    const base = record.lastApplied?.configs[name]
    return base === undefined ? [] : [[name, base] as const]
  })
  return Object.fromEntries([...keptBases, ...bases])
}

/** What the record of a node says of the file once its settings are applied. `taken`: the configurations applied now. */
export async function markAfter(
  { lab, agentFor, prepared: { options, actual } }: ApplyContext,
  want: DesiredNode,
  record: NodeRecord,
  isNew: boolean,
  taken: readonly string[],
  held: readonly string[] = [],
): Promise<NodeLastApplied> {
  const managed = isNew || record.lastApplied?.managed === true || options.take_over === true
  const configs = { ...basesOf(want, record, isNew ? {} : (actual.configs.get(record.node_id) ?? {}), held) }
  if (taken.length > 0) {
    // A placeholder is not on its compute: it gets the configurations of the file when it is created there.
    const now = record.creationError === undefined ? await configDigests(lab, record, agentFor) : {}
    for (const name of taken) {
      const file = want.configs[name]?.digest
      if (file !== undefined) configs[name] = { file, node: now[name] ?? file }
    }
  }
  return markOf(want, record, { managed, configs }, isNew, held)
}
