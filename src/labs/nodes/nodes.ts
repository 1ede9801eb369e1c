import type { NodeAction } from '../../host-agent.ts'
import { ApiError, badRequest, conflict, ignoreNotFound } from '../../lib/errors/api-error.ts'
import { nearest } from '../../lib/text/nearest-word.ts'
import type { KindDescriptor } from '../../model/kinds/kind.ts'
import type { NodeUpdate } from '../../model/kinds/node.ts'
import { kindOf, type NodeKindName, nodeKinds } from '../../model/kinds/node.ts'
import { type FreeName, freeName, nameKey } from '../../model/lab/names.ts'
import {
  isKnownKind,
  type LabLabel,
  type LabNode,
  type LabNodeCreate,
  type LabNodeUpdate,
} from '../../model/lab/node.ts'
import { isUuid } from '../../model/schema/fields.ts'
import { oursFor } from '../../model/validation/foreign-words.ts'
import { type ComputeAgents, createOnCompute, sendNodeAction, withImages } from '../computes/agents.ts'
import type { Conventions } from '../lab/conventions.ts'
import { Changes, type NodeRecord } from '../lab/document.ts'
import { withoutNulls } from '../lab/fields.ts'
import type { UndoGroup } from '../lab/history.ts'
import { keptWith, sorted } from '../lab/kept.ts'
import type { Lab } from '../lab/lab.ts'
import { nodeOrphan, removeOrphan, revertOrphans } from '../lab/leftovers.ts'
import { requireUnlocked } from '../lab/locked.ts'
import { nodeRefOf, propertiesOf, type ReportedNode, reportedFields } from '../lab/node-on-compute.ts'
import { placeholderReason } from '../lab/placeholder-view.ts'
import { saveOrRevert } from '../lab/save-or-revert.ts'
import { requireOneMoreWithin, startWithin } from '../lab/token-limits.ts'
import { unlinkNode } from '../links/links.ts'
import type { Labs } from '../service.ts'
import { addNewNode, newNodeRecord, type RecordExtras } from './new-record.ts'
import { makeNode, retryPlaceholder } from './placeholders.ts'
import { computesFor, onFirstWithRoom } from './placement.ts'

/** Finds a node that its compute has, by its id or name. 404, 409 with the reason for a placeholder. */
export function nodeOnCompute(lab: Lab, idOrName: string): NodeRecord {
  const record = lab.node(idOrName)
  const reason = placeholderReason(record, record.creationError)
  if (reason !== undefined) throw conflict(`node_id: ${record.name}: ${reason}`)
  return record
}

interface CreateOptions {
  readonly agentFor: ComputeAgents
  readonly unique?: 'refuse' | undefined
  readonly undoGroup?: UndoGroup
  readonly more?: RecordExtras
  readonly conventions?: Conventions | undefined
  /** Its label, by its name; default: that of the input, or the name. */
  readonly label?: (name: string) => LabLabel
  /** Fills the new node on its compute. The project has the node after that; a failure leaves nothing. */
  readonly fill?: (nodeId: string) => Promise<unknown>
}

/**
 * Creates a node on its compute, then in the document. A name that is taken becomes the next free one, or is 409 with
 * `unique: 'refuse'`. A failure leaves nothing. 400 for properties that the kind lacks, 404, 409.
 */
