import { Type } from '@sinclair/typebox'
import { nodePath, portPath } from '../../../compute/remote/nodes.ts'
import { forward } from '../../../fleet/forward/forward.ts'
import type { NodeRecord } from '../../../labs/lab/document.ts'
import type { Lab } from '../../../labs/lab/lab.ts'
import { nodeRefOf } from '../../../labs/lab/node-on-compute.ts'
import { capturePoint, startCapture, stopCapture, streamLinks, streamPoint } from '../../../labs/links/captures.ts'
import { nodeOnCompute } from '../../../labs/nodes/nodes.ts'
import { untilReady } from '../../../labs/nodes/ready.ts'
import { conflict, forbidden } from '../../../lib/errors/api-error.ts'
import type { RelayedAnswer } from '../../../lib/http/relayed-answer.ts'
import type { Upgrade } from '../../../lib/http/socket.ts'
import { CaptureStream, LabCaptureStream, maxStreamedLinks } from '../../../model/capture.ts'
import { localId } from '../../../model/compute.ts'
import { ConsoleExpect, ConsoleMatch, NodeReady } from '../../../model/console.ts'
import type { KindDescriptor } from '../../../model/kinds/kind.ts'
import { kindOf, type NodeKindName } from '../../../model/kinds/node.ts'
import { LabCaptureStart, LabLink } from '../../../model/lab/link.ts'
import { ProjectFile } from '../../../model/project.ts'
import { Uuid } from '../../../model/schema/fields.ts'
import { mergeCaptures } from '../../../packets/merge-captures.ts'
import { commentOfLinks } from '../../../packets/pcapng.ts'
import { requireUpgrade } from '../../../server/feeds/feed.ts'
import { type Context, created, type Endpoint, endpoint, noContent, ok } from '../../../server/http/endpoint.ts'
import { pathTail, sinceQuery } from '../../../server/http/params.ts'
import { captureFormat, captureHeaders } from '../../compute/captures.ts'
import { consoleQuery, logQuery, watchQuery } from '../../compute/consoles.ts'
import { base, labsOf, nodeParams, projectParam } from './lab-request.ts'

const owner = 'self'
const params = Type.Object(nodeParams)
const linkParams = Type.Object({ ...projectParam, link_id: Uuid })
const node = `${base}/{project_id}/nodes/{node_id}`
const link = `${base}/{project_id}/links/{link_id}`
const noSuchNode = 'There is no such project or node, or the project is closed'
const noSuchLink = 'There is no such project or link, or the project is closed'

/** Forwards a request to a compute, at another path; the service answers it itself as the compute `local`. */
export async function relayTo(
  computeId: string,
  path: string,
  { request, context }: { request: Request; context: Context },
): Promise<Response | RelayedAnswer> {
  const { fleet, labs, caller, noteCompute, upgrade, dispatchInternally } = context
  noteCompute(computeId)
  if (labs?.computes.forward !== undefined) return labs.computes.forward(computeId, { request, path, caller, upgrade })
  if (fleet === undefined) throw conflict('This service has no fleet, and so no computes')
  if (computeId !== localId || !fleet.hasLocal) return forward(fleet, computeId, { request, path, caller, upgrade })
  const { url, method, headers, body, signal } = request
  const inner = new URL(path + new URL(url).search, url)
  const init = { method, headers, signal, ...(body !== null && method !== 'GET' && { body, duplex: 'half' }) }
  return dispatchInternally(new Request(inner, init), path, upgrade)
}

