import type { PortRef } from '../../host-agent.ts'
import { mapLimit } from '../../lib/async/map-limit.ts'
import { ApiError, badRequest, conflict } from '../../lib/errors/api-error.ts'
import { type CaptureStart, type LinkTypeName, linkTypes, linkTypesOf, maxStreamedLinks } from '../../model/capture.ts'
import type { NodeRef } from '../../model/kinds/node.ts'
import type { LabCaptureStart, LabLink } from '../../model/lab/link.ts'
import { isKnownKind } from '../../model/lab/node.ts'
import { portsOf } from '../../model/lab/ports.ts'
import type { ComputeAgents } from '../computes/agents.ts'
import { Changes, type LinkRecord, type NodeRecord } from '../lab/document.ts'
import { withoutNulls } from '../lab/fields.ts'
import type { Lab } from '../lab/lab.ts'
import { nodeRefOf, portRefOf } from '../lab/node-on-compute.ts'
import { saveOrRevert } from '../lab/save-or-revert.ts'

/** The port at which a link is captured, and its node. */
interface CapturePoint {
  readonly node: NodeRecord
  readonly ref: NodeRef
  readonly port: PortRef
}

/** Starts a capture of a link, at its first endpoint on a compute. 409 when the link is captured already. `managed`: a lab file starts it. */
export async function startCapture(
  lab: Lab,
  id: string,
  { managed, ...input }: LabCaptureStart & { managed?: true },
  agentFor: ComputeAgents,
): Promise<LabLink> {
  const link = lab.link(id)
  if (link.capture !== null) throw conflict('The link is already being captured; stop that capture first')
  const end = endOnCompute(lab, link)
  const { node, ref, port } = pointOf(lab, link, end)
  const { nodes } = agentFor(node.compute_id)
  const fileName = input.capture_file_name ?? defaultName(lab, link)
  const data_link_type = input.data_link_type ?? undefined
  await nodes.startCapture(ref, port, inputOf(link, { fileName, data_link_type }))
  return saveOrRevert(
    lab,
    () => save(lab, link.link_id, { end, fileName, ...withoutNulls({ managed, data_link_type }) }),
    () => nodes.stopCapture(ref, port),
  )
}

const inputOf = (
  { link_type }: Pick<LinkRecord, 'link_type'>,
  { fileName, data_link_type }: { fileName: string; data_link_type: string | undefined },
): CaptureStart => ({
  capture_file_name: fileName,
  // The compute checks that the port has this type.
  data_link_type: (data_link_type ?? linkTypesOf[link_type][0]) as LinkTypeName,
})

/**
 * Continues the capture of a link that was wired again. As a capture overwrites its file, the new file has a number in its name. The result
 * is for the record of the link: null, with a warning in the feed, when the capture could not be continued.
 */
export async function resumeCapture(
  lab: Lab,
  link: LinkRecord,
  agentFor: ComputeAgents,
): Promise<LinkRecord['capture']> {
  const { capture } = link
  if (capture === null) return null
  const { end, fileName, requestedName = fileName, data_link_type } = capture
  const { node, ref, port } = pointOf(lab, link, end)
  const compute = agentFor(node.compute_id)
  try {
    const taken = new Set((await compute.files.list(lab.id, { sums: false })).map(({ path }) => path))
    const [, stem = requestedName, extension = ''] = /^(.+?)(\.[^.]*)?$/.exec(requestedName) ?? []
    let free = requestedName
    for (let number = 2; taken.has(`project-files/captures/${free}`); number++) free = `${stem}-${number}${extension}`
    await compute.nodes.startCapture(ref, port, inputOf(link, { fileName: free, data_link_type }))
    return { ...capture, fileName: free, ...(free !== requestedName && { requestedName }) }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const message = `The capture to ${fileName} ended when its link was recreated, and could not be resumed: ${error.message}`
    lab.emit({ action: 'log.warning', event: { message } })
    return null
  }
}

/** Continues a capture that was stopped, under a name of its own as above; see there for what happens when it cannot. */
export async function continueCapture(
  lab: Lab,
  id: string,
  capture: LinkRecord['capture'],
  agentFor: ComputeAgents,
): Promise<void> {
  await stopCapture(lab, id, agentFor)
  await save(lab, id, await resumeCapture(lab, { ...lab.link(id), capture }, agentFor))
}

/**
 * Removes from the records the captures on these computes that have ended by themselves: the disk was full, the keeper ended, or the event
 * of it was missed. Captures of computes that do not answer stay.
 */
export async function recordEndedCaptures(
  lab: Lab,
  computes: readonly string[],
  agentFor: ComputeAgents,
): Promise<void> {
  const captured = [...lab.document.links.values()].filter(({ capture }) => capture !== null)
  await mapLimit(captured, async ({ link_id, capture }) => {
    const { node, ref, port } = pointOf(lab, lab.link(link_id), capture?.end ?? 0)
    if (!computes.includes(node.compute_id)) return
    const state = await agentFor(node.compute_id).nodes.nioState(ref, port)
    if (state.capture !== null) return
    // Another one may have begun meanwhile.
    if (lab.document.links.get(link_id)?.capture === capture) await save(lab, link_id, null)
  })
}

/**
 * Stops the capture of a link. Does nothing without one. When that cannot be saved, the next call or reading of the compute does it: a capture
 * that was started again would overwrite its file.
 */