export async function createNode(
  labs: Labs,
  lab: Lab,
  input: LabNodeCreate,
  { agentFor, unique, undoGroup, more, conventions, label, fill }: CreateOptions,
): Promise<LabNode> {
  const { node_type, console, console_type } = input
  if (!isKnownKind(node_type)) throw noSuchKind('node_type', node_type)
  const { properties, kept } = sorted(node_type, 'create', input)
  lab.requireRoom(1)
  const node_id = input.node_id?.toLowerCase() ?? crypto.randomUUID()
  const idClaim = `node-id/${node_id}`
  const existing = lab.document.nodes.get(node_id)
  if (existing !== undefined && conventions?.showsExisting === true) return lab.nodeView(existing)
  if (existing !== undefined || lab.claimed.has(idClaim)) throw nodeExists(node_id)
  requireOneMoreWithin(agentFor.limits, lab)
  const name = takeName(lab, input.name, { unique, free: conventions?.nodeName })
  lab.claimed.add(idClaim)
  const refused = refusedOf(properties)
  const adapters = adaptersFor(node_type, 'create', input)
  const settings = {
    name,
    node_id,
    ...withoutNulls({ console, console_type }),
    ...adapters,
    ...withoutNulls(properties),
  }
  const macs: string[] = []
  try {
    const ref = nodeRefOf(lab, { node_type, node_id })
    const claimMac = (compute_id: string) => {
      const free = 'mac_address' in settings ? undefined : freeMac(lab, node_type, compute_id)
      if (free === undefined) return {}
      lab.claimedMacs.set(free.mac_address, compute_id)
      macs.push(free.mac_address)
      return free.isChosenThere ? {} : { mac_address: free.mac_address }
    }
    const save = (compute_id: string, shown: ReportedNode) => {
      const record = newNodeRecord({ input, node_type, node_id, name, label: label?.(name), kept }, compute_id, {
        console: shown.console ?? null,
        console_type: shown.console_type ?? 'none',
        properties: propertiesOf(shown),
      })
      lab.keepReported(shown)
      const write = () => addNewNode(lab, record, more, undoGroup)
      return saveOrRevert(lab, write, () => {
        lab.reported.delete(node_id)
        return agentFor(compute_id).nodes.remove(ref)
      })
    }
    const make = (compute_id: string) => {
      const compute = agentFor(compute_id)
      const mac = claimMac(compute_id)
      // Images are copied outside the change: that may take minutes, in which nothing is changed.
      return withImages(compute, () =>
        lab.change(async () => {
          if (lab.document.nodes.has(node_id)) throw nodeExists(node_id)
          requireStillFree(lab, name, node_id)
          await labs.lifecycle.attachCompute(lab, compute_id, agentFor)
          const orphan = nodeOrphan(lab, { node_type, node_id, compute_id }, agentFor)
          const create = () => createOnCompute(compute, lab.id, node_type, { ...settings, ...mac }).catch(refused)
          await using revert = revertOrphans()
          let shown = await revert.make(create, () => removeOrphan(lab, orphan))
          if (fill !== undefined) {
            await fill(node_id)
            shown = await compute.nodes.get(ref)
          }
          revert.commit()
          // When the document cannot be saved, the next compute is not tried.
          const [outcome] = await Promise.allSettled([save(compute_id, shown)])
          return outcome
        }),
      )
    }
    const outcome = await onFirstWithRoom(lab, node_id, await computesFor(labs, lab, input), make)
    if (outcome.status === 'rejected') throw outcome.reason
    return outcome.value
  } finally {
    lab.placing.delete(node_id)
    for (const claim of [idClaim, nameClaim(name)]) lab.claimed.delete(claim)
    for (const mac of macs) lab.claimedMacs.delete(mac)
  }
}

/**
 * Changes a node on its compute, then in the document. When the compute refuses one change, nothing changes. `more` gives members of
 * the record that replace those of the input, also by null.
 */
