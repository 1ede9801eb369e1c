import { readAnswer } from '../../fleet/forward/forward.ts'
import { errorHeader } from '../../lib/errors/error-codes.ts'
import { maxAnswerBytes } from '../../lib/http/answer-budget.ts'
import { readAnyJson } from '../../lib/http/body.ts'
import { type RelayedAnswer, responseOf } from '../../lib/http/relayed-answer.ts'
import type { Socket } from '../../lib/http/socket.ts'
import { viaHeader } from '../../model/access/caller.ts'
import type { Dialect, Unfinished } from '../../server/http/dialect.ts'
import type { Endpoint, JsonAnswer } from '../../server/http/endpoint.ts'
import { pathOf } from '../../server/http/path.ts'
import { gns3Conventions } from './conventions.ts'
import { gns3Endpoints } from './endpoints.ts'
import { theirFault } from './faults.ts'
import { requireHostName } from './host-names.ts'
import { isMembers } from './members.ts'
import { ourPath, theirFile } from './names.ts'
import { type FeedName, isFeedEvent, isReshaped, line, toResponse, withoutDefaults } from './shapes.ts'

interface Options {
  /** The version for clients that do not send theirs. */
  readonly version: string
  /** The version of this program. */
  readonly own: string
  /** Whether the files of the web client are there. */
  readonly hasWebUi: boolean
}

/** Our own clients send this header with the value `neutral`: they get our words whatever the setting. */
const wordsHeader = 'x-patchbay-words'

