import { Type } from '@sinclair/typebox'
import { nodePath } from '../../../compute/remote/nodes.ts'
import { nodeRefOf } from '../../../labs/lab/node-on-compute.ts'
import { ignore } from '../../../lib/async/ignore.ts'
import { mapLimit } from '../../../lib/async/map-limit.ts'
import { conflict } from '../../../lib/errors/api-error.ts'
import { kindOf, nodeKinds } from '../../../model/kinds/node.ts'
import { objectSchema, Uuid } from '../../../model/schema/fields.ts'
import type { FilterName } from '../../../model/schema/filters.ts'
import { type Endpoint, endpoint, noContent, ok } from '../../../server/http/endpoint.ts'
import { base, labsOf, nodeParams, projectParam } from './lab-request.ts'
import { relayTo } from './relays.ts'

const owner = 'self'
const params = Type.Object(nodeParams)
const node = `${base}/{project_id}/nodes/{node_id}`
const noSuchNode = 'There is no such project or node, or the project is closed'

/** Actions of kinds on nodes of labs: the compute of the node runs them. */
const ofKinds = nodeKinds
  .map(kindOf)
  .flatMap((kind) => Object.values(kind.actions ?? {}).map((action) => ({ kind, ...action })))
  .flatMap(({ labPath, ...action }) => (labPath === undefined ? [] : [{ labPath, ...action }]))
  .map(({ kind, method, labPath, summary, path: there, answer, output }) =>
    endpoint({
      method,
      path: `${node}/${labPath}`,
      owner,
      tag: 'v2 nodes',
      params,
      role: 'operate',
      summary,
      ...(method === 'POST' && { bodyKind: 'raw' as const }),
      replies: {
        [method === 'POST' ? 201 : 200]: {
          description: answer.description,
          ...(output !== undefined && { schema: output }),
        },
      },
      errors: { 404: noSuchNode, 409: `The node is not a ${kind.noun}, or its compute refuses; the message says why` },
      async handle({ params, request }, context) {
        const lab = await labsOf(context).labs.lab(params.project_id)
        const record = lab.node(params.node_id)
        if (record.node_type !== kind.name)
          throw conflict(`node_id: ${record.name} is a ${record.node_type} node, expected a ${kind.noun}`)
        return relayTo(record.compute_id, `${nodePath(nodeRefOf(lab, record))}/${there}`, { request, context })
      },
    }),
  )

const Parameter = Type.Object({
  name: Type.String(),
  type: Type.Union([Type.Literal('int'), Type.Literal('text')]),
  minimum: Type.Optional(Type.Integer()),
  maximum: Type.Optional(Type.Integer()),
  unit: Type.Optional(Type.String()),
})
const LabFilter = objectSchema('LabFilter', 'A filter of links, for a form', {
  type: Type.String({ description: 'Its name in `filters`' }),
  name: Type.String(),
  description: Type.String(),
  parameters: Type.Array(Parameter, { description: 'The values of its list in `filters`, in this order' }),
})

const whole = (name: string, unit: string, minimum: number, maximum: number) =>
  ({ ...{ name, type: 'int', minimum, maximum, unit } }) as const
const chance = whole('Chance', '%', 0, 100)
const ms = (name: string) => whole(name, 'ms', 0, 32767)
/** Title, description and parameters of each filter. */
const filters: Readonly<Record<FilterName, readonly [string, string, readonly object[]]>> = {
  frequency_drop: [
    'Frequency drop',
    'Drops every n-th frame; -1: all of them',
    [whole('Frequency', 'th packet', -1, 32767)],
  ],
  packet_loss: ['Packet loss', 'Drops frames at random', [chance]],
  delay: ['Delay', 'Delays frames', [ms('Latency'), ms('Jitter (-/+)')]],
  corrupt: ['Corrupt', 'Changes bytes of frames at random', [chance]],
  bpf: [
    'Berkeley Packet Filter (BPF)',
    'Drops frames that match an expression of tcpdump, one per line',
    [{ name: 'Filters', type: 'text' }],
  ],
  rate: [
    'Rate',
    'Limits the bit rate',
    [
      whole('Rate', 'kbit/s', 0, 100_000_000),
      whole('Burst', 'KB', 0, 100_000_000),
      whole('Longest wait', 'ms', 0, 100_000_000),
    ],
  ],
  duplicate: ['Duplicate', 'Sends frames twice at random', [chance]],
  reorder: ['Reorder', 'Holds frames back at random, so that later frames overtake them', [chance, ms('Held back')]],
}

export const labKindActionEndpoints: readonly Endpoint[] = [
  ...ofKinds,
  endpoint({
    ...{ method: 'POST', path: `${base}/{project_id}/nodes/console/reset`, owner, tag: 'v2 nodes' },
    summary: 'Disconnect all console clients of a project; nodes that are not running are skipped',
    params: Type.Object(projectParam),
    bodyKind: 'ignored',
    replies: { 204: { description: 'Done' } },
    errors: { 404: 'There is no such project, or it is closed' },
    async handle({ params }, context) {
      const { labs, agentFor } = labsOf(context)
      const lab = await labs.lab(params.project_id)
      const running = [...lab.document.nodes.values()].filter(
        ({ node_id }) => lab.reported.get(node_id)?.status === 'started',
      )
      await mapLimit(running, (record) =>
        agentFor(record.compute_id)
          .nodes.resetConsole(nodeRefOf(lab, record))
          .catch(ignore('the node has stopped meanwhile, or has no console')),
      )
      return noContent
    },
  }),
  endpoint({
    ...{ method: 'GET', path: `${base}/{project_id}/links/{link_id}/available_filters`, owner, tag: 'v2 links' },
    summary: 'List the filters that a link can have',
    params: Type.Object({ ...projectParam, link_id: Uuid }),
    replies: { 200: { description: 'The filters', schema: Type.Array(LabFilter) } },
    errors: { 404: 'There is no such project or link, or the project is closed' },
    async handle({ params }, context) {
      const lab = await labsOf(context).labs.lab(params.project_id)
      lab.link(params.link_id)
      return ok(
        Object.entries(filters).map(([type, [name, description, parameters]]) => ({
          type,
          name,
          description,
          parameters,
        })),
      )
    },
  }),
]