export async function updateNode(
  lab: Lab,
  idOrName: string,
  input: LabNodeUpdate,
  agentFor: ComputeAgents,
  {
    undoGroup = { by: 'edit', consoles: new Set() },
    more,
    conventions,
  }: {
    undoGroup?: UndoGroup
    more?: (record: NodeRecord) => Promise<Partial<NodeRecord>>
    conventions?: Conventions | undefined
  } = {},
): Promise<LabNode> {
  const record = lab.node(idOrName)
  const { name: wanted, properties: _, kept: __, console, console_type, ...map } = input
  const { properties, kept } = sorted(record.node_type, 'update', input)
  const isWanted = wanted !== undefined && wanted !== null && wanted !== record.name
  const unique = conventions === undefined ? 'refuse' : undefined
  const naming = { unique, free: conventions?.nodeName, self: record.node_id } as const
  const name = isWanted ? takeName(lab, wanted, naming) : record.name
  const isRenamed = name !== record.name
  const changed: Record<string, unknown> = {
    ...adaptersFor(record.node_type, 'update', map),
    ...withoutNulls(properties),
  }
  for (const [key, value] of Object.entries(changed)) {
    if (JSON.stringify(value) === JSON.stringify(record.properties[key])) delete changed[key]
  }
  const update = {
    ...changed,
    ...(isRenamed && { name }),
    ...(console !== undefined && console !== null && console !== record.console && { console }),
    ...(console_type !== undefined &&
      console_type !== null &&
      console_type !== record.console_type && { console_type }),
  }
  const isPlaceholder = !isKnownKind(record.node_type) || record.creationError !== undefined
  const isUpdated = !isPlaceholder && Object.keys(update).length > 0
  const change = async () => {
    if (isRenamed) requireStillFree(lab, name, record.node_id)
    const send = () => agentFor(record.compute_id).nodes.update(nodeRefOf(lab, record), update as NodeUpdate)
    const shown = isUpdated ? await send().catch(refusedOf(properties)) : undefined
    if (shown !== undefined) lab.keepReported(shown)
    if ('console' in update) undoGroup.consoles?.add(`node/${record.node_id}`)
    const write = (added: Partial<NodeRecord> | undefined) =>
      lab.edit(({ nodes }) => {
        // 404 for a node that was deleted meanwhile.
        const now = lab.node(record.node_id)
        const label =
          isRenamed && map.label === undefined && now.label?.text === now.name
            ? { ...now.label, text: name }
            : now.label
        const next: NodeRecord = {
          ...now,
          label,
          ...withoutNulls(map),
          ...(shown !== undefined && reportedFields(shown)),
          ...keptWith(now.kept, kept),
          ...(isPlaceholder && {
            name,
            ...withoutNulls({ console_type }),
            properties: { ...now.properties, ...changed },
          }),
          ...added,
        }
        const changes = new Changes().put('node', record.node_id, next)
        const later = next.name === now.name ? [] : afterRename(nodes.values(), now, next.name)
        for (const it of later) changes.put('node', it.node_id, it)
        return {
          changes,
          news: () => [next, ...later].map((node) => ({ action: 'node.updated', event: lab.nodeView(node) })),
          get result() {
            return lab.nodeView(next)
          },
        }
      }, undoGroup)
    return await saveOrRevert(
      lab,
      async () => write(await more?.({ ...record, ...(shown !== undefined && reportedFields(shown)) })),
      async () => {
        if (isUpdated)
          lab.keepReported(
            await agentFor(record.compute_id).nodes.update(
              nodeRefOf(lab, record),
              formerOf(record, update) as NodeUpdate,
            ),
          )
      },
    )
  }
  try {
    return await (isUpdated ? withImages(agentFor(record.compute_id), () => lab.change(change)) : change())
  } finally {
    if (isWanted) lab.claimed.delete(nameClaim(name))
  }
}

/** The former values of settings that were changed on a compute. A text that there was not becomes empty: null would leave it as it is. */
const formerOf = (record: NodeRecord, update: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(update).flatMap(([key, now]) => {
      const before = record.properties[key] ?? record[key as keyof NodeRecord] ?? (typeof now === 'string' ? '' : null)
      return before === null ? [] : [[key, before]]
    }),
  )

/** The other nodes that start after a node, with its new name. */
function afterRename(nodes: Iterable<NodeRecord>, { node_id, name: old }: NodeRecord, name: string): NodeRecord[] {
  const isOld = (it: string) => nameKey(it) === nameKey(old)
  return [...nodes]
    .filter((it) => it.node_id !== node_id && it.after.some(isOld))
    .map((node) => ({ ...node, after: node.after.map((other) => (isOld(other) ? name : other)) }))
}

/** 400 for a kind that is not here, with the word that was probably meant. */
export function noSuchKind(field: string, kind: string): ApiError {
  const guess = oursFor(kind) ?? nearest(kind, nodeKinds)
  const help = guess === undefined ? `expected one of ${nodeKinds.join(', ')}` : `did you mean ${guess}?`
  return badRequest(`${field}: this service has no kind ${kind}, ${help}`)
}

/** For `catch`: an error about a property names the property as the input of the client has it: `properties.{name}`. */
const refusedOf =
  (properties: Readonly<Record<string, unknown>>) =>
  (error: unknown): never => {
    if (!(error instanceof ApiError) || error.status !== 400) throw error
    const [, field = ''] = /^(\w+)[^\w ]/.exec(error.message) ?? []
    if (!Object.hasOwn(properties, field)) throw error
    throw badRequest(`properties.${error.message}`, { cause: error, code: error.code })
  }

