import { Type } from '@sinclair/typebox'
import type { FeedSource } from '../../../fleet/events/fleet-feed.ts'
import { loadLab } from '../../../labs/archives/import-lab.ts'
import { freshLinks } from '../../../labs/links/link-states.ts'
import { onAbort } from '../../../lib/async/abort.ts'
import type { LabEvent } from '../../../model/lab/event.ts'
import { LabProject, LabProjectCreate, LabProjectLoad, LabProjectUpdate, LabStats } from '../../../model/lab/project.ts'
import { yesOrNo } from '../../../model/schema/fields.ts'
import { revokeLinks } from '../../../server/auth/class-links.ts'
import { type EventEncoder, openFeed, requireUpgrade } from '../../../server/feeds/feed.ts'
import { created, type Endpoint, endpoint, noContent, ok } from '../../../server/http/endpoint.ts'
import { LabFeedLine } from '../feed-lines.ts'
import { feedQuery } from '../views.ts'
import {
  agentsOf,
  base,
  catalogOf,
  labsOf,
  noSuchProject,
  notTrusted,
  projectParam,
  requireNotHandedOut,
  trustQuery,
} from './lab-request.ts'

const tag = 'v2 projects'
const owner = 'self'
const params = Type.Object(projectParam)
const unknown = 'There is no such project'

