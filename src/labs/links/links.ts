import { quoteText } from '../../compute/remote/answer.ts'
import { KeyedMutex } from '../../lib/async/keyed-mutex.ts'
import { mapLimit } from '../../lib/async/map-limit.ts'
import { ApiError, badRequest, conflict } from '../../lib/errors/api-error.ts'
import type { DirectLinkJoined } from '../../model/direct-link.ts'
import type { LabLink, LabLinkCreate, LabLinkEnd, LabLinkUpdate } from '../../model/lab/link.ts'
import { nameKey } from '../../model/lab/names.ts'
import { isKnownKind } from '../../model/lab/node.ts'
import type { Filters } from '../../model/schema/filters.ts'
import type { ComputeAgents } from '../computes/agents.ts'
import type { Conventions } from '../lab/conventions.ts'
import { Changes, type LinkRecord, type LinkWiring } from '../lab/document.ts'
import { withoutNulls } from '../lab/fields.ts'
import type { UndoGroup } from '../lab/history.ts'
import type { Lab } from '../lab/lab.ts'
import { all, createOrCleanUp, linkOrphan } from '../lab/leftovers.ts'
import { nodeRefOf, portRefOf } from '../lab/node-on-compute.ts'
import { saveOrRevert } from '../lab/save-or-revert.ts'
import type { Labs } from '../service.ts'
import { type Ends, findEnd } from './link-ends.ts'
import { directOf, impair, unwire, unwireAll, wire, wireAgain } from './wiring.ts'

interface LinkOptions {
  readonly undoGroup?: UndoGroup
  /** Members of the record that no client gives. */
  readonly more?: Pick<LinkRecord, 'lastApplied'>
  readonly conventions?: Conventions | undefined
}

/** A link that is being made: its ports and its name are claimed until `release` is called. */
interface NewLink {
  readonly ends: Ends
  readonly record: LinkRecord
  readonly release: () => void
}

/**
 * Links two ports. 400 for one port twice and for different link types, 404 for an unknown node or port, 409 for a linked port. A failure
 * leaves nothing.
 */
export async function createLink(
  labs: Labs,
  lab: Lab,
  input: LabLinkCreate,
  agentFor: ComputeAgents,
  options: LinkOptions = {},
): Promise<LabLink> {
  const link = begin(lab, input, options)
  try {
    await lab.change(async () => {
      await wire(labs, lab, link.ends, link.record, agentFor)
      await saveLinks(lab, [link.record], agentFor, options)
    })
    return lab.linkView(link.record)
  } finally {
    link.release()
  }
}

/** A link that was made, or why it was not. */
export type MadeLink = { readonly link_id: string } | { readonly error: unknown }

/**
 * As `createLink`, for many links: one request wires all links of a compute, and all are written at once. The result has one item for each
 * input. When the write fails no link is made.
 */
export async function createLinks(
  labs: Labs,
  lab: Lab,
  inputs: readonly LabLinkCreate[],
  agentFor: ComputeAgents,
  options: LinkOptions = {},
): Promise<MadeLink[]> {
  const begun: NewLink[] = []
  try {
    const links = inputs.map((input) => {
      try {
        const link = begin(lab, input, options)
        begun.push(link)
        return link
      } catch (error) {
        return { error }
      }
    })
    const failures = await lab.change(async () => {
      const failures = await wireAll(labs, lab, begun, agentFor)
      const records = begun.filter((link) => !failures.has(link)).map(({ record }) => record)
      await saveLinks(lab, records, agentFor, options)
      return failures
    })
    return links.map((link) => {
      if ('error' in link) return link
      const error = failures.get(link)
      return error === undefined ? { link_id: link.record.link_id } : { error }
    })
  } finally {
    for (const { release } of begun) release()
  }
}

function begin(lab: Lab, input: LabLinkCreate, { more = {}, conventions }: LinkOptions): NewLink {
  const ends = input.nodes.map((end) => findEnd(lab, end)) as unknown as Ends
  requireFitting(ends)
  if (conventions?.linksNodeToItself === false && ends[0].end.node_id === ends[1].end.node_id)
    throw badRequest(`nodes: ${ends[0].node.name} cannot be linked to itself`, unfit)
  lab.requireRoom(1)
  const link_id = input.link_id?.toLowerCase() ?? crypto.randomUUID()
  if (lab.document.links.has(link_id)) throw conflict(`link_id: a link ${link_id} already exists`)
  const { name = null } = input
  const release = claim(lab, ends, { link_id, name })
  const record: LinkRecord = {
    link_id,
    link_type: ends[0].port.link_type,
    nodes: ends.map(({ end }) => end),
    name,
    filters: input.filters ?? {},
    filters_ab: input.filters_ab ?? {},
    filters_ba: input.filters_ba ?? {},
    suspend: input.suspend ?? false,
    link_style: input.link_style ?? {},
    ...withoutNulls({ kept: input.kept }),
    wiring: wiringOf(ends),
    capture: null,
    ...more,
  }
  return { ends, record, release }
}