/** The settings of single adapters; only for kinds whose nodes have them on computes, too. */
const adaptersFor = (
  node_type: string,
  input: 'create' | 'update',
  { custom_adapters }: Pick<LabNodeUpdate, 'custom_adapters'>,
): object =>
  isKnownKind(node_type) && 'custom_adapters' in kindOf(node_type)[input].properties
    ? withoutNulls({ custom_adapters })
    : {}

/** Deletes a node with its links. Its directory stays until the project is closed, for an undo. 409 when it is locked. */
export async function removeNode(
  labs: Pick<Labs, 'computes'>,
  lab: Lab,
  idOrName: string,
  agentFor: ComputeAgents,
  undoGroup: UndoGroup = { by: 'edit' },
): Promise<void> {
  const { node_id } = lab.node(idOrName)
  await lab.change(async () => {
    // 404 when it is gone by then.
    const record = lab.node(node_id)
    requireUnlocked(record, `The node ${record.name}`)
    await remove(labs, lab, record, agentFor, undoGroup)
  })
}

async function remove(
  labs: Pick<Labs, 'computes'>,
  lab: Lab,
  record: NodeRecord,
  agentFor: ComputeAgents,
  undoGroup: UndoGroup,
): Promise<void> {
  await lab.requireSavable()
  await unlinkNode(labs, lab, record.node_id, agentFor, undoGroup)
  if (isKnownKind(record.node_type))
    await agentFor(record.compute_id).nodes.remove(nodeRefOf(lab, record), { files: 'later' }).catch(ignoreNotFound)
  const last = lab.nodeView(record)
  const write = () =>
    lab.edit(
      () => ({
        changes: new Changes().remove('node', record.node_id),
        news: () => [{ action: 'node.deleted', event: last }],
        result: undefined,
      }),
      undoGroup,
    )
  await saveOrRevert(lab, write, () => remake(lab, record, agentFor))
  lab.reported.delete(record.node_id)
  lab.unknownReasons.delete(record.node_id)
  // A link that was being made may have been written before the node was gone.
  await unlinkNode(labs, lab, record.node_id, agentFor, undoGroup)
}

/** Makes a node again that was removed from its compute in vain, in its directory. It is stopped. */
export async function remake(lab: Lab, record: NodeRecord, agentFor: ComputeAgents): Promise<void> {
  if (!isKnownKind(record.node_type) || record.creationError !== undefined) return
  const { creationError } = await makeNode(lab, record, agentFor)
  if (creationError !== undefined) throw conflict(`${record.name}: ${creationError}`)
  lab.keepReported(await agentFor(record.compute_id).nodes.get(nodeRefOf(lab, record)))
}

/**
 * Starts, stops, suspends, resumes or reloads a node of a lab: every such action of labs comes here. 404, 409 with the reason; 409 `limit-reached`
 * beyond the limits of the caller's token.
 */
export async function runNodeAction(
  labs: Pick<Labs, 'computes'>,
  lab: Lab,
  record: NodeRecord,
  action: NodeAction,
  agentFor: ComputeAgents,
): Promise<LabNode> {
  if (action === 'start') await retryPlaceholder(labs, lab, record, agentFor)
  else nodeOnCompute(lab, record.node_id)
  // A suspended node counts as running, so that the other actions start nothing that does not count yet.
  const starts = action === 'start' || action === 'reload'
  using _ = starts ? startWithin(agentFor.limits, lab, lab.node(record.node_id)) : undefined
  const shown = await sendNodeAction(agentFor(record.compute_id), nodeRefOf(lab, record), action)
  lab.keepReported(shown)
  lab.onNodeActed(shown)
  return lab.nodeView(lab.node(record.node_id))
}

