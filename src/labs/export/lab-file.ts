import { documentOf } from '../../labfile/document.ts'
import { desiredOfProject, fileNamesOf } from '../../labfile/from-project.ts'
import { mapLimit } from '../../lib/async/map-limit.ts'
import type { KindDescriptor } from '../../model/kinds/kind.ts'
import { kindOf } from '../../model/kinds/node.ts'
import { isKnownKind } from '../../model/lab/node.ts'
import type { ComputeAgents } from '../computes/agents.ts'
import type { NodeRecord } from '../lab/document.ts'
import type { Lab } from '../lab/lab.ts'
import { configTexts } from '../nodes/config-texts.ts'
import { day0MediumIn } from '../nodes/day0.ts'
import { captureName } from '../plan/diff-link.ts'
import { withoutChecks } from '../tasks/tasks.ts'
import { withTasks } from './exported-tasks.ts'

/** Nodes whose configurations are read concurrently. */
const maxAtOnce = 6

/**
 * A lab file that makes an equal lab; `schemaUrl` is for editors. `withChecks`: also the checks of its tasks. Comments before it say what a lab file cannot have, and which
 * configurations were not read.
 */
export async function labFileOf(
  lab: Lab,
  { schemaUrl, withChecks }: { readonly schemaUrl: string; readonly withChecks: boolean },
  agentFor: ComputeAgents,
): Promise<string> {
  const records = [...lab.document.nodes.values()]
  const configs = new Map<string, Readonly<Record<string, string>>>()
  const unread: string[] = []
  await mapLimit(
    records,
    async (record) => {
      if (!hasConfigs(record)) return
      const texts =
        lab.isOpen && record.creationError === undefined
          ? await configTexts(lab, record, agentFor).catch(() => undefined)
          : undefined
      configs.set(record.node_id, texts ?? textsOf(record))
      if (texts === undefined && Object.keys(textsOf(record)).length === 0)
        unread.push(`The configuration of the node ${record.name}, which cannot be read now.`)
    },
    maxAtOnce,
  )
  const { desired, leftOut } = await desiredOfProject({
    name: lab.document.project.name,
    nodes: records.map((record) => lab.nodeView(record)),
    links: [...lab.document.links.values()].map((record) => lab.linkView(record)),
    configs,
    captured: new Map(
      [...lab.document.links.values()].flatMap(({ link_id, capture }) =>
        capture?.managed ? [[link_id, captureName(capture)] as const] : [],
      ),
    ),
  })
  for (const { name, lastApplied, properties } of records)
    if (lastApplied?.day0 !== undefined && day0MediumIn(properties) !== undefined)
      unread.push(`The files of the CD or disk of the node ${name} (day0): a new lab from this file has none.`)
  const { tasks } = lab.document
  const names = fileNamesOf(records)
  const shown = tasks && (withChecks ? tasks : withoutChecks(tasks))
  const whole = shown
    ? withTasks(desired, shown, new Map(records.map(({ node_id, name }) => [name, names.get(node_id) ?? name])))
    : { desired, leftOut: [] }
  const missing = [...leftOut, ...unread, ...whole.leftOut]
  const comments = missing.length === 0 ? [] : ['Not in this file:', ...missing.map((line) => `* ${line}`)]
  // It needs the library for YAML, which a service loads with its first export only.
  const { labFileText } = await import('../../labfile/text.ts')
  return labFileText(documentOf(whole.desired), [`yaml-language-server: $schema=${schemaUrl}`, ...comments])
}

const configsOf = ({ node_type }: NodeRecord): KindDescriptor['configs'] =>
  isKnownKind(node_type) ? (kindOf(node_type) as KindDescriptor).configs : undefined

const hasConfigs = (record: NodeRecord): boolean => configsOf(record) !== undefined

/** The configurations that the record itself has. */
function textsOf(record: NodeRecord): Record<string, string> {
  return Object.fromEntries(
    Object.entries(configsOf(record) ?? {}).flatMap(([name, { field }]) => {
      const text = record.properties[field]
      return typeof text === 'string' ? [[name, text]] : []
    }),
  )
}