/** Endpoints of labs that computes answer: consoles, captures and files. */
export const labRelayEndpoints: readonly Endpoint[] = [
  ...(['ws', 'watch', 'vnc'] as const).map((kind) =>
    endpoint({
      ...{ method: 'GET', path: `${node}/console/${kind}`, owner, tag: 'v2 nodes', params },
      role: kind === 'watch' ? 'read' : 'operate',
      summary: {
        ws: 'The console as a websocket: the scroll-back, then new output',
        watch: 'Watch the console as a websocket: what the client sends is dropped',
        vnc: 'The screen as a websocket that carries RFB (VNC) in binary frames',
      }[kind],
      query: { ws: consoleQuery, watch: watchQuery, vnc: Type.Pick(sinceQuery, ['ticket']) }[kind],
      websocket: true,
      replies: {},
      errors: {
        404: `${noSuchNode}, or the request is not a websocket upgrade`,
        409: 'The node is not running, or has no such console',
      },
      async handle({ params, request }, context) {
        requireUpgrade(request)
        const { labs } = labsOf(context)
        const lab = await labs.lab(params.project_id)
        const record = withConsole(lab, params.node_id, kind === 'vnc' ? 'screen' : 'text')
        const upgrade: Upgrade = (upgradeRequest, on) => {
          const end = labs.uses.begin(lab.id)
          return context.upgrade(upgradeRequest, {
            open(socket) {
              socket.onClose(end)
              on.open(socket)
            },
            abandon() {
              end()
              on.abandon()
            },
          })
        }
        const path = `${nodePath(nodeRefOf(lab, record))}/console/${kind}`
        return relayTo(record.compute_id, path, { request, context: { ...context, upgrade } })
      },
    }),
  ),
  endpoint({
    ...{ method: 'GET', path: `${node}/console/log`, owner, tag: 'v2 nodes', params, role: 'operate' },
    summary: 'The last lines of the console as text; empty without output',
    query: logQuery,
    replies: { 200: { description: 'The lines, without CR', media: 'text/plain' } },
    errors: { 404: noSuchNode, 409: 'The console has no text' },
    async handle({ params, request }, context) {
      const lab = await labsOf(context).labs.lab(params.project_id)
      const record = withConsole(lab, params.node_id, 'text')
      return relayTo(record.compute_id, `${nodePath(nodeRefOf(lab, record))}/console/log`, { request, context })
    },
  }),
  endpoint({
    ...{ method: 'POST', path: `${node}/console/expect`, owner, tag: 'v2 nodes', params },
    summary: 'Type on the console, and wait until its output matches a regular expression, or the console is quiet',
    body: ConsoleExpect,
    replies: { 200: { description: 'The output matches', schema: ConsoleMatch } },
    errors: {
      404: noSuchNode,
      409: 'No match in time (`not-in-time`, with the last lines), or the node is not running',
      429: 'Too many requests are waiting',
    },
    async handle({ params, body, request }, context) {
      const { labs, agentFor } = labsOf(context)
      const lab = await labs.lab(params.project_id)
      const record = withConsole(lab, params.node_id, 'text')
      return ok(await agentFor(record.compute_id).nodes.expect(nodeRefOf(lab, record), body, request.signal))
    },
  }),
  endpoint({
    method: 'POST',
    path: `${node}/ready`,
    owner,
    tag: 'v2 nodes',
    params,
    summary: 'Wait until a node is ready; an empty body stands for the member `ready` of the node',
    body: NodeReady,
    replies: { 204: { description: 'The node is ready' } },
    errors: {
      404: noSuchNode,
      409: 'The node was not ready in time, or is not running',
      429: 'Too many requests are waiting',
    },
    async handle({ params, body, request }, context) {
      const { labs, agentFor } = labsOf(context)
      const lab = await labs.lab(params.project_id)
      const record = nodeOnCompute(lab, params.node_id)
      const wanted = Object.keys(body).length === 0 ? (record.ready ?? {}) : body
      await untilReady(agentFor(record.compute_id).nodes, nodeRefOf(lab, record), wanted, request.signal)
      return noContent
    },
  }),
  endpoint({
    method: 'POST',
    path: `${link}/start_capture`,
    owner,
    tag: 'v2 links',
    params: linkParams,
    summary: 'Capture the frames of a link into a file of the project',
    body: LabCaptureStart,
    replies: { 201: { description: 'Capturing', schema: LabLink } },
    errors: {
      404: noSuchLink,
      409: 'The link is already captured, or another capture writes to the file',
      507: 'The disk is nearly full',
    },
    async handle({ params, body }, context) {
      const { labs, agentFor } = labsOf(context)
      return created(await startCapture(await labs.lab(params.project_id), params.link_id, body, agentFor))
    },
  }),
  endpoint({
    method: 'POST',
    path: `${link}/stop_capture`,
    owner,
    tag: 'v2 links',
    params: linkParams,
    summary: 'Stop the capture of a link; without a capture this has no effect',
    bodyKind: 'ignored',
    replies: { 201: { description: 'The file is complete', schema: LabLink } },
    errors: { 404: noSuchLink },
    async handle({ params }, context) {
      const { labs, agentFor } = labsOf(context)
      return created(await stopCapture(await labs.lab(params.project_id), params.link_id, agentFor))
    },
  }),
  endpoint({
    method: 'GET',
    path: `${link}/pcap`,
    owner,
    tag: 'v2 links',
    params: linkParams,
    summary: 'Read the running capture of a link, from its beginning until it ends',
    replies: { 200: { description: 'The capture, as it grows', media: 'application/vnd.tcpdump.pcap' } },
    errors: { 404: noSuchLink, 409: 'The link is not captured' },
    async handle({ params, request }, context) {
      const { node, ref, port } = capturePoint(await labsOf(context).labs.lab(params.project_id), params.link_id)
      return relayTo(node.compute_id, `${portPath(ref, port)}/pcap`, { request, context })
    },
  }),
  endpoint({
    ...{ method: 'POST', path: `${link}/capture/stream`, owner, tag: 'v2 links', params: linkParams },
    summary: 'Watch the frames of a link, without a file',
    description:
      'Starts now, and ends with the link or the request. Any number of clients may watch, even while the link is captured into a file. Meant to be piped into an analyser.',
    query: captureFormat,
    body: CaptureStream,
    replies: { 200: { description: 'The frames, as they pass', media: 'application/vnd.tcpdump.pcap' } },
    errors: { 404: noSuchLink, 409: 'No compute has a node of the link' },
    async handle({ params, body, request }, context) {
      const { node, ref, port } = streamPoint(await labsOf(context).labs.lab(params.project_id), params.link_id)
      const path = `${portPath(ref, port)}/capture/stream`
      return relayTo(node.compute_id, path, { request: withBody(request, body), context })
    },
  }),
  endpoint({
    ...{ method: 'POST', path: `${base}/{project_id}/capture/stream`, owner, tag: 'v2 links' },
    params: Type.Object(projectParam),
    summary: 'Watch the frames of several links, or of all, as one capture',
    description:
      'pcapng with an interface for each link, named after it, and the frames in the order of their times, which are those of the compute. It starts now with the links that there are. Frames that this client was too slow for are in the interface statistics (isb_ifdrop). A link that goes does not end the capture: a comment at its statistics says so.',
    body: LabCaptureStream,
    replies: { 200: { description: 'The frames, as they pass', media: 'application/x-pcapng' } },
    errors: {
      400: `More than ${maxStreamedLinks} links`,
      404: 'There is no such project or link, or the project is closed',
      409: 'There is no link, or no compute has a node of one',
    },
    async handle({ params, body, request }, context) {
      const { labs, agentFor } = labsOf(context)
      const { signal } = request
      const lab = await labs.lab(params.project_id)
      const captures = await streamLinks(lab, body.links, { agentFor, signal })
      const frames = mergeCaptures(captures, commentOfLinks(lab.document.project.name))
      return new Response(frames, { headers: captureHeaders('pcapng') })
    },
  }),
  endpoint({
    method: 'GET',
    path: `${node}/files`,
    owner,
    tag: 'v2 nodes',
    params,
    summary: 'List the files of a node with their sizes',
    replies: {
      200: { description: 'Every regular file; paths are relative to the node', schema: Type.Array(ProjectFile) },
    },
    errors: { 404: noSuchNode },
    async handle({ params }, context) {
      const { labs, agentFor } = labsOf(context)
      const lab = await labs.lab(params.project_id)
      const record = lab.node(params.node_id)
      const directory = filesDirectory(record)
      const all = await agentFor(record.compute_id).files.list(lab.id, { sums: false })
      return ok(
        all.flatMap(({ path, ...file }) =>
          path.startsWith(directory) ? [{ path: path.slice(directory.length), ...file }] : [],
        ),
      )
    },
  }),
  ...(['GET', 'POST'] as const).flatMap((method) => [
    filesOf(method, `${base}/{project_id}/files/{path}`, 'v2 projects', (lab) => ({
      computeId: lab.document.project.computes[0] ?? localId,
      directory: '',
    })),
    filesOf(method, `${node}/files/{path}`, 'v2 nodes', (lab, word) => {
      const record = lab.node(word)
      return { computeId: record.compute_id, directory: filesDirectory(record) }
    }),
  ]),
]

