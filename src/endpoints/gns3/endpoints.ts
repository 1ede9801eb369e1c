import { Type } from '@sinclair/typebox'
import { runNodeAction } from '../../labs/nodes/nodes.ts'
import { ignore } from '../../lib/async/ignore.ts'
import { conflict, forbidden } from '../../lib/errors/api-error.ts'
import { runsAlwaysInGns3 } from '../../model/kinds/node.ts'
import { LabNode } from '../../model/lab/node.ts'
import { sendAsset } from '../../server/http/assets.ts'
import { created, type Endpoint, endpoint, noContent, ok } from '../../server/http/endpoint.ts'
import { pathTail } from '../../server/http/params.ts'
import { labsOf, nodeParams } from '../v2/labs/lab-request.ts'
import { runsOnPath } from './names.ts'
import { allStatistics, theirStatistics } from './statistics.ts'

const own = { owner: 'self', tag: 'clients' } as const
const at = (path: string) => ({ ...own, method: 'GET', path }) as const
const anything = { 200: { description: 'The answer', schema: Type.Unknown() } }

/** Endpoints that only clients of GNS3 call. */
const small: readonly Endpoint[] = [
  endpoint({
    ...at('/v2/appliances'),
    summary: 'Descriptions of appliances: none',
    replies: anything,
    handle: () => ok([]),
  }),
  endpoint({
    ...at('/v2/statistics'),
    summary: 'Load of each compute',
    replies: anything,
    handle: async (_, context) => ok(await allStatistics(context)),
  }),
  endpoint({
    ...at('/v2/compute/statistics'),
    summary: 'Load of the host',
    replies: anything,
    handle: async (_, { agent }) => ok(theirStatistics(await agent.host.load())),
  }),
  endpoint({
    ...at('/v2/iou_license'),
    summary: 'The licence of IOU: always empty, as iou.iourc_path sets the licence',
    replies: anything,
    handle: () => ok({ iourc_content: '', license_check: true }),
  }),
  endpoint({
    ...{ ...own, method: 'PUT', path: '/v2/iou_license', bodyKind: 'ignored', replies: {} },
    summary: 'Refused: iou.iourc_path sets the licence of IOU',
    handle() {
      throw conflict('The licence of IOU is set with iou.iourc_path in the configuration of the service')
    },
  }),
  endpoint({
    ...{ ...own, method: 'POST', path: '/v2/shutdown', role: 'admin', bodyKind: 'ignored', replies: {} },
    summary: 'Refused: a client cannot end the service',
    handle() {
      throw forbidden('A client cannot end the service: stop it with the program that started it')
    },
  }),
  endpoint({
    ...{ ...own, method: 'POST', path: '/v2/debug', role: 'admin', bodyKind: 'ignored', replies: {} },
    summary: 'Refused: only a server on the computer of the client writes a file for it',
    handle() {
      throw forbidden(
        'The service writes no files for clients: GET /v2/compute/doctor says what is wrong with its host',
      )
    },
  }),
  endpoint({
    ...{ ...own, method: 'POST', path: '/v2/reload', role: 'admin', bodyKind: 'ignored', replies: {} },
    summary: 'Reload the configuration file',
    handle: async (_, { agent }) => created(await agent.host.reloadConfig()),
  }),
]

const lifecycle: readonly Endpoint[] = [
  endpoint({
    ...{ owner: 'self', tag: 'clients', method: 'POST', path: '/v2/projects/{project_id}/nodes/{node_id}/start' },
    summary: 'Start a node, and what always runs there',
    params: Type.Object(nodeParams),
    bodyKind: 'ignored',
    replies: { 200: { description: 'The node', schema: LabNode } },
    async handle({ params }, context) {
      const { labs, agentFor } = labsOf(context)
      const lab = await labs.lab(params.project_id)
      const node = lab.node(params.node_id)
      const idle = [...lab.document.nodes.values()].filter(
        (it) => it !== node && runsAlwaysInGns3(it.node_type) && lab.reported.get(it.node_id)?.status === 'stopped',
      )
      await Promise.all(
        idle.map((it) =>
          runNodeAction(labs, lab, it, 'start', agentFor).catch(ignore('its status_reason says why it does not run')),
        ),
      )
      return ok(await runNodeAction(labs, lab, node, 'start', agentFor))
    },
  }),
  endpoint({
    owner: 'self',
    tag: 'clients',
    method: 'POST',
    path: runsOnPath('{project_id}', '{kind}', '{node_id}'),
    summary: 'Do nothing: the node runs until its project is closed',
    params: Type.Object({ ...nodeParams, kind: Type.String() }),
    bodyKind: 'ignored',
    replies: { 204: { description: 'It runs' } },
    handle: () => noContent,
  }),
]

const prefix = '/static/web-ui/'

/** The files of the web client; its index page for any other path. */
const webUi: readonly Endpoint[] = [
  endpoint({
    ...at('/'),
    page: true,
    summary: 'Redirect to the web client',
    replies: { 302: { description: 'To the web client' } },
    handle: () => new Response(null, { status: 302, headers: { Location: `${prefix}bundled` } }),
  }),
  endpoint({
    ...at(`${prefix}{path}`),
    page: true,
    summary: 'The web client',
    params: Type.Object({ path: pathTail }),
    replies: { 200: { description: 'A file, or the page', media: 'text/html' } },
    async handle({ params, request }, { assets }) {
      const name = `web-ui/${params.path}`
      const file = (await assets(name)) === undefined ? 'web-ui/index.html' : name
      const response = await sendAsset(assets, file, request)
      // All other files have a digest in their names.
      if (file.endsWith('.html')) response.headers.set('Cache-Control', 'no-cache')
      return response
    },
  }),
]

export const gns3Endpoints = (hasWebUi: boolean): readonly Endpoint[] => [
  ...small,
  ...lifecycle,
  ...(hasWebUi ? webUi : []),
]
