import { ignore } from '../../lib/async/ignore.ts'
import { ApiError, conflict } from '../../lib/errors/api-error.ts'
import { Revert } from '../../lib/revert.ts'
import type { KindDescriptor } from '../../model/kinds/kind.ts'
import { kindOf } from '../../model/kinds/node.ts'
import { isKnownKind } from '../../model/lab/node.ts'
import { type ComputeAgents, createOnCompute, withImages } from '../computes/agents.ts'
import { Changes, type LinkRecord, type NodeRecord } from '../lab/document.ts'
import { withoutNulls } from '../lab/fields.ts'
import type { UndoGroup } from '../lab/history.ts'
import { keptWith, splitKept } from '../lab/kept.ts'
import type { Lab } from '../lab/lab.ts'
import { createOrCleanUp, nodeOrphan } from '../lab/leftovers.ts'
import { nodeRefOf, reportedFields } from '../lab/node-on-compute.ts'
import { placeholderReason } from '../lab/placeholder-view.ts'
import { saveOrRevert } from '../lab/save-or-revert.ts'
import { resumeCapture } from '../links/captures.ts'
import { type Ends, findEnd } from '../links/link-ends.ts'
import { wiringOf, withLinkLock } from '../links/links.ts'
import { unwireAll, wire } from '../links/wiring.ts'
import type { Labs } from '../service.ts'

/**
 * Placeholders are nodes of a lab that no compute has. Their kind is unknown to this service, or their compute could not make them
 * (an image is missing, say). The lab keeps all their fields and links.
 */

/**
 * Creates a node on its compute. The result is a placeholder when the compute refuses; other errors reject. `isStored`: the node was a node
 * of a lab before, and keeps MAC addresses that are not given to new nodes.
 */
export async function makeNode(
  lab: Lab,
  record: NodeRecord,
  agentFor: ComputeAgents,
  { isStored } = { isStored: true },
): Promise<NodeRecord> {
  try {
    return await withImages(agentFor(record.compute_id), () => createOn(lab, record, agentFor, isStored))
  } catch (error) {
    if (isRefusal(error)) return { ...record, creationError: error.message.slice(0, 1000) }
    throw error
  }
}

const isRefusal = (error: unknown): error is ApiError =>
  error instanceof ApiError && [400, 403, 404, 409].includes(error.status)

/** Creates a node on its compute, unless its kind is unknown. 409 when the compute lacks an image, see `withImages`. */
async function createOn(lab: Lab, record: NodeRecord, agentFor: ComputeAgents, isStored = false): Promise<NodeRecord> {
  const { node_type, node_id, name, properties, console, console_type, compute_id } = record
  if (!isKnownKind(node_type)) return record
  const { addressIssue, create: schema }: KindDescriptor = kindOf(node_type)
  const known = schema.properties
  // A compute chooses another console port when that one is in use.
  const settings = Object.entries({ ...properties, console: console ?? undefined, console_type }).filter(
    ([key]) => key in known,
  )
  const input = { name, node_id, ...withoutNulls(Object.fromEntries(settings)) }
  // A compute of an earlier version has no such option, and needs none.
  const addresses = isStored && addressIssue?.(input) !== undefined ? 'stored' : undefined
  const create = () => createOnCompute(agentFor(compute_id), lab.id, node_type, input, addresses)
  const shown = await createOrCleanUp(lab, create, nodeOrphan(lab, record, agentFor))
  const { creationError: _, ...made } = record
  const { kept } = splitKept(node_type, 'create', { properties, kept: record.kept ?? {} })
  return { ...made, ...reportedFields(shown), ...keptWith(undefined, kept) }
}

/**
 * Attaches the links that have no wiring and whose nodes are both on computes, and continues their captures. The result: the attached links.
 * A failure of a compute leaves none attached.
 */
