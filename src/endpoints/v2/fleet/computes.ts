import { type TObject, Type } from '@sinclair/typebox'
import { forward, readAnswer } from '../../../fleet/forward/forward.ts'
import type { UploadWatch } from '../../../fleet/images/image-digests.ts'
import { computeKey, isReserved } from '../../../fleet/pool/computes.ts'
import type { Fleet } from '../../../fleet/pool/fleet.ts'
import { drainCompute } from '../../../labs/moves/drain.ts'
import { ApiError, notFound } from '../../../lib/errors/api-error.ts'
import { maxAnswerBytes } from '../../../lib/http/answer-budget.ts'
import { readJson } from '../../../lib/http/body.ts'
import type { Method } from '../../../lib/http/method.ts'
import { type RelayedAnswer, responseOf } from '../../../lib/http/relayed-answer.ts'
import { applianceId, Compute, ComputeCreate, ComputeUpdate, localId } from '../../../model/compute.ts'
import { Ports } from '../../../model/host.ts'
import { type ImageKindName, imageKinds } from '../../../model/image.ts'
import { kinds } from '../../../model/kinds/index.ts'
import type { KindDescriptor } from '../../../model/kinds/kind.ts'
import { LabJob } from '../../../model/lab/job.ts'
import { objectSchema } from '../../../model/schema/fields.ts'
import { decoded } from '../../../server/access/role-needed.ts'
import { type Context, created, type Endpoint, endpoint, ok } from '../../../server/http/endpoint.ts'
import { computeView } from '../../compute/compute-view.ts'
import { uploadOf } from '../../compute/images.ts'
import { noContentAfter } from '../../compute/no-content.ts'
import { agentsOf, catalogOf } from '../labs/lab-request.ts'
import { joinEndpoint } from './join.ts'

const base = '/v2/computes'
/** Most bytes of a filter in the body of a GET. */
const maxFilterBytes = 64 * 1024
const tag = 'v2 computes'
const self = { owner: 'self', tag } as const
const admin = { ...self, role: 'admin' } as const

const compute_id = Type.String({ minLength: 1, maxLength: 100, description: 'Id of the compute, such as `local`' })
const emulator = Type.String({
  minLength: 1,
  maxLength: 100,
  description: 'Kind of node, or another path segment after /v2/compute/',
})
const action = Type.String({ minLength: 1, description: 'The rest of the path; slashes are part of it' })
const one = Type.Object({ compute_id })
const pair = Type.Object({ compute_id, emulator })
const noSuchCompute = 'There is no such compute'
const notThere = {
  404: noSuchCompute,
  409: 'The compute cannot be reached, has an incompatible version, or refuses its credentials; the message says which',
  503: 'The compute has been unreachable for some time; Retry-After says when the service tries it again',
  504: 'The connection to the compute ended before its answer',
}

const ComputeEndpoint = objectSchema('ComputeEndpoint', 'A URL of the compute itself', {
  endpoint: Type.String({ description: 'URL at the compute itself' }),
})
const ImageList = Type.Array(
  Type.Object({
    filename: Type.Optional(Type.String()),
    image: Type.Optional(Type.String({ description: 'The name, for kinds whose images are not files' })),
  }),
)

