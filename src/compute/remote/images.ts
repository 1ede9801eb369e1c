import { Type } from '@sinclair/typebox'
import type { Digest, ImageAgent, StoredImage, UploadOptions, UploadProgress, WantedRange } from '../../host-agent.ts'
import { Image, type ImageKindName, type ImageRename, ImageUse } from '../../model/image.ts'
import { contentAtHeader } from '../../model/kept-image.ts'
import { FoundProgram } from '../../model/schema/program.ts'
import { RequestUpload } from './bodies.ts'
import type { Connection } from './connection.ts'
import { path } from './paths.ts'
import type { ComputeAnswer } from './transport.ts'

const longestEtag = 255

const list = Type.Array(Image)
const uses = Type.Array(ImageUse)
const programs = Type.Array(FoundProgram)

export const remoteImages = (connection: Connection): ImageAgent => ({
  // The sums of new images are made first.
  list: (kind) => connection.json(list, { method: 'GET', path: path`/v2/compute/${kind}/images`, pace: 'work' }),
  uses: (kind) => connection.json(uses, { method: 'GET', path: path`/v2/compute/${kind}/image_uses` }),
  read: (kind, name, options) => read(connection, kind, name, options),
  write: (kind, name, content, options) => write(connection, kind, name, content, options),
  async remove(kind, name) {
    await connection.done({ method: 'DELETE', path: imagePath(kind, name) })
  },
  async rename(kind, name, to) {
    const input: ImageRename = { path: to }
    await connection.done({ method: 'PUT', path: imagePath(kind, name), input })
  },
  async progress(kind, name, total) {
    const headers = { 'Content-Range': `bytes */${total}` }
    return progressOf(
      connection,
      await connection.done({ method: 'POST', path: imagePath(kind, name), headers, accepts: [308] }),
      total,
    )
  },
  diskTools: () => connection.json(programs, { method: 'GET', path: '/v2/compute/machine-emulator/img-binaries' }),
  async createDisk(kind, input) {
    await connection.done({ method: 'POST', path: path`/v2/compute/${kind}/img`, input })
  },
  async extendDisk(kind, input) {
    await connection.done({ method: 'PUT', path: path`/v2/compute/${kind}/img`, input })
  },
})

const imagePath = (kind: ImageKindName, name: string): string => path`/v2/compute/${kind}/images/${name}`

async function read(
  connection: Connection,
  kind: ImageKindName,
  name: string,
  { range, onlyIf }: { range?: WantedRange; onlyIf?: string },
): Promise<StoredImage> {
  const headers = {
    ...(range !== undefined && { Range: rangeText(range) }),
    ...(onlyIf !== undefined && { 'If-Range': onlyIf }),
  }
  const { response, body } = await connection.stream(
    { method: 'GET', path: imagePath(kind, name), headers },
    { idleMs: connection.limits.idleMs, size: (response) => imageFacts(connection, response).bytes },
  )
  const { bytes: _, ...facts } = imageFacts(connection, response)
  return { content: body, ...facts }
}

function rangeText(range: WantedRange): string {
  return 'suffix' in range ? `bytes=-${range.suffix}` : `bytes=${range.first}-${range.last ?? ''}`
}

/** `bytes`: those of the body. */
function imageFacts(
  connection: Connection,
  response: ComputeAnswer,
): Omit<StoredImage, 'content'> & { readonly bytes: number } {
  const { headers } = response
  const bytes = Number(/^\d{1,15}$/.exec(headers.get('content-length') ?? '')?.[0])
  const modified = Date.parse(headers.get('last-modified') ?? '')
  const etag = headers.get('etag')
  if (Number.isNaN(bytes)) throw connection.wrong('an image without its size in Content-Length')
  if (Number.isNaN(modified)) throw connection.wrong('an image without the time of Last-Modified')
  if (etag === null) throw connection.wrong('an image without ETag')
  if (etag.length > longestEtag) throw connection.wrong(`an image with an ETag of more than ${longestEtag} characters`)
  if (response.status !== 206) return { size: bytes, modified, etag, bytes }
  const header = headers.get('content-range') ?? ''
  const [, first, last, size] = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/.exec(header)?.map(Number) ?? []
  if (first === undefined || last === undefined || size === undefined || last - first + 1 !== bytes || last >= size) {
    throw connection.wrong('a part of an image without its place in Content-Range')
  }
  return { size, modified, etag, bytes, part: { first, last } }
}

async function write(
  connection: Connection,
  kind: ImageKindName,
  name: string,
  content: ReadableStream<Uint8Array>,
  { size, part, digests, contentAt }: UploadOptions,
): Promise<UploadProgress> {
  const reprDigest = digests.length > 0 && { 'Repr-Digest': digests.map(digestText).join(', ') }
  if (contentAt !== undefined) {
    const headers = { [contentAtHeader]: contentAt, ...reprDigest }
    const answer = await connection.done({ method: 'POST', path: imagePath(kind, name), headers })
    return progressOf(connection, answer, 0)
  }
  const upload = new RequestUpload(content, size)
  const response = await connection.done({
    method: 'POST',
    path: imagePath(kind, name),
    headers: {
      // So that a compute refuses a body that is too large at once. Not all transports can send this header.
      ...(size !== undefined && { 'Content-Length': String(size) }),
      ...(part !== undefined && { 'Content-Range': `bytes ${part.first}-${part.last}/${part.total}` }),
      ...reprDigest,
    },
    upload,
    accepts: [308],
  })
  return progressOf(connection, response, part?.total ?? upload.sent)
}

function digestText({ algorithm, hex }: Digest): string {
  const bytes = (hex.match(/../g) ?? []).map((pair) => String.fromCharCode(Number.parseInt(pair, 16)))
  return `${algorithm}=:${btoa(bytes.join(''))}:`
}

/** `total`: the bytes of an image that is complete. */
function progressOf(connection: Connection, response: ComputeAnswer, total: number): UploadProgress {
  if (response.status !== 308) return { received: total, done: true }
  const header = response.headers.get('range')
  if (header === null) return { received: 0, done: false }
  const last = /^bytes=0-(\d{1,15})$/.exec(header)?.[1]
  if (last === undefined) throw connection.wrong('a Range that does not say how much was received')
  return { received: Number(last) + 1, done: false }
}
