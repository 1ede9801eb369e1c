import { Type } from '@sinclair/typebox'
import { created, type Endpoint, endpoint, ok } from '../../http/endpoint.ts'
import { openFeed, requireUpgrade } from '../../http/feed.ts'
import { noSuchProject, projectParams as params, unknownProject, view } from '../../http/params.ts'
import { ProjectStatusFilter } from '../../model/project.ts'
import { fileEndpoints } from '../files.ts'
import { projectEnds } from '../project-ends.ts'
import { encoderOf, feedQuery, ProjectV2, ProjectV2Create, ProjectV2Update, projectV2 } from '../shown-v2.ts'
import { releaseUdpPort, udpPortEndpoint } from '../udp-port.ts'

const base = '/v2/compute/projects'
const tag = 'v2 compute projects'
const seen = Type.Object(view)
const feedDescription =
  'One JSON object a line, with the seq of the event; first a ping. With "Accept: text/event-stream" as server-sent events.'

export const projectsV2: readonly Endpoint[] = [
  endpoint({
    method: 'GET',
    path: base,
    owner: 'all',
    tag,
    summary: 'List the open projects, or those that are closed',
    query: Type.Object({ ...view, status: Type.Optional(ProjectStatusFilter) }),
    replies: { 200: { description: 'The projects', schema: Type.Array(ProjectV2) } },
    handle: async ({ query }, { agent }) =>
      ok((await agent.projects.list(query.status)).map((project) => projectV2(project, query.view))),
  }),
  endpoint({
    method: 'POST',
    path: base,
    owner: 'all',
    tag,
    summary: 'Create a project, or open one that is on disk; an open one is given back as it is',
    query: seen,
    body: ProjectV2Create,
    takesBack: ProjectV2,
    replies: {
      200: { description: 'With view=full: it was open already', schema: ProjectV2 },
      201: { description: 'Open', schema: ProjectV2 },
    },
    errors: { 403: 'The path is not allowed', 409: 'The project is being closed', 507: 'The disk is nearly full' },
    async handle({ body, query }, { agent }) {
      const { name, path = null, variables = null, compute_id = null } = body
      const project_id = body.project_id?.toLowerCase() ?? null
      const temporary = body.temporary ?? false
      const input = { name, path, variables, project_id, temporary, compute_id }
      const { project, created: isNew } = await agent.projects.create(input)
      const answer = query.view === 'full' && !isNew ? ok : created
      return answer(projectV2(project, query.view))
    },
  }),
  endpoint({
    method: 'GET',
    path: `${base}/{project_id}`,
    tag,
    summary: 'Read a project, open or closed',
    params,
    query: seen,
    replies: { 200: { description: 'The project', schema: ProjectV2 } },
    errors: { 404: unknownProject },
    handle: async ({ params, query }, { agent }) =>
      ok(projectV2(await agent.projects.get(params.project_id), query.view)),
  }),
  endpoint({
    method: 'PUT',
    path: `${base}/{project_id}`,
    tag,
    summary: 'Change a project',
    params,
    query: seen,
    body: ProjectV2Update,
    takesBack: ProjectV2,
    current: async ({ params }, { agent }) => agent.projects.get(params.project_id),
    replies: { 200: { description: 'The changed project', schema: ProjectV2 } },
    errors: {
      403: 'The property may not be changed',
      404: noSuchProject,
      409: 'The project is being closed, or nodes run in the old directory',
      507: 'The disk is nearly full',
    },
    async handle({ params, query, body }, { agent }) {
      const { name = null, path = null, temporary = null, variables = null } = body
      const project = await agent.projects.update(params.project_id, { name, path, temporary, variables })
      return ok(projectV2(project, query.view))
    },
  }),
  ...projectEnds(base, tag),
  feed(`${base}/{project_id}/notifications`, 'Feed of the events of a project'),
  feed(`${base}/{project_id}/notifications/ws`, 'Feed of the events of a project as a websocket', true),
  ...fileEndpoints(base, tag, { parents: true }),
  udpPortEndpoint(base, tag),
  releaseUdpPort(base, tag),
]

function feed(path: string, summary: string, onlyWebsocket = false): Endpoint {
  return endpoint({
    method: 'GET',
    path,
    tag,
    summary,
    description: feedDescription,
    params,
    query: feedQuery,
    websocket: true,
    replies: onlyWebsocket
      ? {}
      : { 200: { description: 'The feed; it ends when the project is closed', media: 'application/json' } },
    errors: { 404: noSuchProject, 429: 'The project has too many open feeds' },
    handle({ params, query, request }, context) {
      if (onlyWebsocket) requireUpgrade(request)
      return openFeed({ request, context, encode: encoderOf(query), projectId: params.project_id, query })
    },
  })
}