/** Copies a node under a new name, at another position of the map. Its guest may run: it is still meanwhile. 409 for a placeholder. */
export async function duplicateNode(
  labs: Labs,
  lab: Lab,
  idOrName: string,
  { x, y, z }: { x: number; y: number; z: number },
  { agentFor, conventions }: { agentFor: ComputeAgents; conventions?: Conventions | undefined },
): Promise<LabNode> {
  const source = nodeOnCompute(lab, idOrName)
  const { node_id: _, name, console: __, properties, label, ...rest } = source
  const labelOf = (copy: string) => ({ ...label, text: label?.text === name || label == null ? copy : label.text })
  // The copy gets what its kind accepts at a creation; read-only properties and the MAC address are its own.
  const known = kindOf(source.node_type as never).create.properties
  const settings = Object.fromEntries(
    Object.entries(properties).filter(([key]) => key in known && key !== 'mac_address'),
  )
  // A snapshot has the copy with its files, or not at all.
  const fill = (nodeId: string) => agentFor(source.compute_id).nodes.duplicate(nodeRefOf(lab, source), nodeId)
  return createNode(
    labs,
    lab,
    { ...rest, name, properties: settings, x, y, z },
    { agentFor, conventions, label: labelOf, fill },
  )
}

/**
 * The MAC address of a new node; undefined: its kind has none. `isChosenThere`: its compute chooses the same address itself, the first that
 * is free there, as all nodes of this kind in the lab are on that compute, also those that are being created.
 */
function freeMac(
  lab: Lab,
  kind: NodeKindName,
  computeId: string,
): { mac_address: string; isChosenThere: boolean } | undefined {
  const { freeMac }: KindDescriptor = kindOf(kind)
  if (freeMac === undefined) return undefined
  const others = [...lab.document.nodes.values()].filter(({ node_type }) => node_type === kind)
  const computes = [...others.map(({ compute_id }) => compute_id), ...lab.claimedMacs.values()]
  return {
    mac_address: freeMac(
      new Set([...lab.claimedMacs.keys(), ...others.map(({ properties }) => properties.mac_address)]),
    ),
    isChosenThere: computes.every((it) => it === computeId),
  }
}

/** 409 when a snapshot that was restored meanwhile has brought back a node of this name. `self`: the node that gets it. */
export function requireStillFree({ document }: Lab, name: string, self: string): void {
  const key = nameKey(name)
  const taken = [...document.nodes.values()].find((it) => it.node_id !== self && nameKey(it.name) === key)
  if (taken !== undefined) throw nameTaken(taken.name)
}

const nodeExists = (id: string): ApiError => conflict(`node_id: a node ${id} already exists`, { code: 'node-exists' })

const nameTaken = (name: string): ApiError =>
  conflict(`name: the project already has a node ${name}; choose another name`, { code: 'name-taken' })

const nameClaim = (name: string): string => `name/${nameKey(name)}`

/**
 * Claims names that nodes get again, until the result is called: of nodes that have others now, or are not there. 409 when another request is
 * giving one to a node.
 */
export function claimNames(lab: Lab, names: readonly string[]): () => void {
  const pending = names.find((name) => lab.claimed.has(nameClaim(name)))
  if (pending !== undefined) throw conflict(`Another request is naming a node ${pending}: try again when it is done`)
  for (const name of names) lab.claimed.add(nameClaim(name))
  return () => {
    for (const name of names) lab.claimed.delete(nameClaim(name))
  }
}

interface Naming {
  readonly unique?: 'refuse' | undefined
  readonly free?: FreeName | undefined
  /** The node that gets the name. */
  readonly self?: string
}

/** Claims a free name for a node; the caller deletes the claim. 400 for a UUID, 409 for a taken name with `unique`. */
function takeName(lab: Lab, wanted: string, { unique, free = freeName, self }: Naming): string {
  if (isUuid(wanted)) throw badRequest('name: a name must not look like an id (UUID); choose another name')
  const others = [...lab.document.nodes.values()].filter(({ node_id }) => node_id !== self)
  const taken = new Map(others.map(({ name }) => [nameKey(name), name]))
  const isTaken = (key: string) => taken.has(key) || lab.claimed.has(`name/${key}`)
  if (unique === 'refuse' && isTaken(nameKey(wanted))) throw nameTaken(taken.get(nameKey(wanted)) ?? wanted)
  const name = free(wanted, isTaken)
  lab.claimed.add(nameClaim(name))
  return name
}
