import { Type } from '@sinclair/typebox'
import type { StoredImage, UploadOptions, UploadProgress } from '../../host-agent.ts'
import { ignore } from '../../lib/async/ignore.ts'
import { badRequest } from '../../lib/errors/api-error.ts'
import { Image, type ImageKindName, ImageRename, ImageUse, type ImageUsers, imageKinds } from '../../model/image.ts'
import type { ApiVersion } from '../../model/kinds/kind.ts'
import { kindOf } from '../../model/kinds/node.ts'
import { digestsOf } from '../../server/http/digest.ts'
import { type Endpoint, endpoint, type JsonAnswer, noContent, ok } from '../../server/http/endpoint.ts'
import { contentRangeOf, rangeOf } from '../../server/http/range.ts'
import { diskEndpoints } from './disks.ts'
import { noContentAfter } from './no-content.ts'

const name = Type.String({ minLength: 1, description: 'Name of the image; one directory may come before it' })
const md5sum = Type.Object({
  md5sum: Type.Optional(
    Type.String({
      pattern: '^[0-9A-Fa-f]{32}$',
      expects: '32 hexadecimal digits',
      description: 'MD5 sum that the complete image must have',
    }),
  ),
})

/** The images of every kind that starts from images, and the disk tools of kinds whose images are disks. */
export const imageEndpoints: readonly Endpoint[] = imageKinds.flatMap((kind) => [
  ...endpointsOf('v1', kind),
  ...endpointsOf('v2', kind),
])

function endpointsOf(version: ApiVersion, kind: ImageKindName): readonly Endpoint[] {
  const isV1 = version === 'v1'
  const root = isV1 ? `/v1/${kind}` : `/v2/compute/${kind}`
  const list = isV1 ? `${root}/vms` : `${root}/images`
  const field = isV1 ? 'path' : 'filename'
  const group = { owner: 'all', tag: `${version} ${kind} images` } as const
  const one = { ...group, path: `${list}/{${field}}`, params: Type.Object({ [field]: name }) }
  const uses = endpoint({
    ...group,
    method: 'GET',
    path: `${root}/image_uses`,
    scope: 'own',
    summary: `List which nodes start from the images of ${kind} nodes`,
    replies: { 200: { description: 'The images, with their nodes in open projects', schema: Type.Array(ImageUse) } },
    async handle(_, { agent, projects }) {
      const isSeen = ({ project_id }: ImageUsers) => projects.sees(project_id)
      return ok(
        (await agent.images.uses(kind)).map(({ used_by, ...image }) => ({
          ...image,
          ...(used_by && { used_by: used_by.filter(isSeen) }),
        })),
      )
    },
  })
  const download = endpoint({
    ...one,
    method: 'GET',
    summary: 'Read an image, or a range of it',
    replies: {
      200: { description: 'The image', media: 'application/octet-stream' },
      206: { description: 'The requested range of bytes', media: 'application/octet-stream' },
      304: { description: 'The image has not changed since If-None-Match or If-Modified-Since' },
    },
    errors: {
      403: 'The name leaves the directories of images',
      409: 'There is no such image; its name is in `image`',
      416: 'The image has no such bytes',
    },
    async handle({ params, request }, { agent }) {
      const range = rangeOf(request)
      const onlyIf = request.headers.get('if-range')
      const image = await agent.images.read(kind, String(params[field]), {
        ...(range !== undefined && { range }),
        ...(onlyIf !== null && { onlyIf }),
      })
      if (!isUnchanged(request, image)) return imageResponse(image)
      image.content.cancel().catch(ignore('the client has this image'))
      return new Response(null, { status: 304, headers: validators(image) })
    },
  })
  const remove = endpoint({
    ...one,
    method: 'DELETE',
    summary: 'Delete an image; at a gateway, on every compute',
    replies: { 204: { description: 'Deleted' } },
    errors: {
      403: 'The name leaves the images, the image is in an additional directory, or is a program and the caller is not an administrator',
      404: 'There is no such image',
      409: 'A node of an open project, or another image, needs it: the message names them',
    },
    handle: ({ params }, { agent }) => noContentAfter(agent.images.remove(kind, String(params[field]))),
  })
  const rename = endpoint({
    ...one,
    method: 'PUT',
    summary: 'Rename an image; at a gateway, on every compute',
    description:
      'The image stays in its directory, and replaces no other one. Nodes of closed projects keep the old name: their next start says ' +
      'which image is missing. A gateway renames it on all connected computes that have it, or on none.',
    body: ImageRename,
    replies: { 204: { description: 'Renamed' } },
    errors: {
      403: 'The name leaves the images, the image is in an additional directory, or is a program and the caller is not an administrator',
      404: 'There is no such image',
      409: 'A node of an open project, or another image, needs it: the message names them. Or the new name is taken, or an upload by it has begun',
      501: 'A compute of an earlier version has the image, and cannot rename it',
    },
    handle: ({ params, body }, { agent }) =>
      noContentAfter(agent.images.rename(kind, String(params[field]), body.path)),
  })
  return [
    endpoint({
      ...group,
      method: 'GET',
      path: list,
      scope: 'shared',
      summary: `List the images of ${kind} nodes`,
      description:
        'The checksums of new images are computed first, which takes long for large images, and then stored.',
      replies: { 200: { description: 'The images', schema: Type.Array(Image) } },
      handle: async (_, { agent }) => ok(await agent.images.list(kind)),
    }),
    ...(isV1 ? [] : [uses, download]),
    endpoint({
      ...one,
      method: 'POST',
      summary: 'Store an image, whole or in parts',
      description:
        'The image replaces one of the same name when it is complete, and not before. With `Content-Range: bytes ' +
        'FIRST-LAST/TOTAL` the body is a part, which may continue an interrupted upload of the whole image. Each part but ' +
        'the last is answered with 308, whose `Range` header has the bytes that are stored (absent: none), also when the ' +
        'part was interrupted. `Content-Range: bytes */TOTAL` without a body asks for that answer. `Repr-Digest` (sha-256, ' +
        'sha-512, md5), `?md5sum=` or, for a whole image, `Content-MD5` is checked before the image is stored.',
      query: md5sum,
      bodyKind: 'raw',
      replies: { 204: { description: 'Stored' }, 308: { description: 'The part is stored; send the next part' } },
      errors: {
        400: 'The request is not valid, or the image does not have the given digest; nothing was stored',
        403: 'The name leaves the images',
        408: 'The body sent no data for too long',
        409: 'The part does not follow the stored bytes (see Range), or a directory is in the way',
        413: 'The image is larger than limits.image_gb',
        507: 'The disk is nearly full',
      },
      async handle({ params, query, request }, { agent }) {
        const filename = String(params[field])
        const upload = uploadOf(request, query.md5sum)
        if ('totalBytes' in upload)
          return progressAnswer(await agent.images.progress(kind, filename, upload.totalBytes))
        const content = request.body ?? new Blob([]).stream()
        return progressAnswer(await agent.images.write(kind, filename, content, upload))
      },
    }),
    ...(isV1 ? [] : [rename, remove]),
    ...(kindOf(kind).image?.isDisk ? diskEndpoints(kind, root, group, isV1) : []),
  ]
}

