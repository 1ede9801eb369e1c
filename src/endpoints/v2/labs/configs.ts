import { Type } from '@sinclair/typebox'
import { readConfig, writeConfig } from '../../../labs/nodes/configs.ts'
import { readText } from '../../../lib/http/body.ts'
import { type Endpoint, endpoint } from '../../../server/http/endpoint.ts'
import { base, labsOf, nodeParams } from './lab-request.ts'

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

export const labConfigEndpoints: readonly Endpoint[] = [
  endpoint({
    method: 'GET',
    path: config,
    owner,
    tag: 'v2 nodes',
    params,
    query,
    summary:
      'Read the configuration of a node: the startup script of a pc, the startup or private configuration of a router',
    replies: { 200: { description: 'The text; its digest is the ETag', media: 'text/plain' } },
    errors: { 404: noSuchConfig },
    async handle({ params, query, request }, context) {
      const { labs, agentFor } = labsOf(context)
      const { text, etag } = await readConfig(await labs.lab(params.project_id), params.node_id, query.name, agentFor)
      const headers = { ETag: etag, 'Cache-Control': 'no-cache', 'X-Content-Type-Options': 'nosniff' }
      const known = request.headers.get('if-none-match')?.split(',') ?? []
      if (known.some((tag) => tag.trim().replace(/^W\//, '') === etag))
        return new Response(null, { status: 304, headers })
      return new Response(text, { headers: { ...headers, 'Content-Type': 'text/plain; charset=utf-8' } })
    },
  }),
  endpoint({
    method: 'PUT',
    path: config,
    owner,
    tag: 'v2 nodes',
    params,
    query,
    summary: 'Replace the configuration of a node; with If-Match only if it still has that ETag',
    bodyKind: 'raw',
    replies: { 204: { description: 'Replaced; the new digest is the ETag' } },
    errors: {
      404: noSuchConfig,
      409: 'The change is not possible in the current state',
      412: 'The configuration has changed in the meantime',
      413: 'The configuration is larger than 1 MiB',
      507: 'The disk is nearly full',
    },
    async handle({ params, query: { name }, request }, context) {
      const { labs, agentFor } = labsOf(context)
      const lab = await labs.lab(params.project_id)
      const text = await readText(request, maxConfigBytes)
      const ifMatch = request.headers.get('if-match')
      const { etag } = await writeConfig(lab, params.node_id, { name, text, ifMatch, agentFor })
      return new Response(null, { status: 204, headers: { ETag: etag } })
    },
  }),
]