export const computeEndpoints: readonly Endpoint[] = [
  endpoint({
    method: 'GET',
    path: base,
    owner: 'all',
    tag,
    scope: 'shared',
    summary: 'List the computes',
    replies: { 200: { description: 'The computes, `local` first', schema: Type.Array(Compute) } },
    handle: async (_, context) => ok((await fleetOf(context).list()).map((compute) => computeView(compute, context))),
  }),
  endpoint({
    method: 'POST',
    path: base,
    ...admin,
    summary: 'Register a compute, and connect to it; a known compute is returned unchanged',
    description:
      'An unreachable compute is registered with its `last_error`, and the service retries it. A server that is not ' +
      'a compute of the same major version, or refuses the credentials, is not registered.',
    body: ComputeCreate,
    viewSchema: Compute,
    replies: { 201: { description: 'Registered', schema: Compute } },
    errors: {
      404: 'This service has no fleet',
      409: 'The id is reserved, the name is taken, or the server is not a compatible compute; nothing was registered',
      507: 'The disk is full',
    },
    handle: async ({ body }, context) => created(computeView(await fleetOf(context).create(body), context)),
  }),
  // Before the general path, which would match it too.
  joinEndpoint,
  endpoint({
    method: 'GET',
    path: `${base}/{compute_id}`,
    ...self,
    summary: 'Read a compute',
    params: one,
    replies: { 200: { description: 'The compute', schema: Compute } },
    errors: { 404: noSuchCompute },
    handle: async ({ params }, context) => ok(computeView(await fleetOf(context).get(params.compute_id), context)),
  }),
  endpoint({
    method: 'PUT',
    path: `${base}/{compute_id}`,
    ...admin,
    summary: 'Change a compute; the service reconnects, unless only weight or accepts_projects change',
    params: one,
    body: ComputeUpdate,
    viewSchema: Compute,
    current: async ({ params }, context) => fleetOf(context).get(params.compute_id),
    replies: { 200: { description: 'The changed compute', schema: Compute } },
    errors: { 404: noSuchCompute, 409: 'The service itself manages the compute', 507: 'The disk is full' },
    handle: async ({ params, body }, context) =>
      ok(computeView(await fleetOf(context).update(params.compute_id, body), context)),
  }),
  endpoint({
    method: 'DELETE',
    path: `${base}/{compute_id}`,
    ...admin,
    summary: 'Remove a compute from the fleet; its nodes keep running',
    params: one,
    replies: { 204: { description: 'The compute is not, or no longer, registered' } },
    errors: {
      404: 'This service has no fleet',
      409: 'The service itself manages the compute',
      507: 'The disk is full',
    },
    handle: ({ params }, context) => noContentAfter(fleetOf(context).remove(params.compute_id)),
  }),
  // Before the general paths, which would match it too.
  endpoint({
    method: 'POST',
    path: `${base}/{compute_id}/drain`,
    ...admin,
    summary: 'Drain a compute: it gets no new projects, and a job moves its stopped projects to other computes',
    description:
      'Projects with running nodes stay, and the job says so; repeat the request when they are stopped. An open project is ' +
      'closed for the move, and opened again. `accepts_projects` of the compute is then false. A compute that was removed can ' +
      'still be drained: its closed projects are restored elsewhere from their archives.',
    params: one,
    bodyKind: 'ignored',
    replies: { 201: { description: 'The running job', schema: LabJob } },
    errors: {
      404: noSuchCompute,
      409: 'The compute is being drained, or is the service itself',
      429: 'Too many jobs are running',
      507: 'The disk is full',
    },
    async handle({ params }, context) {
      const catalog = catalogOf(context)
      const fleet = fleetOf(context)
      const key = computeKey(params.compute_id)
      // A compute that was removed can be drained, too: its labs that have an archive are made elsewhere.
      const isKnown = isReserved(key) || (await fleet.list()).some((it) => computeKey(it.compute_id) === key)
      const isRemoved = !isKnown && catalog.registry.on(key).length > 0
      if (!isRemoved) await fleet.get(key)
      const close = async () => isRemoved || fleet.update(key, { accepts_projects: false })
      const { id, listed } = await drainCompute(catalog, key, agentsOf(catalog, context), close)
      await listed
      return created(catalog.jobs.get(id))
    },
  }),
  endpoint({
    method: 'GET',
    path: `${base}/{compute_id}/ports`,
    ...self,
    summary: 'Port ranges of a compute and the ports in use',
    params: one,
    replies: { 200: { description: 'The ports', schema: Ports } },
    errors: notThere,
    handle: ({ params, request }, context) => forwardTo(params.compute_id, request, 'network/ports', context),
  }),
  // Before the general paths, which would match these too.
  endpoint({
    method: 'GET',
    path: `${base}/endpoint/{compute_id}/{emulator}/{action}`,
    ...self,
    summary: 'The URL at which a client reaches the compute directly, such as for a large upload',
    description:
      'For a compute that has joined: the path of this service that forwards to it. The compute is not contacted.',
    params: Type.Object({ compute_id, emulator, action }),
    replies: { 200: { description: 'The URL', schema: ComputeEndpoint } },
    errors: { 404: noSuchCompute, 409: 'The appliance VM was not started; the message says why' },
    async handle({ params, path, request }, context) {
      const id = params.compute_id
      const isOurs = id === localId && context.dispatchToSelf !== undefined
      const fleet = await fleetFor(id, request, context)
      if (isOurs) return ok({ endpoint: `${new URL(request.url).origin}/v2/compute/${after(path, 5)}` })
      const origin = fleet.originOf(id)
      // A compute that has joined is reached through this service only.
      const at = origin === undefined ? `${new URL(request.url).origin}${base}/${id}` : `${origin}/v2/compute`
      return ok({ endpoint: `${at}/${after(path, 5)}` })
    },
  }),
  endpoint({
    method: 'GET',
    path: `${base}/{compute_id}/{emulator}/images`,
    ...self,
    summary: 'List the images of a compute, by name',
    params: Type.Object({ compute_id, emulator }),
    replies: { 200: { description: 'The images', schema: ImageList } },
    errors: notThere,
    async handle({ params, path, request }, context) {
      const response = await forwardTo(params.compute_id, request, after(path, 4), context)
      if (response.status !== 200 || request.method === 'HEAD') return response
      const name = params.compute_id
      const list = await readAnswer('content' in response ? responseOf(response) : response, maxAnswerBytes, name)
      if (Array.isArray(list)) return ok(list.toSorted((a, b) => compare(nameOf(a), nameOf(b))))
      const what = `a list of images of at most ${maxAnswerBytes} bytes`
      throw new ApiError(502, `The compute ${name} did not answer with ${what}`)
    },
  }),
  ...(['GET', 'POST', 'PUT'] as const).flatMap((method) => [
    handOnEndpoint(method, '{emulator}', pair),
    handOnEndpoint(method, '{emulator}/{action}', Type.Composite([pair, Type.Object({ action })])),
  ]),
]