/** The setting `clients = "gns3"`: words, members and statuses of GNS3 2.2, and of the compute interface of GNS3 3. */
export function gns3Dialect({ version, own, hasWebUi }: Options): Dialect {
  /** A client that sends its version (`GNS3 QT Client v2.2.59`) requires the same one of the server. */
  const versionFor = ({ headers, url }: Request): string =>
    /GNS3 QT Client v(\d[\w.+-]*)/.exec(headers.get('user-agent') ?? '')?.[1] ??
    (/^[^/]*\/\/[^/]*\/v3\//.test(url) && !version.startsWith('3.') ? '3.0.6' : version)
  return {
    endpoints: gns3Endpoints(hasWebUi),
    speaks: ({ headers }) => !headers.has(viaHeader) && headers.get(wordsHeader) !== 'neutral',
    conventions: gns3Conventions,
    path: ourPath,
    isStream: (path) => streams.test(path),
    async translateRequest(request, endpoint, limit) {
      if (endpoint.body === undefined || request.method === 'GET' || request.method === 'HEAD') return request
      const body = await readAnyJson(request, limit)
      if (versionFor(request).startsWith('3.') && isMembers(body)) requireHostName(endpoint, body)
      const checked = endpoint.body.$id === 'VersionCheck' && isMembers(body) && body.version === versionFor(request)
      const text = JSON.stringify(
        checked ? { ...body, version: own } : isMembers(body) ? withoutDefaults(endpoint, body) : body,
      )
      const headers = new Headers(request.headers)
      for (const name of ['content-length', 'transfer-encoding']) headers.delete(name)
      return new Request(request.url, { method: request.method, headers, body: text, signal: request.signal })
    },
    async translateAnswer(answer, endpoint, request, code) {
      const isAnswer = !(answer instanceof Response) && !('content' in answer)
      const { status } = answer
      // There it does nothing for a node that does not run, and a controller asks for it of all nodes of a project.
      if (status === 409 && /\/console\/reset(\?|$)/.test(request.url)) return { status: 204 }
      const schema = endpoint?.replies[status]?.schema ?? endpoint?.replies[200]?.schema
      const at = `${request.method} ${ourPath(pathOf(request.url))}`
      const turned = (body: unknown, errorCode = code) => {
        if (status >= 400) return theirFault(status, body, { code: errorCode, at, translate: theirFile })
        const theirs = toResponse(schema, body, versionFor(request), /([^/]+)\/images$/.exec(at)?.[1])
        return theirs === undefined ? gone : { status: statusOf(status, endpoint, at), body: theirs }
      }
      if (isAnswer && answer.body === undefined) return withoutBody(status, statusOf(status, endpoint, at))
      if (isAnswer) return turned(answer.body)
      const feed = feedOf(endpoint)
      if (feed !== undefined && status === 200 && answer instanceof Response && answer.body !== null)
        return new Response(answer.body.pipeThrough(linesTurned(feed, versionFor(request))), answer)
      if (status === 101) return answer
      const theirs = statusOf(status, endpoint, at)
      if (status === 204 && theirs !== 204) return withoutBody(status, theirs)
      if (status < 400 && !isReshaped(schema)) return withStatus(answer, theirs)
      return reread(answer, turned)
    },
    hears: (action) => isFeedEvent('project', action),
    upgrade(upgrade, endpoint, request) {
      const feed = feedOf(endpoint)
      if (feed === undefined) return upgrade
      const version = versionFor(request)
      return (upgradeRequest, { open, abandon }) =>
        upgrade(upgradeRequest, { open: (socket) => open(turnedSocket(socket, feed, version)), abandon })
    },
  }
}

/** Consoles and captures of nodes, for which a controller of release 2.2 sends no credentials. */
const streams = /^\/v2\/compute\/projects\/[^/]+\/[^/]+\/nodes\/[^/]+\/(console\/ws|adapters\/\d+\/ports\/\d+\/pcap)$/

/** Endpoints for which GNS3 2.2 has another status of success. */
const statuses: Readonly<Record<string, number>> = {
  'PUT /v2/projects/{project_id}/links/{link_id}': 201,
  'PUT /v2/projects/{project_id}/drawings/{drawing_id}': 201,
  'POST /v2/projects/{project_id}/files/{path}': 201,
  'POST /v2/projects/{project_id}/nodes/{node_id}/files/{path}': 201,
}
/** What a controller forwards to a compute is 200, whatever the compute says. */
const forwarded = /^(POST|PUT) \/v2\/computes\/[^/]+\/[^/]+\/./

function statusOf(status: number, endpoint: Endpoint | undefined, at: string): number {
  if (status < 200 || status >= 300) return status
  return statuses[`${endpoint?.method} ${endpoint?.path}`] ?? (forwarded.test(at) ? 200 : status)
}

/** The answer for a resource that GNS3 2.2 lacks. */
const gone = { status: 404, body: { message: '404: Not Found', status: 404 } }

/** An answer without a body; where GNS3 2.2 has one, it is null. */
const withoutBody = (status: number, theirs: number): JsonAnswer =>
  status === 204 && theirs !== 204 ? { status: theirs, body: null } : { status: theirs }

/** The same answer with another status. */
function withStatus(answer: Response | RelayedAnswer, status: number): Response | RelayedAnswer {
  if (answer.status === status) return answer
  return answer instanceof Response
    ? new Response(answer.body, { status, headers: answer.headers })
    : { ...answer, status }
}

function feedOf(endpoint: Endpoint | undefined): FeedName | undefined {
  const path = endpoint?.path.replace(/\/ws$/, '')
  if (path === '/v2/compute/notifications') return 'compute'
  if (path === '/v2/notifications') return 'controller'
  return path === '/v2/projects/{project_id}/notifications' ? 'project' : undefined
}

/** Converts the body of a JSON answer; other media types stay as they are. */
async function reread(
  answer: Response | RelayedAnswer,
  turned: (body: unknown, code?: string) => { readonly status: number; readonly body: unknown },
): Promise<Unfinished> {
  const response = answer instanceof Response ? answer : responseOf(answer)
  if (!(response.headers.get('content-type') ?? '').startsWith('application/json')) return answer
  const code = response.headers.get(errorHeader) ?? undefined
  const { status, body } = turned(await readAnswer(response, maxAnswerBytes, 'asked'), code)
  const headers = new Headers(response.headers)
  for (const name of ['content-length', 'content-encoding', 'transfer-encoding']) headers.delete(name)
  const content = new TextEncoder().encode(`${JSON.stringify(body)}\n`)
  return {
    status,
    headers: { ...Object.fromEntries(headers), 'Content-Length': String(content.byteLength) },
    content,
  }
}

/** Converts one event of a feed; undefined for an event that GNS3 2.2 lacks. */
function turnedText(text: string, feed: FeedName, version: string): string | undefined {
  const value: unknown = JSON.parse(text)
  const turned = isMembers(value) ? line(value, feed, version) : undefined
  return turned && JSON.stringify(turned)
}

function turnedSocket(socket: Socket, feed: FeedName, version: string): Socket {
  return {
    ...socket,
    close: (code, reason) => socket.close(code, reason),
    onMessage: (receive) => socket.onMessage(receive),
    onClose: (closed) => socket.onClose(closed),
    drained: () => socket.drained(),
    send(data) {
      const text = turnedText(typeof data === 'string' ? data : new TextDecoder().decode(data), feed, version)
      if (text !== undefined) socket.send(text)
    },
  }
}

/** Converts a feed of JSON lines. Chunks may end within a line. */
function linesTurned(feed: FeedName, version: string): TransformStream<Uint8Array, Uint8Array<ArrayBuffer>> {
  const [decoder, encoder] = [new TextDecoder(), new TextEncoder()]
  let rest = ''
  return new TransformStream({
    transform(chunk, controller) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      for (const text of lines) {
        const turned = turnedText(text, feed, version)
        if (turned !== undefined) controller.enqueue(encoder.encode(`${turned}\n`))
      }
    },
  })
}