export async function stopCapture(lab: Lab, id: string, agentFor: ComputeAgents): Promise<LabLink> {
  const link = lab.link(id)
  if (link.capture === null) return lab.linkView(link)
  const { node, ref, port } = pointOf(lab, link, link.capture.end)
  await agentFor(node.compute_id)
    .nodes.stopCapture(ref, port)
    .catch((error: unknown) => {
      // 404 and 409: the port has no NIO any more, and so no capture.
      if (!(error instanceof ApiError) || (error.status !== 404 && error.status !== 409)) throw error
    })
  return save(lab, link.link_id, null)
}

/** The port at which the frames of a link can be watched without a capture into a file: any number of clients may. */
export function streamPoint(lab: Lab, id: string): CapturePoint {
  const link = lab.link(id)
  return pointOf(lab, link, endOnCompute(lab, link))
}

/** The frames of a link as they pass. */
interface LinkStream {
  /** Of the link, or its ends, such as `PC1:e0 -- PC2:e0`. */
  readonly name: string
  /** As in `linkTypes`. */
  readonly linkType: number
  /** Classic pcap, in which empty records report losses. */
  readonly pcap: ReadableStream<Uint8Array>
}

/**
 * The frames of links, or of all links; those of two placeholders are not among all. 400 for too many, 404, 409 without any, and errors of
 * `NodeAgent.streamCapture`.
 */
export async function streamLinks(
  lab: Lab,
  ids: readonly string[] | undefined,
  { agentFor, signal }: { agentFor: ComputeAgents; signal: AbortSignal },
): Promise<LinkStream[]> {
  const isKnown = ({ nodes }: LinkRecord) => nodes.some(({ node_id }) => isKnownKind(lab.node(node_id).node_type))
  const links = ids === undefined ? [...lab.document.links.values()].filter(isKnown) : ids.map((id) => lab.link(id))
  if (links.length === 0) throw conflict('The project has no links to capture')
  if (links.length > maxStreamedLinks)
    throw badRequest(`links: ${links.length} links are too many for one capture, name at most ${maxStreamedLinks}`)
  // Those that have begun end when another one cannot.
  const over = new AbortController()
  const isOver = AbortSignal.any([signal, over.signal])
  try {
    return await mapLimit(links, async (link) => {
      const { node, ref, port } = pointOf(lab, link, endOnCompute(lab, link))
      const [type] = linkTypesOf[link.link_type]
      const wanted = { data_link_type: type, losses: true }
      const { pcap } = await agentFor(node.compute_id).nodes.streamCapture(ref, port, wanted, isOver)
      return { name: nameOf(lab, link), linkType: linkTypes[type], pcap }
    })
  } catch (error) {
    over.abort()
    throw error
  }
}

/** The name of a link, or its ends, such as `PC1:e0 -- PC2:e0`. */
function nameOf(lab: Lab, { name, nodes }: LinkRecord): string {
  if (name != null) return name
  const ends = nodes.map((end) => {
    const node = lab.node(end.node_id)
    const port = portsOf(node).find(
      (it) => it.adapter_number === end.adapter_number && it.port_number === end.port_number,
    )
    return `${node.name}:${port?.short_name ?? `${end.adapter_number}/${end.port_number}`}`
  })
  return ends.join(' -- ')
}

/** The first endpoint of a link whose node a compute has; 409 without one. */
function endOnCompute(lab: Lab, link: LinkRecord): 0 | 1 {
  const end = link.nodes.findIndex(({ node_id }) => isKnownKind(lab.node(node_id).node_type)) as 0 | 1 | -1
  if (end === -1) throw conflict('Both nodes of the link are placeholders; a capture needs a node on a compute')
  return end
}

/** The port at which a link is captured; 409 when it is not. */
export function capturePoint(lab: Lab, id: string): CapturePoint {
  const link = lab.link(id)
  if (link.capture === null) throw conflict('The link is not being captured; start a capture first')
  return pointOf(lab, link, link.capture.end)
}

function pointOf(lab: Lab, link: LinkRecord, index: 0 | 1): CapturePoint {
  const end = link.nodes[index] as LinkRecord['nodes'][number]
  const node = lab.node(end.node_id)
  return { node, ref: nodeRefOf(lab, node), port: portRefOf(end) }
}

const save = (lab: Lab, id: string, capture: LinkRecord['capture']): Promise<LabLink> =>
  lab.edit(() => {
    const record = { ...lab.link(id), capture }
    return {
      changes: new Changes().put('link', record.link_id, record),
      news: () => [{ action: 'link.updated', event: lab.linkView(record) }],
      result: lab.linkView(record),
    }
  })

/** `PC1_Ethernet0_to_PC2_Ethernet0.pcap`, with characters that are safe on every file system. */
function defaultName(lab: Lab, link: LinkRecord): string {
  const ends = link.nodes.map(({ node_id, adapter_number, port_number }) => {
    const node = lab.node(node_id)
    const port = portsOf(node).find(
      (known) => known.adapter_number === adapter_number && known.port_number === port_number,
    )
    return `${node.name}_${port?.name ?? `${adapter_number}-${port_number}`}`
      .replaceAll(/[^0-9A-Za-z_-]/g, '-')
      .slice(0, 90)
  })
  return `${ends.join('_to_')}.pcap`
}