export async function joinLinks(
  labs: Pick<Labs, 'computes'>,
  lab: Lab,
  links: readonly LinkRecord[],
  agentFor: ComputeAgents,
): Promise<LinkRecord[]> {
  const isMade = (id: string) => {
    const node = lab.document.nodes.get(id)
    return node !== undefined && isKnownKind(node.node_type) && node.creationError === undefined
  }
  const joined: LinkRecord[] = []
  await using revert = new Revert(ignore('the client gets the first error'))
  revert.add(() => unwireAll(lab, joined, agentFor))
  for (const link of links) {
    if (link.wiring.type !== 'none' || !link.nodes.every(({ node_id }) => isMade(node_id))) continue
    try {
      const ends = link.nodes.map((end) => findEnd(lab, end)) as unknown as Ends
      const record: LinkRecord = { ...link, wiring: wiringOf(ends) }
      await wire(labs, lab, ends, record, agentFor)
      joined.push({ ...record, capture: await resumeCapture(lab, record, agentFor) })
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) continue
      throw error
    }
  }
  revert.commit()
  return joined
}

/** The same for links of the document, while no other request changes them; saves what was attached. */
export function joinAgain(
  labs: Pick<Labs, 'computes'>,
  lab: Lab,
  ids: readonly string[],
  agentFor: ComputeAgents,
  undoGroup?: UndoGroup,
): Promise<void> {
  return withLinkLock(lab, ids, async () => {
    const links = ids.flatMap((id) => lab.document.links.get(id) ?? [])
    const joined = await joinLinks(labs, lab, links, agentFor)
    if (joined.length === 0) return
    const write = () =>
      lab.edit(
        () => ({
          changes: joined.reduce((changes, link) => changes.put('link', link.link_id, link), new Changes()),
          news: () => joined.map((link) => ({ action: 'link.updated', event: lab.linkView(link) })),
          result: undefined,
        }),
        undoGroup,
      )
    await saveOrRevert(lab, write, () => unwireAll(lab, joined, agentFor))
  })
}

/** Tries a placeholder again: creates the node on its compute, and attaches its links. 409 with the reason. */
export async function retryPlaceholder(
  labs: Pick<Labs, 'computes'>,
  lab: Lab,
  record: NodeRecord,
  agentFor: ComputeAgents,
  undoGroup?: UndoGroup,
): Promise<void> {
  if (!isKnownKind(record.node_type)) throw conflict(`node_type: ${placeholderReason(record)}`)
  if (record.creationError === undefined) return
  const refused = (error: unknown) => {
    if (!isRefusal(error)) return error
    const { code, message, extra } = error
    const { image } = extra
    return conflict(`${record.name}: ${message}`, { ...(image !== undefined && { code, image }) })
  }
  const lacksImage = (error: unknown) => error instanceof ApiError && error.code === 'image-missing'
  const make = () =>
    lab.change(async () => {
      // 404 when it was deleted meanwhile. Another request may have made it.
      const wanted = lab.node(record.node_id)
      if (wanted.creationError === undefined) return
      const made = await createOn(lab, wanted, agentFor).catch((error: unknown) => {
        throw lacksImage(error) ? error : refused(error)
      })
      const write = () =>
        lab.edit(
          () => ({
            changes: new Changes().put('node', record.node_id, made),
            news: () => [{ action: 'node.updated', event: lab.nodeView(made) }],
            result: undefined,
          }),
          undoGroup,
        )
      await saveOrRevert(lab, write, () =>
        agentFor(made.compute_id).nodes.remove(nodeRefOf(lab, made), { files: 'later' }),
      )
      lab.unknownReasons.delete(record.node_id)
      const ids = lab.document.linksOf(record.node_id).map(({ link_id }) => link_id)
      await joinAgain(labs, lab, ids, agentFor, undoGroup)
    })
  await withImages(agentFor(record.compute_id), make).catch((error: unknown) => {
    throw lacksImage(error) ? refused(error) : error
  })
}
