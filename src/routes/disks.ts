import { Type } from '@sinclair/typebox'
import { badRequest } from '../errors/api-error.ts'
import { type Endpoint, endpoint, ok } from '../http/endpoint.ts'
import { validate } from '../http/validate.ts'
import { DiskCreate, DiskExtend, type DiskFormat, diskFormats, type ImageKindName } from '../model/image.ts'
import { FoundProgram } from '../schema/program.ts'

/** The body of a request for a disk, as far as it is known before its format was looked at. */
const anyDisk = Type.Record(Type.String(), Type.Unknown())
const done = { status: 201 }

/** Disk images that are made and extended on the host. */
export function diskEndpoints(kind: ImageKindName): readonly Endpoint[] {
  const v1 = `/v1/${kind}`
  const v2 = `/v2/compute/${kind}`
  const tagV2 = `v2 ${kind} images`
  return [
    tools(`${v1}/img-binaries`, `v1 ${kind} images`),
    create(`${v1}/img`, `v1 ${kind} images`, kind),
    tools(`${v2}/img-binaries`, tagV2),
    create(`${v2}/img`, tagV2, kind),
    endpoint({
      method: 'PUT',
      path: `${v2}/img`,
      owner: 'all',
      tag: tagV2,
      summary: 'Make a disk image larger',
      body: DiskExtend,
      replies: { 201: { description: 'It is' } },
      errors: {
        403: 'The path is not allowed',
        409: 'There is no such image or tool, or the tool refused',
        507: 'The disk is nearly full',
      },
      async handle({ body }, { agent }) {
        await agent.images.extendDisk(kind, body)
        return done
      },
    }),
  ]
}

function tools(path: string, tag: string): Endpoint {
  return endpoint({
    method: 'GET',
    path,
    owner: 'all',
    tag,
    summary: 'Disk-image tools of the host',
    replies: { 200: { description: 'Every qemu-img in PATH', schema: Type.Array(FoundProgram) } },
    handle: async (_, { agent }) => ok(await agent.images.diskTools()),
  })
}

function create(path: string, tag: string, kind: ImageKindName): Endpoint {
  return endpoint({
    method: 'POST',
    path,
    owner: 'all',
    tag,
    summary: 'Make a disk image',
    body: anyDisk,
    bodyShown: DiskCreate,
    replies: { 201: { description: 'Made' } },
    errors: {
      403: 'The path is not allowed',
      409: 'There is a file of this name, no such tool, or the tool refused',
      507: 'The disk is nearly full',
    },
    async handle({ body }, { agent }) {
      await agent.images.createDisk(kind, diskOf(body))
      return done
    },
  })
}

/** The disk in a body; 400 that names the formats there are, or the options of the format. */
function diskOf(body: Record<string, unknown>): DiskCreate {
  const { format } = body
  const formats = Object.keys(diskFormats)
  if (typeof format !== 'string' || !isFormat(format)) {
    const got = format === undefined ? 'missing' : `got ${JSON.stringify(format).slice(0, 40)}`
    throw badRequest(`format: ${got}, expected one of ${formats.join(', ')}`)
  }
  const schema = diskFormats[format]
  const options = optionsOf(format)
  const elsewhere = new Set(formats.flatMap((it) => optionsOf(it as DiskFormat)))
  const wrong = Object.keys(body).find((name) => elsewhere.has(name) && !options.includes(name))
  if (wrong === undefined) return validate(schema, body)
  const there = options.length === 0 ? 'it has none' : `it has ${options.join(', ')}`
  throw badRequest(`${wrong}: the format ${format} has no such option, ${there}`)
}

const isFormat = (format: string): format is DiskFormat => Object.hasOwn(diskFormats, format)
const common = new Set(['qemu_img', 'path', 'format', 'size'])
const optionsOf = (format: DiskFormat): string[] =>
  Object.keys(diskFormats[format].properties).filter((name) => !common.has(name))
