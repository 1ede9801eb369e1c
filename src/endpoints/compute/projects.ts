import { type Static, type TObject, Type } from '@sinclair/typebox'
import { conflict } from '../../lib/errors/api-error.ts'
import type { ApiVersion } from '../../model/kinds/kind.ts'
import {
  ConsoleClients,
  type Project,
  type ProjectCreate,
  ProjectStatusFilter,
  type ProjectUpdate,
  UdpPort,
} from '../../model/project.ts'
import { openFeed, requireUpgrade } from '../../server/feeds/feed.ts'
import { created, type Endpoint, endpoint, ok } from '../../server/http/endpoint.ts'
import {
  noSuchProject,
  projectParams as params,
  sinceQuery,
  udpPortParam,
  unknownProject,
  view,
} from '../../server/http/params.ts'
import { eventV1, ProjectV1, ProjectV1Create, ProjectV1Update, projectV1 } from '../v1/views.ts'
import { encoderOf, feedQuery, ProjectV2, ProjectV2Create, ProjectV2Update, projectV2 } from '../v2/views.ts'
import { fileEndpoints } from './files.ts'
import { noContentAfter } from './no-content.ts'

/** Projects in one version of the API: paths and schemas. */
interface ProjectForm {
  readonly base: string
  readonly tag: string
  readonly query: Partial<typeof view>
  readonly schemas: Readonly<Record<'project' | 'create' | 'update', TObject>>
  toView(project: Project, view?: 'full'): object
}

const forms: Readonly<Record<ApiVersion, ProjectForm>> = {
  v1: {
    ...{ base: '/v1/projects', tag: 'v1 projects', query: {}, toView: projectV1 },
    schemas: { project: ProjectV1, create: ProjectV1Create, update: ProjectV1Update },
  },
  v2: {
    ...{ base: '/v2/compute/projects', tag: 'v2 compute projects', query: view, toView: projectV2 },
    schemas: { project: ProjectV2, create: ProjectV2Create, update: ProjectV2Update },
  },
}

const isClosing = 'The project is being closed'
const noSpace = { 507: 'The disk is nearly full' }

