import { Type } from '@sinclair/typebox'
import { endsText, linkState, linksNamed, linkText, stateOf } from '../../client/link-names.ts'
import type { LabLink, LabNode, LabProject } from '../../client/patchbay.ts'
import { impairmentText } from '../../labfile/changed-impairment.ts'
import { isSegmentKind } from '../../labfile/segment-kinds.ts'
import { badRequest } from '../../lib/errors/api-error.ts'
import { named, someNamed } from './answer-text.ts'
import { longestWithinS } from './jobs.ts'
import type { ToolContext } from './tool.ts'

// What several tools take and show.

const word = (description: string) => Type.String({ minLength: 1, maxLength: 255, description })
export const labInput = { lab: word('Name or id of the lab') }
export const nodeInput = { ...labInput, node: word('Name of the node') }
export const linkInput = {
  link: Type.String({
    minLength: 1,
    maxLength: 600,
    description: 'Its name, an end such as R1:eth0, its two nodes R1--R2, or the node of an only link',
  }),
}
export const withinInput = (value: number, most = longestWithinS) =>
  Type.Optional(Type.Number({ minimum: 0, maximum: most, default: value, description: 'Longest wait, s' }))

export const labNamed = (lab: string, { client, signal }: ToolContext): Promise<LabProject> =>
  client.call('GET /v2/projects/{project_id}', { params: { project_id: lab }, signal })

/** A lab with its nodes, segments among them, and its links. */
export interface WholeLab {
  readonly lab: LabProject
  readonly nodes: readonly LabNode[]
  readonly links: readonly LabLink[]
}

export async function wholeLab(word: string, context: ToolContext): Promise<WholeLab> {
  const { client, signal } = context
  const lab = await labNamed(word, context)
  const params = { project_id: lab.project_id }
  const { nodes, segments, links } = await client.call('GET /v2/projects/{project_id}/topology', { params, signal })
  return { lab, nodes: [...nodes, ...segments], links }
}

/** The node of that name. 400 with the names that there are. */
export function nodeNamed(word: string, { nodes }: Pick<WholeLab, 'nodes'>): LabNode {
  const wanted = word.toLowerCase()
  const found = nodes.find(({ name, node_id }) => name.toLowerCase() === wanted || node_id === wanted)
  if (found !== undefined) return found
  throw badRequest(
    `node: there is no node ${named(word)}; the lab has ${someNamed(nodes.map(({ name }) => name).toSorted(), 20)}`,
  )
}

/** The link of that name. 400 when there is none, or there are several. */
export function linkNamed(word: string, { nodes, links }: Pick<WholeLab, 'nodes' | 'links'>): LabLink {
  const exact = linksNamed(word, links, nodes)
  const found = exact.length > 0 ? exact : linksOfNode(word, { nodes, links })
  const [one] = found
  if (one !== undefined && found.length === 1) return one
  const list = (found.length > 0 ? found : links).map((it) => linkText(it, nodes))
  const what = found.length > 0 ? `names ${found.length} links` : 'is no link of the lab, which has'
  throw badRequest(`link: ${named(word)} ${what}: ${someNamed(list, 20)}`)
}

/** The links of the node of that name. */
function linksOfNode(word: string, { nodes, links }: Pick<WholeLab, 'nodes' | 'links'>): LabLink[] {
  const node = nodes.find(({ name }) => name.toLowerCase() === word.toLowerCase())
  return links.filter((it) => it.nodes.some(({ node_id }) => node_id === node?.node_id))
}

export const nodeRow = (node: LabNode) => ({
  name: node.name,
  kind: node.node_type,
  state: stateOf(node),
  ...(node.status_reason && { reason: node.status_reason }),
  ...(node.console !== null && { console: `${node.console_type} ${node.console}` }),
})

export const linkRow = (link: LabLink, nodes: readonly LabNode[]) => ({
  ...(link.name != null && { name: link.name }),
  ends: endsText(link, nodes),
  verdict: linkState(link),
  ...(link.verdict_reason && { reason: link.verdict_reason }),
  impairment: impairmentText(link),
  ...(link.capturing && { capturing: true }),
  ...(link.traffic_ab !== null && { frames_there: link.traffic_ab.frames }),
  ...(link.traffic_ba !== null && { frames_back: link.traffic_ba.frames }),
})

/** How a lab is, in a sentence. */
export function labVerdict({ lab, nodes, links }: WholeLab): string {
  if (lab.status !== 'opened') return `The lab ${named(lab.name)} is closed: "start" opens it and starts its nodes`
  const real = nodes.filter(({ node_type }) => !isSegmentKind(node_type))
  const running = real.filter(({ status }) => status === 'started')
  const passing = links.filter(({ suspend, verdict }) => !suspend && verdict === 'ok')
  const others = links.filter((it) => !passing.includes(it)).map((it) => endsText(it, nodes))
  const why = others.length === 0 ? '' : `; not ${someNamed(others, 5)}`
  return `${running.length} of ${real.length} nodes run; ${passing.length} of ${links.length} links pass frames${why}`
}
