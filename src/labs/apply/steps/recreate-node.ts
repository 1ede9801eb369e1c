import { ignore } from '../../../lib/async/ignore.ts'
import { mapLimit } from '../../../lib/async/map-limit.ts'
import { isKnownKind } from '../../../model/lab/node.ts'
import type { NodeRecord } from '../../lab/document.ts'
import { nodeRefOf } from '../../lab/node-on-compute.ts'
import { saveOrRevert } from '../../lab/save-or-revert.ts'
import { withLinkLock } from '../../links/links.ts'
import { unwire, wireAgain } from '../../links/wiring.ts'
import { retryPlaceholder } from '../../nodes/placeholders.ts'
import { completeSettings } from '../../plan/node-defaults.ts'
import { wantedCompute } from '../../plan/types.ts'
import type { ApplyContext } from '../context.ts'
import { markAfter } from './marks.ts'
import { configInputs, giveConsole, insertMedium } from './node-parts.ts'
import type { Task } from './task.ts'

/**
 * Recreates a node under its id: its directory is lost. After a crash in between it is a placeholder, which the next apply
 * makes.
 */
export async function recreateNode(
  context: ApplyContext,
  { want, node_id: id, change: { settings, properties, configs } }: Task<'recreate-node'>,
): Promise<void> {
  const { labs, lab, agentFor, prepared, undoGroup } = context
  const before = lab.node(id)
  await context.stop(id)
  const to = wantedCompute(want, prepared.options) ?? before.compute_id
  await labs.lifecycle.attachCompute(lab, to, agentFor)
  const record: NodeRecord = {
    ...before,
    name: want.name,
    node_type: want.kind,
    compute_id: to,
    console: null,
    ...completeSettings(want.kind, settings),
    properties: { ...properties, ...configInputs(want, configs) },
    creationError: 'it is being recreated',
  }
  await replaceUnlinked(context, record)
  if (isKnownKind(before.node_type) && before.creationError === undefined)
    await agentFor(before.compute_id)
      .nodes.remove(nodeRefOf(lab, before))
      .catch(ignore('the creation reports what is left of it'))
  lab.reported.delete(id)
  await retryPlaceholder(labs, lab, record, agentFor, undoGroup)
  const made = lab.node(id)
  lab.keepReported(await agentFor(made.compute_id).nodes.get(nodeRefOf(lab, made)))
  const lastApplied = await markAfter(context, want, made, true, configs)
  await context.write([{ node: id, set: { lastApplied } }])
  await giveConsole(context, id, settings)
  if (want.day0 !== undefined) await insertMedium(context, id, want.day0)
}

/** Saves the new record of a node, with its links taken off the compute. */
async function replaceUnlinked(context: ApplyContext, record: NodeRecord): Promise<void> {
  const { labs, lab, agentFor } = context
  const { node_id } = record
  const ids = lab.document.linksOf(node_id).map(({ link_id }) => link_id)
  await withLinkLock(lab, ids, async () => {
    const links = ids.flatMap((id) => lab.document.links.get(id) ?? [])
    for (const link of links) await unwire(lab, link, agentFor)
    const unwired = links.map(({ link_id }) => ({ link: link_id, set: { wiring: { type: 'none' as const } } }))
    const write = () => context.write([{ node: node_id, set: record }, ...unwired])
    await saveOrRevert(lab, write, () => mapLimit(links, (link) => wireAgain(labs, lab, link, agentFor)))
  })
}