/** Writes new links that are wired; when the write fails they are unwired again. 404 when a node was deleted meanwhile. */
async function saveLinks(
  lab: Lab,
  records: readonly LinkRecord[],
  agentFor: ComputeAgents,
  { undoGroup }: LinkOptions,
): Promise<void> {
  if (records.length === 0) return
  const write = () =>
    lab.edit(() => {
      for (const { nodes } of records) for (const { node_id } of nodes) lab.node(node_id)
      // A snapshot that was restored meanwhile may have brought back links.
      requireUnlinked(lab, records)
      return {
        changes: records.reduce((all, record) => all.put('link', record.link_id, record), new Changes()),
        news: () => records.map((link) => ({ action: 'link.created', event: lab.linkView(link) })),
        result: undefined,
      }
    }, undoGroup)
  await saveOrRevert(lab, write, () => unwireAll(lab, records, agentFor))
  // A compute has reported the state of a link of its own already.
  if (records.some(({ wiring }) => wiring.type === 'udp')) lab.linksReadAt = 0
}

/** Wires links, those of one compute by one request. The result: why links could not be wired. */
async function wireAll(
  labs: Pick<Labs, 'computes'>,
  lab: Lab,
  links: readonly NewLink[],
  agentFor: ComputeAgents,
): Promise<Map<NewLink, Error>> {
  const failures = new Map<NewLink, Error>()
  const direct = new Map<string, NewLink[]>()
  const others: NewLink[] = []
  for (const link of links) {
    const { wiring } = link.record
    if (wiring.type !== 'direct') others.push(link)
    else direct.set(wiring.compute_id, [...(direct.get(wiring.compute_id) ?? []), link])
  }
  const noteAll = (list: readonly NewLink[]) => (error: unknown) => {
    for (const link of list) failures.set(link, error as Error)
  }
  for (const [compute_id, list] of direct) {
    const inputs = list.map(({ record }) => directOf(lab, record))
    const orphans = list.map(({ record }) => linkOrphan(lab, compute_id, record.link_id, agentFor))
    const join = () => agentFor(compute_id).links.joinAll(lab.id, inputs)
    const joined = await createOrCleanUp(lab, join, all(orphans)).catch(noteAll(list))
    for (const [index, it] of (joined ?? []).entries()) {
      const link = list[index]
      if (link !== undefined && it.error !== null) failures.set(link, errorOf(it.error))
    }
  }
  await mapLimit(others, (link) => wire(labs, lab, link.ends, link.record, agentFor).catch(noteAll([link])))
  return failures
}

/** The error of a link of a bulk. A defect of a compute is not a defect of this service. */
function errorOf({ status, message }: NonNullable<DirectLinkJoined['error']>): ApiError {
  const isError = status >= 400 && status < 600 && status !== 500
  return new ApiError(isError ? status : 502, quoteText(message))
}

interface UpdateOptions {
  readonly undoGroup?: UndoGroup
  readonly more?: Pick<LinkRecord, 'lastApplied'> & { readonly name?: string | null }
}

const linkChanges = new WeakMap<Lab, KeyedMutex>()

/**
 * Runs a change of links, also on their computes, while no other change of them runs: each sends the whole link to its compute, which would make
 * a link again that was just deleted there. The change reads the records itself, and begins no other one: that would wait for it for ever.
 */
export function withLinkLock<T>(lab: Lab, linkIds: Iterable<string>, change: () => Promise<T>): Promise<T> {
  const mutex = linkChanges.get(lab) ?? new KeyedMutex()
  linkChanges.set(lab, mutex)
  return mutex.runAll(linkIds, change)
}

/**
 * Changes a link, with effect at once. `more`: members of the record that replace those of the input, also by null. 404 also for a link that
 * is deleted meanwhile, 409 for a taken name.
 */
export async function updateLink(
  lab: Lab,
  id: string,
  input: LabLinkUpdate,
  agentFor: ComputeAgents,
  options: UpdateOptions = {},
): Promise<LabLink> {
  const { link_id } = lab.link(id)
  return lab.change(() => withLinkLock(lab, [link_id], () => update(lab, link_id, input, agentFor, options)))
}