/** The upload in the body of a request, or `totalBytes` of an upload whose progress it asks for. 400. */
export function uploadOf(
  request: Request,
  md5sum: string | undefined,
): UploadOptions | { readonly totalBytes: number } {
  const range = contentRangeOf(request)
  if (range !== undefined && 'totalBytes' in range) return range
  const { part } = range ?? {}
  const digests = digestsOf(request, md5sum, part !== undefined)
  const length = request.headers.get('content-length')
  const size = length === null ? undefined : Number(length)
  if (part !== undefined && size !== undefined && size !== part.last - part.first + 1) {
    throw badRequest(`Content-Range: expected a body of ${part.last - part.first + 1} bytes, got ${size}`)
  }
  return { digests, ...(size !== undefined && { size }), ...(part !== undefined && { part }) }
}

function progressAnswer({ received, done }: UploadProgress): Response | JsonAnswer {
  if (done) return noContent
  const range = received > 0 ? { Range: `bytes=0-${received - 1}` } : {}
  return new Response(null, { status: 308, headers: { 'Content-Length': '0', ...range } })
}

function imageResponse(image: StoredImage): Response {
  const { content, size, part } = image
  const headers: Record<string, string> = {
    ...validators(image),
    'Content-Type': 'application/octet-stream',
    'Content-Length': String(part === undefined ? size : part.last - part.first + 1),
    'Accept-Ranges': 'bytes',
    'X-Content-Type-Options': 'nosniff',
  }
  if (part !== undefined) headers['Content-Range'] = `bytes ${part.first}-${part.last}/${size}`
  return new Response(content, { status: part === undefined ? 200 : 206, headers })
}

const validators = ({ etag, modified }: StoredImage) => ({
  ETag: etag,
  'Last-Modified': new Date(modified).toUTCString(),
})

/** RFC 9110, 13.2.2: the time is looked at only without an entity tag. */
function isUnchanged(request: Request, { etag, modified }: StoredImage): boolean {
  const tags = request.headers.get('if-none-match')
  if (tags !== null) return tags.split(',').some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')))
  const since = Date.parse(request.headers.get('if-modified-since') ?? '')
  return Math.floor(modified / 1000) * 1000 <= since
}
