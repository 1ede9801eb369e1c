import type { KindDescriptor } from '../../model/kinds/kind.ts'
import { kindOf } from '../../model/kinds/node.ts'
import type { PresentMatch } from './match-nodes.ts'
import { type NodeDifference, propertyDifference } from './node-difference.ts'
import type { Actual, PlanExtra, PlanOptions, PlanPart } from './types.ts'

/** SHA-256 of an empty text. */
const emptyDigest = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

/** What becomes of the configurations of a node: those that change, conflicts, and those that changed on the node alone. */
interface MergedConfigs extends Pick<PlanPart, 'withheld' | 'extra'> {
  readonly differences: readonly NodeDifference[]
}

/** Merges the configurations of the file, those that it had when it was applied last, and those of the node. */
export function mergeConfigs(
  { want, have, isManaged }: PresentMatch,
  actual: Pick<Actual, 'configs' | 'running'>,
  { config_from_file }: PlanOptions,
): MergedConfigs {
  const now = actual.configs.get(have.node_id) ?? {}
  const needsStop = actual.running.has(have.node_id)
  const differences: NodeDifference[] = []
  const extra: PlanExtra[] = []
  const withheld: PlanPart['withheld'][number][] = []
  const { configs = {} }: KindDescriptor = kindOf(want.kind)
  for (const [name, { field, keepsEmpty }] of Object.entries(configs)) {
    const config = want.configs[name]
    const [base, digest] = [have.lastApplied?.configs[name], now[name]]
    if (config !== undefined && digest === config.digest) continue
    const word = name === 'startup' ? 'config' : `${name} config`
    const isNodeChanged = digest !== undefined && digest !== base?.node
    if (config === undefined) {
      // The configuration has left the file: it is removed from the node, if the kind can do without.
      if (isManaged && base !== undefined && !isNodeChanged && keepsEmpty === true && digest !== emptyDigest)
        differences.push({ ...propertyDifference(field, '', undefined, needsStop), text: word })
    } else if (base?.file === config.digest) {
      const because = `its ${word} was changed on the node; patchbay save writes the change into the file`
      if (isNodeChanged) extra.push({ what: 'config', name: want.name, because })
    } else if (isNodeChanged && digest !== emptyDigest && config_from_file !== true) {
      const because = `its ${word} differs in the file and on the node`
      const how = needsStop ? 'restart' : 'live'
      withheld.push({ do: 'update', what: 'node', name: want.name, how, because, flag: 'config_from_file' })
    } else differences.push({ needsStop, text: word, change: { configs: [name] } })
  }
  return { differences, extra, withheld }
}