async function update(
  lab: Lab,
  id: string,
  input: LabLinkUpdate,
  agentFor: ComputeAgents,
  { undoGroup, more = {} }: UpdateOptions,
): Promise<LabLink> {
  const before = lab.link(id)
  const wanted = more.name ?? input.name ?? null
  if (wanted !== null) requireFreeName(lab, wanted, before.link_id)
  const { nodes, ...rest } = input
  for (const end of nodes ?? []) {
    if (sameEnd(before.nodes, end) !== undefined) continue
    const { node, port } = findEnd(lab, end)
    throw badRequest(
      `nodes: the link is not attached to ${node.name} ${port.name}; to link other ports, delete it and create another`,
    )
  }
  const next = (now: LinkRecord): LinkRecord => ({
    ...now,
    ...withoutNulls(rest),
    nodes: now.nodes.map((end) => ({ ...end, ...withoutNulls({ label: sameEnd(nodes ?? [], end)?.label }) })),
    ...more,
  })
  const changed = next(before)
  const isImpaired = (['filters', 'filters_ab', 'filters_ba', 'suspend'] as const).some(
    (name) => JSON.stringify(changed[name]) !== JSON.stringify(before[name]),
  )
  if (isImpaired) await impair(lab, changed, agentFor)
  const write = () =>
    lab.edit(() => {
      const record = next(lab.link(id))
      return {
        changes: new Changes().put('link', record.link_id, record),
        news: () => [{ action: 'link.updated', event: lab.linkView(record) }],
        result: lab.linkView(record),
      }
    }, undoGroup)
  return saveOrRevert(lab, write, async () => isImpaired && impair(lab, before, agentFor))
}

/** Has the computes of a link check filters for it, without effect. 400 says what is wrong, 409 where a compute has no libpcap. */
export async function checkFilters(lab: Lab, id: string, filters: Filters, agentFor: ComputeAgents): Promise<void> {
  const checked = new Set<string>()
  for (const end of lab.link(id).nodes) {
    const node = lab.node(end.node_id)
    if (!isKnownKind(node.node_type) || checked.has(node.compute_id)) continue
    checked.add(node.compute_id)
    await agentFor(node.compute_id).nodes.checkFilters(nodeRefOf(lab, node), portRefOf(end), filters)
  }
}

export async function removeLink(
  labs: Pick<Labs, 'computes'>,
  lab: Lab,
  id: string,
  agentFor: ComputeAgents,
  undoGroup?: UndoGroup,
): Promise<void> {
  const { link_id } = lab.link(id)
  await lab.change(() => remove(labs, lab, link_id, agentFor, undoGroup))
}

/** Removes a link, unless another request has done so meanwhile. */
const remove = (
  labs: Pick<Labs, 'computes'>,
  lab: Lab,
  id: string,
  agentFor: ComputeAgents,
  undoGroup: UndoGroup | undefined,
): Promise<void> =>
  withLinkLock(lab, [id], async () => {
    const record = lab.document.links.get(id)
    if (record === undefined) return
    await lab.requireSavable()
    await unwire(lab, record, agentFor)
    const write = () =>
      lab.edit(
        () => ({
          changes: new Changes().remove('link', id),
          news: () => [{ action: 'link.deleted', event: lab.linkView(record) }],
          result: undefined,
        }),
        undoGroup,
      )
    await saveOrRevert(lab, write, () => wireAgain(labs, lab, record, agentFor))
  })

/** Removes all links of a node. */
export async function unlinkNode(
  labs: Pick<Labs, 'computes'>,
  lab: Lab,
  nodeId: string,
  agentFor: ComputeAgents,
  undoGroup: UndoGroup,
): Promise<void> {
  for (const { link_id } of lab.document.linksOf(nodeId)) await remove(labs, lab, link_id, agentFor, undoGroup)
}

const unfit = { code: 'ports-do-not-fit' } as const

function requireFitting([a, b]: Ends): void {
  if (keyOf(a.end) === keyOf(b.end)) throw badRequest('nodes: a port cannot be linked to itself', unfit)
  if (a.port.link_type !== b.port.link_type) {
    throw badRequest(
      `nodes: ${a.node.name} ${a.port.name} is ${a.port.link_type}, ${b.node.name} ${b.port.name} is ${b.port.link_type}; both must be the same`,
      unfit,
    )
  }
}

