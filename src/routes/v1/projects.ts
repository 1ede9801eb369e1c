import { Type } from '@sinclair/typebox'
import { conflict } from '../../errors/api-error.ts'
import { created, type Endpoint, endpoint, noContent, ok } from '../../http/endpoint.ts'
import { openFeed } from '../../http/feed.ts'
import { noSuchProject, projectParams as params, sinceQuery, unknownProject } from '../../http/params.ts'
import { ProjectStatusFilter } from '../../model/project.ts'
import { fileEndpoints } from '../files.ts'
import { projectEnds } from '../project-ends.ts'
import { eventV1, ProjectV1, ProjectV1Create, ProjectV1Update, projectV1 } from '../shown-v1.ts'
import { udpPortEndpoint } from '../udp-port.ts'

const base = '/v1/projects'
const tag = 'v1 projects'
const wanted = Type.Object({ status: Type.Optional(ProjectStatusFilter) })

export const projectsV1: readonly Endpoint[] = [
  endpoint({
    method: 'GET',
    path: base,
    owner: 'all',
    tag,
    summary: 'List the open projects, or those that are closed',
    query: wanted,
    replies: { 200: { description: 'The projects', schema: Type.Array(ProjectV1) } },
    handle: async ({ query }, { agent }) => ok((await agent.projects.list(query.status)).map(projectV1)),
  }),
  endpoint({
    method: 'POST',
    path: base,
    owner: 'all',
    tag,
    summary: 'Create a project, or open one that is on disk',
    body: ProjectV1Create,
    takesBack: ProjectV1,
    replies: { 201: { description: 'Created', schema: ProjectV1 } },
    errors: { 403: 'The path is not allowed', 409: 'The project is open already', 507: 'The disk is nearly full' },
    async handle({ body }, { agent }) {
      const { temporary, project_id, ...rest } = body
      const input = { ...rest, temporary: temporary ?? false, project_id: project_id?.toLowerCase() ?? null }
      const { project, created: isNew } = await agent.projects.create(input)
      if (!isNew)
        throw conflict(`project_id: project ${project.project_id} is open already`, { word: 'project-exists' })
      return created(projectV1(project))
    },
  }),
  endpoint({
    method: 'GET',
    path: `${base}/{project_id}`,
    tag,
    summary: 'Read a project, open or closed',
    params,
    replies: { 200: { description: 'The project', schema: ProjectV1 } },
    errors: { 404: unknownProject },
    handle: async ({ params }, { agent }) => ok(projectV1(await agent.projects.get(params.project_id))),
  }),
  endpoint({
    method: 'PUT',
    path: `${base}/{project_id}`,
    tag,
    summary: 'Change a project',
    params,
    body: ProjectV1Update,
    takesBack: ProjectV1,
    current: async ({ params }, { agent }) => projectV1(await agent.projects.get(params.project_id)),
    replies: { 200: { description: 'The changed project', schema: ProjectV1 } },
    errors: {
      403: 'The property may not be changed',
      404: noSuchProject,
      409: 'Nodes run in the old directory',
      507: 'The disk is nearly full',
    },
    handle: async ({ params, body }, { agent }) => ok(projectV1(await agent.projects.update(params.project_id, body))),
  }),
  ...projectEnds(base, tag),
  endpoint({
    method: 'POST',
    path: `${base}/{project_id}/commit`,
    tag,
    summary: 'Write a project to disk and remove what deleted instances left behind',
    params,
    bodyKind: 'ignored',
    replies: { 204: { description: 'Written' } },
    errors: { 404: noSuchProject, 409: 'The project is being closed', 507: 'The disk is nearly full' },
    async handle({ params }, { agent }) {
      await agent.projects.commit(params.project_id)
      return noContent
    },
  }),
  endpoint({
    method: 'GET',
    path: `${base}/{project_id}/notifications`,
    tag,
    summary: 'Feed of events, with the names of v1',
    description:
      'One JSON object a line: ping, vm.started, vm.stopped, log.error, log.warning. With "Accept: text/event-stream" as server-sent events.',
    params,
    query: sinceQuery,
    websocket: true,
    replies: { 200: { description: 'The feed; it ends when the project is closed', media: 'application/json' } },
    errors: { 404: noSuchProject, 429: 'The project has too many open feeds' },
    handle: ({ params, query, request }, context) =>
      openFeed({ request, context, encode: eventV1, projectId: params.project_id, query }),
  }),
  ...fileEndpoints(base, tag, { parents: false }),
  udpPortEndpoint(base, tag),
]
