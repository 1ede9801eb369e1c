import { defaultOf } from '../../labfile/nodes.ts'
import { conflict } from '../../lib/errors/api-error.ts'
import type { KindDescriptor } from '../../model/kinds/kind.ts'
import { kindOf } from '../../model/kinds/node.ts'
import { isKnownKind, type LabNode, type LabNodeCreate } from '../../model/lab/node.ts'
import type { ComputeAgents } from '../computes/agents.ts'
import { withoutNulls } from '../lab/fields.ts'
import type { UndoGroup } from '../lab/history.ts'
import { splitKept } from '../lab/kept.ts'
import type { Lab } from '../lab/lab.ts'
import { requireOneMoreWithin } from '../lab/token-limits.ts'
import type { Labs } from '../service.ts'
import { idClaim } from './create-node.ts'
import { addNewNode, newNodeRecord, type RecordExtras } from './new-record.ts'
import { requireStillFree } from './node-names.ts'
import { noSuchKind } from './node-settings.ts'
import { computesFor, onFirstWithRoom } from './placement.ts'

/**
 * Creates a node of a lab whose compute cannot create it, such as one whose image is missing. It has a place, ports and links as any node;
 * a later start creates it on its compute. 409 for a taken name.
 */
export async function createPlaceholder(
  labs: Labs,
  lab: Lab,
  input: LabNodeCreate,
  creationError: string,
  {
    agentFor,
    undoGroup,
    more,
  }: {
    readonly agentFor: ComputeAgents
    readonly undoGroup: UndoGroup
    readonly more: RecordExtras
  },
): Promise<LabNode> {
  const { name, node_type, console, console_type } = input
  if (!isKnownKind(node_type)) throw noSuchKind('node_type', node_type)
  lab.requireRoom(1)
  requireOneMoreWithin(agentFor.limits, lab)
  const descriptor: KindDescriptor = kindOf(node_type)
  const node_id = input.node_id?.toLowerCase() ?? crypto.randomUUID()
  const { properties, kept } = splitKept(node_type, 'create', input)
  const claim = idClaim(node_id)
  if (lab.claimed.has(claim)) throw conflict(`node_id: a node ${node_id} already exists`)
  lab.claimed.add(claim)
  const settings = {
    console: console ?? null,
    console_type: console_type ?? String(descriptor.node.properties.console_type?.default ?? 'none'),
    properties: { ...defaultProperties(descriptor), ...withoutNulls(properties) },
  }
  const create = (compute_id: string) =>
    lab.change(async () => {
      if (lab.document.nodes.has(node_id)) throw conflict(`node_id: a node ${node_id} already exists`)
      requireStillFree(lab, name, node_id)
      await labs.lifecycle.attachCompute(lab, compute_id, agentFor)
      const record = newNodeRecord({ input, node_type, node_id, name, kept }, compute_id, settings)
      return addNewNode(lab, { ...record, creationError }, more, undoGroup)
    })
  try {
    return await onFirstWithRoom(lab, node_id, await computesFor(labs, lab, input), create)
  } finally {
    lab.placing.delete(node_id)
    lab.claimed.delete(claim)
  }
}

/** What the record has beside the properties. */
const ofRecord = new Set(['name', 'node_id', 'console', 'console_type', 'custom_adapters'])

/** The settings that a node has without any of its own: its ports follow from them. */
const defaultProperties = ({ create }: KindDescriptor): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(create.properties).flatMap(([key, schema]) => {
      const value = ofRecord.has(key) ? undefined : defaultOf(schema)
      return value === undefined || value === null || value === '' ? [] : [[key, structuredClone(value)]]
    }),
  )