/** Credentials that a compute issues are valid only at the compute itself. */
const notForwarded: ReadonlySet<string> = new Set(['tickets', 'session'])

function handOnEndpoint(method: Extract<Method, 'GET' | 'POST' | 'PUT'>, rest: string, params: TObject): Endpoint {
  return endpoint({
    method,
    path: `${base}/{compute_id}/${rest}`,
    ...self,
    summary: `${method} /v2/compute/${rest} of a compute`,
    description:
      'The service forwards the query and streams both bodies. Status and body of the response come from the compute, ' +
      'which has further errors. Websockets work with computes that have joined. At a gateway ' +
      '`local` is the gateway itself: the scheduler places new projects, and lists cover all computes.',
    params,
    ...(method !== 'GET' && { bodyKind: 'raw' as const }),
    replies: {
      200: { description: 'The response of the compute', media: 'application/octet-stream' },
      201: { description: 'Created', media: 'application/json' },
      204: { description: 'Done' },
      ...(method === 'GET' && {
        206: { description: 'The requested range of bytes', media: 'application/octet-stream' },
        304: { description: 'Not modified' },
      }),
      ...(method === 'POST' && { 308: { description: 'The part of the upload is stored; send the next part' } }),
    },
    errors: notThere,
    forwardPath: (path) => `/v2/compute/${after(path, 4)}`,
    ...(method === 'GET' && { websocket: true }),
    async handle({ params, path, request }, context) {
      const { compute_id: id = '', emulator: word = '' } = params as Record<string, string>
      if (notForwarded.has(word)) {
        throw notFound(`${word}: the service does not forward this; send the request to the compute itself`)
      }
      const { uploads, caller } = context
      const given = await filtered(request, path)
      const send = (body?: ReadableStream<Uint8Array>) => forwardTo(id, given, after(path, 4), context, body)
      return id === localId || uploads === undefined
        ? send()
        : withDigest(given, after(path, 4), { uploads, byAdmin: caller.mayExecute }, send)
    },
  })
}

/** Forwards a request to a compute, with that body if one is given; `local` of a gateway is the gateway itself. */
async function forwardTo(
  id: string,
  request: Request,
  path: string,
  context: Context,
  body?: ReadableStream<Uint8Array>,
): Promise<Response | RelayedAnswer> {
  const { caller, noteCompute, upgrade, dispatchToSelf } = context
  const fleet = await fleetFor(id, request, context)
  if (id === localId && dispatchToSelf !== undefined) {
    const { url, method, headers, body: given, signal } = request
    const inner = new URL(`/v2/compute/${path}${new URL(url).search}`, url)
    const init = { method, headers, signal, ...(given !== null && method !== 'GET' && { body: given, duplex: 'half' }) }
    return dispatchToSelf(new Request(inner, init), inner.pathname)
  }
  noteCompute(id)
  return forward(fleet, id, { request, path: `/v2/compute/${path}`, caller, upgrade, body })
}