/** Finds a node with such a console, by its id or name. 404, 409 for other nodes. */
function withConsole(lab: Lab, word: string, form: KindDescriptor['consoles'][number]): NodeRecord {
  const record = nodeOnCompute(lab, word)
  const { consoles }: KindDescriptor = kindOf(record.node_type as NodeKindName)
  if (consoles.includes(form)) return record
  const what = form === 'text' ? 'console with text' : 'screen'
  throw conflict(`node_id: ${record.name} is a ${record.node_type} node, which has no ${what}`)
}

/** The directory of a node among the files of its project. */
const filesDirectory = ({ node_type, node_id }: NodeRecord): string => `project-files/${node_type}/${node_id}/`

/** The request with its body, which was read for the check. */
function withBody({ url, method, headers: given, signal }: Request, value: unknown): Request {
  const body = new TextEncoder().encode(JSON.stringify(value))
  const headers = new Headers(given)
  headers.delete('transfer-encoding')
  headers.set('content-length', String(body.byteLength))
  headers.set('content-type', 'application/json')
  return new Request(url, { method, headers, signal, body })
}

function filesOf(
  method: 'GET' | 'POST',
  path: string,
  tag: string,
  locate: (lab: Lab, node: string) => { computeId: string; directory: string },
): Endpoint {
  return endpoint({
    method,
    path,
    owner,
    tag,
    summary: `${method === 'GET' ? 'Read' : 'Write'} a file of a ${path.includes('node_id') ? 'node' : 'project'}`,
    params: Type.Object({ ...(path.includes('node_id') ? nodeParams : projectParam), path: pathTail }),
    ...(method === 'POST' && { bodyKind: 'raw' as const }),
    replies: {
      200: {
        description: method === 'GET' ? 'The file' : 'Written',
        ...(method === 'GET' && { media: 'application/octet-stream' }),
      },
    },
    errors: { 403: 'The path leaves the project, or the node', 404: 'There is no such project, node or file' },
    async handle({ params, path: given, request }, context) {
      const {
        project_id,
        node_id = '',
        path: inside,
      } = params as { project_id: string; node_id?: string; path: string }
      const lab = await labsOf(context).labs.lab(project_id)
      const { computeId, directory } = locate(lab, node_id)
      // The tail stays as the client sent it: decoding and encoding might change it.
      const tail = given.slice(given.indexOf('/files/') + '/files/'.length)
      if (node_id !== '' && inside.split('/').includes('..'))
        throw forbidden('path: expected a path below the directory of the node, without ".."')
      return relayTo(computeId, `/v2/compute/projects/${lab.id}/files/${directory}${tail}`, { request, context })
    },
  })
}