/** Projects, and the files, events and ports of each, in both versions of the API. */
export const projectEndpoints: readonly Endpoint[] = (['v1', 'v2'] as const).flatMap((version) => {
  const { base, tag, query, schemas, toView: shown } = forms[version]
  const isV1 = version === 'v1'
  const one = { path: `${base}/{project_id}`, tag, params }
  const seen = Type.Object(query)
  const commit = endpoint({
    ...one,
    method: 'POST',
    path: `${one.path}/commit`,
    summary: 'Write a project to disk, and remove the files of deleted instances',
    bodyKind: 'ignored',
    replies: { 204: { description: 'Written' } },
    errors: { 404: noSuchProject, 409: isClosing, ...noSpace },
    handle: ({ params }, { agent }) => noContentAfter(agent.projects.commit(params.project_id)),
  })
  const consoleClients = endpoint({
    ...one,
    method: 'GET',
    path: `${one.path}/console_clients`,
    summary: 'Count the console clients of a project',
    replies: { 200: { description: 'The number', schema: ConsoleClients } },
    errors: { 404: noSuchProject },
    handle: async ({ params }, { agent }) => ok({ telnet_clients: await agent.nodes.telnetClients(params.project_id) }),
  })
  const releaseUdpPort = endpoint({
    method: 'DELETE',
    path: `${one.path}/ports/udp/{udp_port}`,
    tag,
    summary: 'Release a reserved UDP port that no NIO uses',
    params: Type.Object({ ...params.properties, ...udpPortParam }),
    replies: { 204: { description: 'Released' } },
    errors: { 404: `${noSuchProject}, or the port is not reserved for it` },
    handle: ({ params }, { agent }) =>
      noContentAfter(agent.projects.releaseUdpPort(params.project_id, Number(params.udp_port))),
  })
  return [
    endpoint({
      method: 'GET',
      path: base,
      owner: 'all',
      scope: 'own',
      tag,
      summary: 'List the open projects, or the closed ones',
      query: Type.Object({ ...query, status: Type.Optional(ProjectStatusFilter) }),
      replies: { 200: { description: 'The projects', schema: Type.Array(schemas.project) } },
      async handle({ query }, { agent, projects }) {
        const all = (await agent.projects.list(query.status)).filter(({ project_id }) => projects.sees(project_id))
        return ok(all.map((project) => shown(project, query.view)))
      },
    }),
    endpoint({
      method: 'POST',
      path: base,
      owner: 'all',
      scope: 'own',
      tag,
      summary: `Create a project, or open one that is on disk${isV1 ? '' : '; an open one is returned unchanged'}`,
      query: seen,
      body: schemas.create,
      viewSchema: schemas.project,
      replies: {
        ...(!isV1 && { 200: { description: 'With view=full: the project was already open', schema: schemas.project } }),
        201: { description: isV1 ? 'Created' : 'Open', schema: schemas.project },
      },
      errors: { 403: 'The path is not allowed', 409: isV1 ? 'The project is already open' : isClosing, ...noSpace },
      async handle({ body, query }, { agent, projects }) {
        const {
          name = null,
          path = null,
          variables = null,
          compute_id = null,
          project_id,
          temporary,
        } = body as ProjectCreate
        // Names of projects on computes are not unique: only the id decides whether the token is for the project.
        projects.requireNew({ project_id: project_id ?? null, path })
        const { project, created: isNew } = await agent.projects.create({
          name,
          path,
          variables,
          compute_id,
          project_id: project_id?.toLowerCase() ?? null,
          temporary: temporary ?? false,
        })
        if (isV1 && !isNew) {
          throw conflict(`project_id: project ${project.project_id} is open already`, { code: 'project-exists' })
        }
        return (query.view === 'full' && !isNew ? ok : created)(shown(project, query.view))
      },
    }),
    endpoint({
      ...one,
      method: 'GET',
      summary: 'Read a project, open or closed',
      query: seen,
      replies: { 200: { description: 'The project', schema: schemas.project } },
      errors: { 404: unknownProject },
      handle: async ({ params, query }, { agent }) =>
        ok(shown(await agent.projects.get(params.project_id), query.view)),
    }),
    endpoint({
      ...one,
      method: 'PUT',
      summary: 'Change a project',
      query: seen,
      body: schemas.update,
      viewSchema: schemas.project,
      current: async ({ params }, { agent }) => shown(await agent.projects.get(params.project_id), 'full'),
      replies: { 200: { description: 'The changed project', schema: schemas.project } },
      errors: {
        403: 'The property may not be changed',
        404: noSuchProject,
        409: isV1 ? 'Nodes are running in the old directory' : `${isClosing}, or nodes run in the old directory`,
        ...noSpace,
      },
      async handle({ params, query, body }, { agent }) {
        const { name = null, path = null, temporary = null, variables = null } = body as ProjectUpdate
        const project = await agent.projects.update(params.project_id, { name, path, temporary, variables })
        return ok(shown(project, query.view))
      },
    }),
    endpoint({
      ...one,
      method: 'DELETE',
      endsProject: true,
      isUncounted: true,
      summary: 'Delete a project from disk',
      replies: { 204: { description: 'Deleted' } },
      errors: { 404: noSuchProject, 409: isClosing },
      handle: ({ params }, { agent }) => noContentAfter(agent.projects.remove(params.project_id)),
    }),
    endpoint({
      ...one,
      method: 'POST',
      path: `${one.path}/close`,
      endsProject: true,
      isUncounted: true,
      summary: 'Close a project: stop its nodes, release their ports; a temporary one is deleted',
      bodyKind: 'ignored',
      replies: { 204: { description: 'Closed' } },
      errors: { 404: noSuchProject, 409: isClosing },
      handle: ({ params }, { agent }) => noContentAfter(agent.projects.close(params.project_id)),
    }),
    ...(isV1 ? [commit] : []),
    ...(isV1 ? ([''] as const) : (['', '/ws'] as const)).map((end) => feed(forms[version], isV1, end)),
    ...fileEndpoints(base, tag, { parents: !isV1 }),
    endpoint({
      ...one,
      method: 'POST',
      path: `${one.path}/ports/udp`,
      summary: 'Reserve a UDP port for a link of the project',
      description: 'Until the NIO that uses it as lport is deleted, or the project is closed.',
      bodyKind: 'ignored',
      replies: { 201: { description: 'Reserved', schema: UdpPort } },
      errors: { 404: noSuchProject, 409: 'No port is left' },
      handle: async ({ params }, { agent }) =>
        created({ udp_port: await agent.projects.reserveUdpPort(params.project_id) }),
    }),
    ...(isV1 ? [] : [releaseUdpPort, consoleClients]),
  ]
})

function feed({ base, tag }: ProjectForm, isV1: boolean, end: '' | '/ws'): Endpoint {
  return endpoint({
    method: 'GET',
    path: `${base}/{project_id}/notifications${end}`,
    tag,
    summary: isV1
      ? 'Feed of events, with the names of v1'
      : `Feed of the events of a project${end && ' as a websocket'}`,
    description: isV1
      ? 'One JSON object a line: ping, vm.started, vm.stopped, log.error, log.warning. With "Accept: text/event-stream" as server-sent events.'
      : 'One JSON object a line, with the seq of the event; first a ping. With "Accept: text/event-stream" as server-sent events.',
    params,
    query: isV1 ? sinceQuery : feedQuery,
    websocket: true,
    replies: end
      ? {}
      : { 200: { description: 'The feed; it ends when the project is closed', media: 'application/json' } },
    errors: { 404: noSuchProject, 429: 'The project has too many open feeds' },
    handle({ params, query, request }, context) {
      if (end) requireUpgrade(request)
      const encode = isV1 ? eventV1 : encoderOf(query as Static<typeof feedQuery>)
      return openFeed({ request, context, source: context.feeds, encode, projectId: params.project_id, query })
    },
  })
}