/** The image that a POST to a compute stores at this path below `/v2/compute/`, percent-encoded; undefined: none. */
function imageIn(method: string, path: string): Image | undefined {
  const [, emulator = '', action = ''] = (method === 'POST' && /^([^/]+)\/(.+)$/s.exec(path)) || []
  const kind = imageKinds.find((it) => it === decoded(emulator))
  if (kind === undefined) return undefined
  const [, name] = /^images\/(.+)$/s.exec(decoded(action)) ?? []
  return name === undefined ? undefined : { kind, name }
}

/** Whether a request to a compute, by its path there, stores an image. */
export function isImageUpload({ method, path }: { readonly method: string; readonly path: string }): boolean {
  return method === 'POST' && imageIn(method, after(path.split('?', 1)[0] ?? '', 3)) !== undefined
}

interface Image {
  readonly kind: ImageKindName
  readonly name: string
}

interface Watching {
  readonly uploads: Pick<UploadWatch, 'watch'> & { requireSpace?(): Promise<void> }
  /** Whether an administrator uploads it. */
  readonly byAdmin: boolean
}

/**
 * Forwards a request to a compute; `path`: below `/v2/compute/` there, percent-encoded. The digest of an image that it uploads is recorded as
 * that of an upload to all computes.
 */
export async function withDigest<Handed extends { readonly status: number }>(
  request: Request,
  path: string,
  { uploads, byAdmin }: Watching,
  send: (body?: ReadableStream<Uint8Array>) => Promise<Handed>,
): Promise<Handed> {
  const image = imageIn(request.method, path)
  if (image === undefined) return send()
  const upload = uploadOf(request, new URL(request.url).searchParams.get('md5sum') ?? undefined)
  if ('totalBytes' in upload) return send()
  await uploads.requireSpace?.()
  const { content, taken } = uploads.watch({ ...image, byAdmin }, request.body ?? new Blob([]).stream(), upload)
  const answer = await send(content)
  if (answer.status === 204 || answer.status === 308) await taken(answer.status === 204)
  return answer
}

/** Names of the list members of each GET action, by its path below that of the compute. */
const lists = new Map<string, readonly string[]>(
  kinds.flatMap(({ name: kind, computeActions = {} }: KindDescriptor) =>
    Object.values(computeActions).flatMap(({ method, path, input }) =>
      method === 'GET' && input !== undefined ? [[`${kind}/${path}`, Object.keys(input.properties)] as const] : [],
    ),
  ),
)

/**
 * The request with its lists in the query. Older clients send them in the body of a GET, and `fetch` cannot send such a body.
 */
async function filtered(request: Request, path: string): Promise<Request> {
  const names = lists.get(after(path, 4))
  if (request.method !== 'GET' || request.body === null || names === undefined) return request
  const body = await readJson(request, maxFilterBytes)
  const url = new URL(request.url)
  for (const name of names) {
    const items = url.searchParams.has(name) ? [] : body[name]
    if (Array.isArray(items)) for (const item of items) url.searchParams.append(name, String(item))
  }
  return new Request(url, { headers: request.headers, signal: request.signal })
}

/** The path from that segment on, still percent-encoded: decoding and encoding could change it. */
const after = (path: string, segments: number): string => path.split('/').slice(segments).join('/')

function fleetOf({ fleet }: Context): Fleet {
  if (fleet === undefined) throw notFound('This service has no fleet: it is a compute only')
  return fleet
}

/** The fleet for a request to one of its computes; an enabled appliance VM is started first. */
async function fleetFor(id: string, { signal }: Request, context: Context): Promise<Fleet> {
  if (id === applianceId) await context.appliance?.ready(signal)
  return fleetOf(context)
}

function nameOf(image: unknown): string {
  const { filename, image: name } = (image ?? {}) as { filename?: unknown; image?: unknown }
  return String(filename ?? name ?? '')
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
