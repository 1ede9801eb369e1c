import { nodeKinds } from '../../model/kinds/node.ts'
import { imageProperties } from '../../model/lab/archive-words.ts'
import { isKnownKind, type LabNodeNotCreated, type LabPort } from '../../model/lab/node.ts'
import type { LinkRecord, NodeRecord } from './document.ts'

/** Why a node is a placeholder. Undefined for other nodes. */
export const placeholderReason = (
  { node_type }: Pick<NodeRecord, 'node_type'>,
  creationError?: string,
): string | undefined =>
  isKnownKind(node_type)
    ? creationError && `Its compute could not create it (the next start tries again): ${creationError}`
    : `A placeholder: this service has no kind ${node_type}, only ${nodeKinds.join(', ')}`

/** What a placeholder lacks; undefined for other nodes. */
export function notCreated({ name, node_type, properties, creationError }: NodeRecord): LabNodeNotCreated | undefined {
  const node = { name, kind: node_type }
  if (!isKnownKind(node_type)) return { ...node, images: [], reason: `there is no kind ${node_type} here` }
  if (creationError === undefined) return undefined
  const paths = imageProperties({ node_type, properties }).map((key) => String(properties[key]))
  return { ...node, images: paths.filter((path) => creationError.includes(path)), reason: creationError }
}

/** The ports of a placeholder: those that its links use. */
export function placeholderPorts(links: readonly LinkRecord[], { node_id }: Pick<NodeRecord, 'node_id'>): LabPort[] {
  return links.flatMap(({ nodes, link_type }) =>
    nodes
      .filter((end) => end.node_id === node_id)
      .map(({ adapter_number, port_number, label }) => {
        const name = label?.text || `${adapter_number}/${port_number}`
        return { name, short_name: name, adapter_number, port_number, link_type, data_link_types: {} }
      }),
  )
}
