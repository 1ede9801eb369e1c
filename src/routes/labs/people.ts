import { Type } from '@sinclair/typebox'
import { readConfig, writeConfig } from '../../controller/configs.ts'
import { showPresence } from '../../controller/presence.ts'
import { notFound } from '../../errors/api-error.ts'
import { readText } from '../../http/body.ts'
import { type Endpoint, endpoint, ok } from '../../http/endpoint.ts'
import { LabPresence, LabPresenceInput } from '../../model/lab/presence.ts'
import { base, labsOf, nodeParams, noSuchProject, projectParam } from './lab-request.ts'

const owner = 'self'
const config = `${base}/{project_id}/nodes/{node_id}/config`
const params = Type.Object(nodeParams)
const query = Type.Object({
  name: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 50,
      description: 'Name of the configuration: `startup`, the default, or `private`',
    }),
  ),
})
const maxConfigBytes = 1 << 20
const noSuchConfig = 'There is no such project or node, the project is closed, or the kind has no such configuration'
const percent = Type.Number({ description: 'Percent' })

export const labPeopleEndpoints: readonly Endpoint[] = [
  endpoint({
    ...{ method: 'POST', path: `${base}/{project_id}/presence`, owner, tag: 'v2 projects', role: 'read' },
    summary: 'Show your selection to the others at a project for 15 s, by the event `presence` of its feed',
    params: Type.Object(projectParam),
    body: LabPresenceInput,
    replies: { 200: { description: 'The selections of all clients at the project', schema: Type.Array(LabPresence) } },
    errors: { 404: noSuchProject, 429: '64 other clients are at the project already' },
    async handle({ params, body: { selection, client } }, context) {
      const lab = await labsOf(context).labs.lab(params.project_id)
      return ok(showPresence(lab, context.identity, { selection, client: client ?? undefined }))
    },
  }),
  endpoint({
    ...{ method: 'GET', path: config, owner, tag: 'v2 nodes', params, query },
    summary:
      'Read the configuration of a node: the startup script of a pc, the startup or private configuration of a router',
    replies: { 200: { description: 'The text; its digest is the ETag', media: 'text/plain' } },
    errors: { 404: noSuchConfig },
    async handle({ params, query, request }, context) {
      const { labs, ask } = labsOf(context)
      const { text, etag } = await readConfig(await labs.lab(params.project_id), params.node_id, query.name, ask)
      const headers = { ETag: etag, 'Cache-Control': 'no-cache' }
      const known = request.headers.get('if-none-match')?.split(',') ?? []
      if (known.some((tag) => tag.trim().replace(/^W\//, '') === etag))
        return new Response(null, { status: 304, headers })
      return new Response(text, { headers: { ...headers, 'Content-Type': 'text/plain; charset=utf-8' } })
    },
  }),
  endpoint({
    ...{ method: 'PUT', path: config, owner, tag: 'v2 nodes', params, query },
    summary: 'Replace the configuration of a node; with If-Match only while it has that ETag',
    bodyKind: 'raw',
    replies: { 204: { description: 'Replaced; the new digest is the ETag' } },
    errors: {
      404: noSuchConfig,
      409: 'The change is not possible now',
      412: 'The configuration was changed meanwhile',
      413: 'The configuration is larger than 1 MiB',
      507: 'The disk is nearly full',
    },
    async handle({ params, query: { name }, request }, context) {
      const { labs, ask } = labsOf(context)
      const lab = await labs.lab(params.project_id)
      const text = await readText(request, maxConfigBytes)
      const ifMatch = request.headers.get('if-match')
      const { etag } = await writeConfig(lab, params.node_id, { name, text, ifMatch, ask })
      return new Response(null, { status: 204, headers: { ETag: etag } })
    },
  }),
  endpoint({
    ...{ method: 'GET', path: '/v2/statistics', owner, tag: 'v2 computes', scope: 'shared' },
    summary: 'The load of each connected compute',
    replies: {
      200: {
        description: 'The computes, `local` first',
        schema: Type.Array(
          Type.Object(
            {
              compute_id: Type.String(),
              compute_name: Type.String(),
              statistics: Type.Object({ cpu_usage_percent: percent, memory_usage_percent: percent }),
            },
            { $id: 'ComputeStatistics', description: 'The load of a compute' },
          ),
        ),
      },
    },
    errors: { 404: 'This service has no fleet' },
    async handle(_, { fleet }) {
      if (fleet === undefined) throw notFound('This service is a compute only, and has no fleet')
      const there = (await fleet.list()).filter(({ connected }) => connected)
      return ok(
        there.map(({ compute_id, name: compute_name, cpu_usage_percent, memory_usage_percent }) => ({
          ...{ compute_id, compute_name },
          statistics: { cpu_usage_percent: cpu_usage_percent ?? 0, memory_usage_percent: memory_usage_percent ?? 0 },
        })),
      )
    },
  }),
]
