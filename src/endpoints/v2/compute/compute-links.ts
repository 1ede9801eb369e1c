import { Type } from '@sinclair/typebox'
import {
  DirectLink,
  DirectLinkChanges,
  DirectLinkJoined,
  DirectLinkPut,
  DirectLinksJoin,
} from '../../../model/direct-link.ts'
import { Uuid } from '../../../model/schema/fields.ts'
import { created, type Endpoint, endpoint, ok } from '../../../server/http/endpoint.ts'
import { noSuchProject, projectParams } from '../../../server/http/params.ts'
import { noContentAfter } from '../../compute/no-content.ts'

const path = '/v2/compute/projects/{project_id}/links'
const tag = 'v2 compute links'
const params = Type.Object({ ...projectParams.properties, link_id: Uuid })
const noSuchLink = 'There is no such project or link'
const misfit = 'The lines of the ports do not fit, or a node cannot be changed now'

/** Links between ports of one compute, which take no UDP ports. */
export const computeLinkEndpoints: readonly Endpoint[] = [
  endpoint({
    method: 'GET',
    path,
    tag,
    summary: 'List the direct links of a project with their states',
    params: projectParams,
    replies: { 200: { description: 'The links', schema: Type.Array(DirectLink) } },
    errors: { 404: noSuchProject },
    handle: async ({ params }, { agent }) => ok(await agent.links.states(params.project_id)),
  }),
  endpoint({
    method: 'GET',
    path: '/v2/compute/projects/{project_id}/link_states',
    tag,
    summary: 'List the states of direct links that changed since an earlier request',
    params: projectParams,
    query: Type.Object({
      since: Type.Optional(
        Type.String({ maxLength: 100, description: '`next` of an earlier answer; absent or unknown: all states' }),
      ),
    }),
    replies: { 200: { description: 'The states that changed', schema: DirectLinkChanges } },
    errors: { 404: noSuchProject },
    handle: async ({ params, query }, { agent }) => ok(await agent.links.changes(params.project_id, query.since)),
  }),
  endpoint({
    method: 'POST',
    path,
    tag,
    summary: 'Join many pairs of ports at once; existing links are changed',
    params: projectParams,
    body: DirectLinksJoin,
    replies: {
      201: {
        description: 'The result for each link, in the order of the request',
        schema: Type.Array(DirectLinkJoined),
      },
    },
    errors: { 404: noSuchProject },
    handle: async ({ params, body }, { agent }) =>
      created(
        await agent.links.joinAll(
          params.project_id,
          body.links.map((link) => ({ ...link, link_id: link.link_id.toLowerCase() })),
        ),
      ),
  }),
  endpoint({
    method: 'GET',
    path: `${path}/{link_id}`,
    tag,
    summary: 'Read a direct link with its verdict, counters and rates',
    params,
    replies: { 200: { description: 'The link', schema: DirectLink } },
    errors: { 404: noSuchLink },
    handle: async ({ params }, { agent }) => ok(await agent.links.state(params.project_id, params.link_id)),
  }),
  endpoint({
    method: 'PUT',
    path: `${path}/{link_id}`,
    tag,
    summary: 'Join two ports directly, or change the link; without `nodes` it is changed in place',
    description:
      'The ports show the link as a read-only NIO of the type nio_link. What was attached to them is replaced. A NIO that is ' +
      'attached to one of them takes over the port: the link is then detached.',
    params,
    body: DirectLinkPut,
    viewSchema: DirectLink,
    replies: { 201: { description: 'The link', schema: DirectLink } },
    errors: { 404: 'There is no such project, node or port, or (without `nodes`) no such link', 409: misfit },
    handle: async ({ params: { project_id, link_id }, body: { nodes, ...settings } }, { agent: { links } }) =>
      created(
        await (nodes === undefined
          ? links.update(project_id, link_id, settings)
          : links.join(project_id, link_id, nodes, settings)),
      ),
  }),
  endpoint({
    method: 'DELETE',
    path: `${path}/{link_id}`,
    tag,
    summary: 'Separate two ports that are joined directly',
    params,
    replies: { 204: { description: 'Separated' } },
    errors: { 404: noSuchLink },
    handle: ({ params: { project_id, link_id } }, { agent }) => noContentAfter(agent.links.remove(project_id, link_id)),
  }),
]