/** The wiring between two endpoints: direct on one compute, by UDP between two. */
export function wiringOf([a, b]: Ends): LinkWiring {
  // A placeholder is not on its compute: the link is wired when the node is.
  if (a.node.creationError !== undefined || b.node.creationError !== undefined) return { type: 'none' }
  const { compute_id } = a.node
  return compute_id === b.node.compute_id ? { type: 'direct', compute_id } : { type: 'udp' }
}

const keyOf = ({ node_id, adapter_number, port_number }: LabLinkEnd): string =>
  `port/${node_id}/${adapter_number}/${port_number}`
/** The end of a list that is at the same port. */
export const sameEnd = (ends: readonly LabLinkEnd[], end: LabLinkEnd): LabLinkEnd | undefined =>
  ends.find(
    ({ node_id, adapter_number, port_number }) =>
      port_number === end.port_number && adapter_number === end.adapter_number && node_id.toLowerCase() === end.node_id,
  )

/** 409 when another link of the lab has the name. */
function requireFreeName(lab: Lab, name: string, self?: string): void {
  const key = nameKey(name)
  const isTaken = [...lab.document.links.values()].some(
    (link) => link.link_id !== self && link.name != null && nameKey(link.name) === key,
  )
  if (isTaken || lab.claimed.has(`link/${key}`))
    throw conflict(`name: the project already has a link ${name}; choose another name`, { code: 'name-taken' })
}

/** 409 when links cannot be in the document, as others are at their ports or have their names. `besides`: links that go away. */
export function requireUnlinked(
  lab: Lab,
  records: readonly LinkRecord[],
  besides: ReadonlySet<string> = new Set(),
): void {
  const own = new Set([...besides, ...records.map(({ link_id }) => link_id)])
  const isOther = ({ link_id }: LinkRecord) => !own.has(link_id)
  for (const end of records.flatMap(({ nodes }) => nodes)) {
    const { node_id, adapter_number, port_number } = end
    if (!lab.document.linksOf(node_id).some((it) => isOther(it) && sameEnd(it.nodes, end) !== undefined)) continue
    const name = lab.document.nodes.get(node_id)?.name ?? node_id
    throw conflict(`nodes: port ${adapter_number}/${port_number} of ${name} was linked by another request meanwhile`, {
      code: 'port-taken',
    })
  }
  const names = new Set(records.flatMap(({ name }) => (name == null ? [] : [nameKey(name)])))
  for (const it of names.size === 0 ? [] : lab.document.links.values())
    if (it.name != null && isOther(it) && names.has(nameKey(it.name)))
      throw conflict(`name: the project already has a link ${it.name}; choose another name`, { code: 'name-taken' })
}

/**
 * Claims the ports and names of links that are made again, until the result is called. 409 when another request is making a link there.
 */
export function claimEnds(lab: Lab, records: readonly LinkRecord[]): () => void {
  const keys = records.flatMap(({ link_id, nodes, name }) => [
    `link-id/${link_id}`,
    ...nodes.map(keyOf),
    ...(name == null ? [] : [`link/${nameKey(name)}`]),
  ])
  if (keys.some((key) => lab.claimed.has(key)))
    throw conflict(
      'Another request is creating a link at the same port or with the same name: try again when it is done',
    )
  for (const key of keys) lab.claimed.add(key)
  return () => {
    for (const key of keys) lab.claimed.delete(key)
  }
}

/** Claims both ports, the id and the name until the returned function is called. 409 when one is taken, or claimed. */
function claim(
  lab: Lab,
  ends: Ends,
  { link_id, name }: Pick<LinkRecord, 'link_id'> & { name: string | null },
): () => void {
  const id = `link-id/${link_id}`
  if (lab.claimed.has(id)) throw conflict(`link_id: another request is creating a link ${link_id}`)
  const keys = [id, ...ends.map(({ end }) => keyOf(end))]
  if (name !== null) {
    requireFreeName(lab, name)
    keys.push(`link/${nameKey(name)}`)
  }
  for (const { end, node, port } of ends) {
    const isLinked = lab.document.linksOf(node.node_id).some(({ nodes }) => sameEnd(nodes, end) !== undefined)
    if (!isLinked && !lab.claimed.has(keyOf(end))) continue
    throw conflict(`nodes: ${node.name} ${port.name} is already linked; delete that link first`, { code: 'port-taken' })
  }
  for (const key of keys) lab.claimed.add(key)
  return () => {
    for (const key of keys) lab.claimed.delete(key)
  }
}