export const labProjectEndpoints: readonly Endpoint[] = [
  endpoint({
    method: 'GET',
    path: base,
    owner,
    tag,
    scope: 'own',
    summary: 'List the projects, open and closed',
    replies: { 200: { description: 'The projects, by name', schema: Type.Array(LabProject) } },
    async handle(_, context) {
      const catalog = catalogOf(context)
      return ok(
        (await catalog.list(agentsOf(catalog, context))).filter(({ project_id }) => context.projects.sees(project_id)),
      )
    },
  }),
  endpoint({
    method: 'POST',
    path: base,
    owner,
    tag,
    scope: 'own',
    createsLab: true,
    summary: 'Create a project, and open it',
    body: LabProjectCreate,
    viewSchema: LabProject,
    replies: { 201: { description: 'Created and open', schema: LabProject } },
    errors: {
      409: 'The name or the id is taken',
      413: 'Too many projects, in total or for the token',
      503: 'No compute is connected',
      507: 'The disk is nearly full',
    },
    async handle({ body }, context) {
      const { labs, agentFor } = labsOf(context)
      context.projects.requireNew(body)
      return created(await labs.creation.create(body, agentFor, { scope: context.projects.scope }))
    },
  }),
  endpoint({
    method: 'POST',
    path: `${base}/load`,
    owner,
    tag,
    leavesName: true,
    summary: 'Open a GNS3 project that is on the host of the service',
    description:
      'Its nodes, links, drawings, snapshots and files are imported under its id, unless the service already has the project; ' +
      'its own directory stays unchanged. Outside local mode it must be inside the projects directory.',
    query: Type.Object(trustQuery),
    body: LabProjectLoad,
    replies: { 201: { description: 'Open', schema: LabProject } },
    errors: {
      400: 'The path is not absolute, or the file is not a GNS3 project',
      403: `The path is not allowed outside local mode. ${notTrusted}`,
      404: 'There is no such file',
      409: 'The project is of another version, or exists only on a compute',
      413: 'The project has too many files',
      501: 'This service cannot load projects from a disk',
      507: 'The disk is nearly full',
    },
    async handle({ query, body }, context) {
      const agentFor = agentsOf(catalogOf(context), context)
      return created(await loadLab(context.labs, { path: body.path, isTrusted: query.trust === 'true' }, agentFor))
    },
  }),
  endpoint({
    method: 'GET',
    path: `${base}/{project_id}`,
    owner,
    tag,
    params,
    summary: 'Read a project, open or closed, even if it exists only on computes',
    query: Type.Object({
      links: yesOrNo('Whether the states of its links are read first, for `counts.worst_verdict`'),
    }),
    replies: { 200: { description: 'The project', schema: LabProject } },
    errors: { 404: unknown },
    async handle({ params, query }, context) {
      const { labs, agentFor } = labsOf(context)
      return ok(
        await labs.lists.read(params.project_id, agentFor, async (lab) => {
          if (query.links === 'yes') await freshLinks(lab, agentFor)
        }),
      )
    },
  }),
  endpoint({
    method: 'PUT',
    path: `${base}/{project_id}`,
    owner,
    tag,
    params,
    summary: 'Change a project, open or closed',
    body: LabProjectUpdate,
    viewSchema: LabProject,
    async current({ params }, context) {
      const { labs, agentFor } = labsOf(context)
      return labs.lists.read(params.project_id, agentFor)
    },
    replies: { 200: { description: 'The changed project', schema: LabProject } },
    errors: {
      404: unknown,
      409: 'The name is taken, or the project exists only on computes',
      507: 'The disk is nearly full',
    },
    async handle({ params, body }, context) {
      const { labs, agentFor } = labsOf(context)
      const { name, ttl_deletes } = body
      const id = labs.registry.idOf(params.project_id)
      const head = labs.registry.get(id)
      if (ttl_deletes === true || (name != null && name !== head?.name)) requireNotHandedOut(head, context)
      if (name != null) context.projects.requireName(id, name)
      return ok(await labs.settings.update(params.project_id, body, agentFor))
    },
  }),
  endpoint({
    method: 'DELETE',
    path: `${base}/{project_id}`,
    owner,
    tag,
    params,
    summary: 'Delete a project with its nodes and files on all its computes, even if it exists only there',
    replies: { 204: { description: 'Deleted' } },
    errors: { 404: unknown, 503: 'A compute of the project is not connected' },
    async handle({ params }, context) {
      const { labs, agentFor } = labsOf(context)
      const project_id = labs.registry.idOf(params.project_id)
      const head = labs.registry.get(project_id)
      requireNotHandedOut(head, context)
      await labs.lifecycle.remove(params.project_id, agentFor)
      if (head?.class !== undefined) await revokeLinks(context, [{ ...head.class, project_id }])
      return noContent
    },
  }),
  endpoint({
    ...{ method: 'GET', path: `${base}/{project_id}/stats`, owner, tag, params },
    summary: 'Count the nodes, links, drawings and snapshots of a project',
    replies: { 200: { description: 'The numbers', schema: LabStats } },
    errors: { 404: unknown },
    async handle({ params }, context) {
      const lab = await labsOf(context).labs.find(params.project_id)
      const { sizes, drawings, snapshots } = lab.document
      return ok({ ...sizes, running: lab.running(), drawings: drawings.size, snapshots: snapshots.size })
    },
  }),
  endpoint({
    ...{ method: 'POST', path: `${base}/{project_id}/open`, owner, tag, params },
    summary: 'Open a project, even if it exists only on a compute',
    bodyKind: 'ignored',
    replies: { 201: { description: 'Open', schema: LabProject } },
    errors: { 404: unknown },
    async handle({ params }, context) {
      const { labs, agentFor } = labsOf(context)
      return created(await labs.lifecycle.open(params.project_id, agentFor))
    },
  }),
  endpoint({
    ...{ method: 'POST', path: `${base}/{project_id}/close`, owner, tag, params },
    summary: 'Close a project: stop its nodes, and keep its files',
    bodyKind: 'ignored',
    replies: { 204: { description: 'Closed' } },
    errors: { 404: unknown },
    async handle({ params }, context) {
      const { labs, agentFor } = labsOf(context)
      await labs.lifecycle.close(params.project_id, agentFor)
      return noContent
    },
  }),
  ...['', '/ws'].map((tail) =>
    endpoint({
      ...{ method: 'GET', path: `${base}/{project_id}/notifications${tail}`, owner, tag, params },
      summary: `Feed of the events of a project${tail === '' ? '' : ', as a websocket'}`,
      description:
        'One JSON object a line. After `resync`, `project.opened` and `snapshot.restored`, read the project again. The project may be ' +
        'closed. With "Accept: text/event-stream" as server-sent events.',
      query: feedQuery,
      websocket: true,
      replies:
        tail === '/ws'
          ? {}
          : {
              200: {
                description: 'The feed, one line after the other; it ends when the project is deleted',
                schema: LabFeedLine,
              },
            },
      errors: { 404: noSuchProject, 429: 'The project has too many open feeds' },
      async handle({ params, query, request }, context) {
        if (tail === '/ws') requireUpgrade(request)
        const { labs } = labsOf(context)
        const lab = await labs.find(params.project_id)
        const source: FeedSource<LabEvent> = async (feed) => {
          const items = labs.sync.feed(lab, feed, context.acceptsEvent('link.state'))
          onAbort(feed.signal, labs.uses.begin(lab.id))
          return items
        }
        const encode: EventEncoder<LabEvent> = ({ payload: { action, event } }) => ({ action, event })
        return openFeed({ request, context, source, encode, projectId: lab.id, query })
      },
    }),
  ),
]
