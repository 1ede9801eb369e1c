import type { HostAgent } from '../../host-agent.ts'
import { type ApiError, conflict } from '../../lib/errors/api-error.ts'
import type { KindDescriptor } from '../../model/kinds/kind.ts'
import { kindOf, type NodeKindName } from '../../model/kinds/node.ts'
import { isKnownKind, type LabLabel, type LabNode, type LabNodeCreate } from '../../model/lab/node.ts'
import { type ComputeAgents, createOnCompute, withImages } from '../computes/agents.ts'
import type { Conventions } from '../lab/conventions.ts'
import { withoutNulls } from '../lab/fields.ts'
import type { UndoGroup } from '../lab/history.ts'
import { splitKept } from '../lab/kept.ts'
import type { Lab } from '../lab/lab.ts'
import { nodeOrphan, removeOrphan, revertOrphans } from '../lab/leftovers.ts'
import { nodeRefOf, propertiesOf, type ReportedNode } from '../lab/node-on-compute.ts'
import { saveOrRevert } from '../lab/save-or-revert.ts'
import { requireOneMoreWithin } from '../lab/token-limits.ts'
import type { Labs } from '../service.ts'
import { addNewNode, type NewNode, newNodeRecord, type RecordExtras } from './new-record.ts'
import { nameClaim, requireStillFree, takeName } from './node-names.ts'
import { adaptersFor, noSuchKind, refusedOf } from './node-settings.ts'
import { computesFor, onFirstWithRoom } from './placement.ts'

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
export async function createNode(labs: Labs, lab: Lab, input: LabNodeCreate, options: CreateOptions): Promise<LabNode> {
  const { agentFor, unique, conventions, label } = options
  const { node_type } = input
  if (!isKnownKind(node_type)) throw noSuchKind('node_type', node_type)
  const { properties, kept } = splitKept(node_type, 'create', input)
  lab.requireRoom(1)
  const node_id = input.node_id?.toLowerCase() ?? crypto.randomUUID()
  const existing = lab.document.nodes.get(node_id)
  if (existing !== undefined && conventions?.showsExisting === true) return lab.nodeView(existing)
  if (existing !== undefined || lab.claimed.has(idClaim(node_id))) throw nodeExists(node_id)
  requireOneMoreWithin(agentFor.limits, lab)
  const name = takeName(lab, input.name, { unique, free: conventions?.nodeName })
  using creation = new NodeCreation(
    labs,
    lab,
    { input, node_type, node_id, name, label: label?.(name), kept, properties },
    options,
  )
  const computes = await computesFor(labs, lab, input)
  const outcome = await onFirstWithRoom(lab, node_id, computes, (computeId) => creation.runOn(computeId))
  if (outcome.status === 'rejected') throw outcome.reason
  return outcome.value
}

type NodeSettings = Parameters<typeof createOnCompute>[3]

/** A node that is being created, with the properties that its compute gets. */
interface CreatedNode extends NewNode {
  readonly properties: Readonly<Record<string, unknown>>
}

/** The creation of a node whose name is claimed. Its id, and a MAC address, are claimed until it is disposed of. */
class NodeCreation implements Disposable {
  readonly #labs: Labs
  readonly #lab: Lab
  readonly #node: CreatedNode
  readonly #options: CreateOptions
  readonly #macs: string[] = []

  constructor(labs: Labs, lab: Lab, node: CreatedNode, options: CreateOptions) {
    this.#labs = labs
    this.#lab = lab
    this.#node = node
    this.#options = options
    lab.claimed.add(idClaim(node.node_id))
  }

  /**
   * Creates the node on a compute, then in the document. Rejects when the compute refuses it. When the document cannot be saved, the
   * outcome says so: then no other compute is tried.
   */
  runOn(computeId: string): Promise<PromiseSettledResult<LabNode>> {
    const { agentFor } = this.#options
    const { node_id, name } = this.#node
    const lab = this.#lab
    const settings = this.#settingsOn(computeId)
    // Images are copied outside the change: that may take minutes, in which nothing is changed.
    return withImages(agentFor(computeId), () =>
      lab.change(async () => {
        if (lab.document.nodes.has(node_id)) throw nodeExists(node_id)
        requireStillFree(lab, name, node_id)
        await this.#labs.lifecycle.attachCompute(lab, computeId, agentFor)
        const shown = await this.#createOn(computeId, settings)
        const [outcome] = await Promise.allSettled([this.#save(computeId, shown)])
        return outcome
      }),
    )
  }

  /** What the compute gets. */
  #settingsOn(computeId: string): NodeSettings {
    const { input, node_type, node_id, name, properties } = this.#node
    const { console, console_type } = input
    const settings = {
      name,
      node_id,
      ...withoutNulls({ console, console_type }),
      ...adaptersFor(node_type, 'create', input),
      ...withoutNulls(properties),
    }
    return { ...settings, ...('mac_address' in settings ? {} : this.#claimMac(computeId)) }
  }

  /** Claims a free MAC address for a kind that has one; empty when the compute chooses the same one itself. */
  #claimMac(computeId: string): { mac_address?: string } {
    const free = freeMac(this.#lab, this.#node.node_type, computeId)
    if (free === undefined) return {}
    this.#lab.claimedMacs.set(free.mac_address, computeId)
    this.#macs.push(free.mac_address)
    return free.isChosenThere ? {} : { mac_address: free.mac_address }
  }

  /** Creates and fills the node on its compute; a failure leaves nothing there. */
  async #createOn(computeId: string, settings: NodeSettings): Promise<ReportedNode> {
    const { agentFor, fill } = this.#options
    const { node_type, node_id, properties } = this.#node
    const lab = this.#lab
    const compute: HostAgent = agentFor(computeId)
    const orphan = nodeOrphan(lab, { node_type, node_id, compute_id: computeId }, agentFor)
    const create = () => createOnCompute(compute, lab.id, node_type, settings).catch(refusedOf(properties))
    await using revert = revertOrphans()
    let shown = await revert.make(create, () => removeOrphan(lab, orphan))
    if (fill !== undefined) {
      await fill(node_id)
      shown = await compute.nodes.get(nodeRefOf(lab, { node_type, node_id }))
    }
    revert.commit()
    return shown
  }

  /** Adds the node to the document; when that fails, removes it from its compute. */
  #save(computeId: string, shown: ReportedNode): Promise<LabNode> {
    const { agentFor, more, undoGroup } = this.#options
    const { node_type, node_id } = this.#node
    const lab = this.#lab
    const record = newNodeRecord(this.#node, computeId, {
      console: shown.console ?? null,
      console_type: shown.console_type ?? 'none',
      properties: propertiesOf(shown),
    })
    lab.keepReported(shown)
    return saveOrRevert(
      lab,
      () => addNewNode(lab, record, more, undoGroup),
      () => {
        lab.reported.delete(node_id)
        return agentFor(computeId).nodes.remove(nodeRefOf(lab, { node_type, node_id }))
      },
    )
  }

  [Symbol.dispose](): void {
    const { node_id, name } = this.#node
    this.#lab.placing.delete(node_id)
    for (const claim of [idClaim(node_id), nameClaim(name)]) this.#lab.claimed.delete(claim)
    for (const mac of this.#macs) this.#lab.claimedMacs.delete(mac)
  }
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

export const idClaim = (nodeId: string): string => `node-id/${nodeId}`

const nodeExists = (id: string): ApiError => conflict(`node_id: a node ${id} already exists`, { code: 'node-exists' })
