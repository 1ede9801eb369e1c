import { mapLimit } from '../../../lib/async/map-limit.ts'
import { nameKey } from '../../../model/lab/names.ts'
import type { LinkRecord } from '../../lab/document.ts'
import { withoutNulls } from '../../lab/fields.ts'
import { continueCapture, startCapture, stopCapture } from '../../links/captures.ts'
import { createLinks, type MadeLink, removeLink, updateLink } from '../../links/links.ts'
import type { WantedLink } from '../../plan/types.ts'
import type { ApplyContext } from '../context.ts'
import type { Task } from './task.ts'

/** Makes links together, and starts their captures. */
export async function makeLinks(context: ApplyContext, wanted: readonly WantedLink[]): Promise<MadeLink[]> {
  const { labs, lab, agentFor, undoGroup } = context
  const ids = new Map([...lab.document.nodes.values()].map(({ name, node_id }) => [nameKey(name), node_id]))
  const inputs = wanted.map(({ link_id, ends, name, filters, filters_ab, filters_ba, suspend }) => {
    const at = ({ node, adapter_number, port_number }: (typeof ends)[number]) => ({
      node_id: ids.get(nameKey(node)) ?? node,
      adapter_number,
      port_number,
    })
    const nodes = [at(ends[0]), at(ends[1])] as [LinkRecord['nodes'][number], LinkRecord['nodes'][number]]
    return { ...withoutNulls({ link_id, name }), nodes, filters, filters_ab, filters_ba, suspend }
  })
  const made = await createLinks(labs, lab, inputs, agentFor, { undoGroup, more: { lastApplied: { managed: true } } })
  return mapLimit(made, async (link, index) => {
    const capture = wanted[index]?.capture
    if ('error' in link || capture === undefined) return link
    const started = startLinkCapture(context, link.link_id, capture)
    return started.then(
      () => link,
      (error: unknown) => ({ error }),
    )
  })
}

export async function changeLink(
  context: ApplyContext,
  { link_id, link: { name, filters, filters_ab, filters_ba, suspend, capture }, isTurned, parts }: Task<'change-link'>,
): Promise<void> {
  const { lab, agentFor, prepared, undoGroup } = context
  const [ab, ba] = isTurned ? [filters_ba, filters_ab] : [filters_ab, filters_ba]
  const isManaged = lab.link(link_id).lastApplied?.managed === true || prepared.options.take_over === true
  const changes = {
    ...(parts.includes('impairment') && { filters, filters_ab: ab, filters_ba: ba }),
    ...((parts.includes('down') || parts.includes('up')) && { suspend }),
  }
  const more = {
    ...(parts.includes('name') && { name }),
    ...(isManaged && { lastApplied: { managed: true as const } }),
  }
  await updateLink(lab, link_id, changes, agentFor, { undoGroup, more })
  if (parts.includes('capture') && capture !== undefined) {
    await startLinkCapture(context, link_id, capture)
    context.revert.add(() => stopCapture(lab, link_id, agentFor))
  }
}

export const deleteLink = (
  { labs, lab, agentFor, undoGroup }: ApplyContext,
  { link_id }: Task<'delete-link'>,
): Promise<unknown> => removeLink(labs, lab, link_id, agentFor, undoGroup)

export async function endLinkCapture(context: ApplyContext, { link_id, next }: Task<'end-capture'>): Promise<void> {
  const { lab, agentFor, revert } = context
  const { capture } = lab.link(link_id)
  await stopCapture(lab, link_id, agentFor)
  revert.add(() => continueCapture(lab, link_id, capture, agentFor))
  if (next !== undefined) await startLinkCapture(context, link_id, next)
}

async function startLinkCapture(
  { lab, agentFor }: ApplyContext,
  id: string,
  { file }: NonNullable<WantedLink['capture']>,
): Promise<void> {
  await startCapture(lab, id, { ...withoutNulls({ capture_file_name: file }), managed: true }, agentFor)
}
