import type { DesiredNode } from '../../../labfile/desired.ts'
import { mapLimit } from '../../../lib/async/map-limit.ts'
import { ApiError, ignoreNotFound } from '../../../lib/errors/api-error.ts'
import { kindOf } from '../../../model/kinds/node.ts'
import type { LabNodeCreate } from '../../../model/lab/node.ts'
import type { NodeRecord } from '../../lab/document.ts'
import { withoutNulls } from '../../lab/fields.ts'
import { configTexts } from '../../nodes/config-texts.ts'
import { createNode } from '../../nodes/create-node.ts'
import { createPlaceholder } from '../../nodes/create-placeholder.ts'
import { day0Media, day0MediumIn } from '../../nodes/day0.ts'
import { removeNode } from '../../nodes/nodes.ts'
import { retryPlaceholder } from '../../nodes/placeholders.ts'
import { updateNode } from '../../nodes/update-node.ts'
import { type PlannedChange, wantedCompute } from '../../plan/types.ts'
import type { ApplyContext } from '../context.ts'
import { markAfter } from './marks.ts'
import { configInputs, giveConsole, insertMedium } from './node-parts.ts'
import type { Task } from './task.ts'

export async function createPlannedNode(
  context: ApplyContext,
  { want, node_id, change: { settings, properties, configs }, creationError }: Task<'create-node'>,
): Promise<void> {
  const { labs, lab, agentFor, undoGroup, prepared } = context
  const compute_id = wantedCompute(want, prepared.options)
  const input: LabNodeCreate = {
    name: want.name,
    node_type: want.kind,
    ...withoutNulls({ node_id, compute_id }),
    ...settings,
    properties: { ...properties, ...configInputs(want, configs) },
  }
  const more = async (record: NodeRecord) => ({ lastApplied: await markAfter(context, want, record, true, configs) })
  if (creationError !== undefined) {
    const { node_id: id } = await createPlaceholder(labs, lab, input, creationError, { agentFor, undoGroup, more })
    if (want.day0 !== undefined) await insertMedium(context, id, want.day0)
    return
  }
  const create = () => createNode(labs, lab, input, { agentFor, unique: 'refuse', undoGroup, more })
  const made = await create().catch(async (error: unknown) => {
    if (!(await removeOrphan(context, error, want, node_id))) throw error
    return create()
  })
  await giveConsole(context, made.node_id, settings)
  if (want.day0 !== undefined) await insertMedium(context, made.node_id, want.day0)
}

/**
 * Removes a node that an earlier apply made but did not record, as the service was killed in between. Resolves to whether there
 * was one.
 */
async function removeOrphan(
  { lab: { document, id }, agentFor }: ApplyContext,
  error: unknown,
  { kind }: DesiredNode,
  node_id: string | undefined,
): Promise<boolean> {
  if (!(error instanceof ApiError) || error.code !== 'node-exists' || node_id === undefined) return false
  if (document.nodes.has(node_id)) return false
  const node = { project_id: id, kind, node_id }
  await mapLimit(document.project.computes, (compute) => agentFor(compute).nodes.remove(node).catch(ignoreNotFound))
  return true
}

export async function changePlannedNode(
  context: ApplyContext,
  { want, node_id, change, held, stops }: Task<'change-node'>,
): Promise<void> {
  if (stops) await context.stop(node_id)
  await changeNode(context, want, node_id, change, held)
}

/** Makes a node that its compute could not make. */
export async function retryNode(context: ApplyContext, { want, node_id, change }: Task<'retry-node'>): Promise<void> {
  const { labs, lab, agentFor, undoGroup } = context
  await changeNode(context, want, node_id, change)
  await retryPlaceholder(labs, lab, lab.node(node_id), agentFor, undoGroup)
  await giveConsole(context, node_id, change.settings)
}

export async function deleteNode(context: ApplyContext, { node_id }: Task<'delete-node'>): Promise<void> {
  const { labs, lab, agentFor, undoGroup } = context
  if (context.isRunning(node_id)) context.stopped.add(node_id)
  await removeNode(labs, lab, node_id, agentFor, undoGroup)
}

async function changeNode(
  context: ApplyContext,
  want: DesiredNode,
  id: string,
  change: PlannedChange,
  held: readonly string[] = [],
): Promise<void> {
  const { labs, lab, agentFor, undoGroup } = context
  const { name, settings, properties, configs } = change
  await restoreConfigsOnFailure(context, want, lab.node(id), change)
  const { console, console_type, custom_adapters, ...map } = settings
  const more = async (now: NodeRecord): Promise<Partial<NodeRecord>> => ({
    ...map,
    lastApplied: await markAfter(context, want, { ...now, ...map }, false, configs, held),
  })
  const input = {
    ...withoutNulls({ name, console, console_type, custom_adapters }),
    properties: { ...properties, ...configInputs(want, configs) },
  }
  await updateNode(labs, lab, id, input, agentFor, { undoGroup, more })
  if (want.day0 !== undefined && day0MediumIn(properties) === day0Media[want.day0.medium])
    await insertMedium(context, id, want.day0)
}

/** Reads the configurations that a change replaces: a failure of the apply writes them again. */
async function restoreConfigsOnFailure(
  { labs, lab, agentFor, revert }: ApplyContext,
  want: DesiredNode,
  record: NodeRecord,
  { properties, configs }: PlannedChange,
): Promise<void> {
  const inputs = configInputs(want, configs)
  const replaced = Object.entries(kindOf(want.kind).configs ?? {}).filter(
    ([, { field }]) => field in inputs || field in properties,
  )
  if (replaced.length === 0 || record.creationError !== undefined) return
  const before = await configTexts(lab, record, agentFor)
  for (const [name, { field, keepsEmpty }] of replaced) {
    const text = before[name] ?? ''
    if (text === '' && keepsEmpty !== true) continue
    const input = { properties: { [field]: text } }
    revert.add(() => updateNode(labs, lab, record.node_id, input, agentFor, { undoGroup: { by: 'rollback' } }))
  }
}
