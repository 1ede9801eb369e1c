import { Type } from '@sinclair/typebox'
import { badRequest } from '../../lib/errors/api-error.ts'
import { DiskCreate, DiskExtend, type DiskFormat, diskFormats, type ImageKindName } from '../../model/image.ts'
import { FoundProgram } from '../../model/schema/program.ts'
import { validate } from '../../model/validation/validate.ts'
import { type Endpoint, endpoint, ok } from '../../server/http/endpoint.ts'

/** The body of a request for a disk, before its format is known. */
const anyDisk = Type.Record(Type.String(), Type.Unknown())
const done = { status: 201 }
const errors = { 403: 'The path is not allowed', 507: 'The disk is nearly full' }

/** Disk images that are made and enlarged on the host; v1 cannot enlarge them. */
export function diskEndpoints(
  kind: ImageKindName,
  root: string,
  group: { readonly owner: 'all'; readonly tag: string },
  isV1: boolean,
): readonly Endpoint[] {
  const extend = endpoint({
    ...group,
    method: 'PUT',
    path: `${root}/img`,
    summary: 'Enlarge a disk image',
    body: DiskExtend,
    replies: { 201: { description: 'Enlarged' } },
    errors: { ...errors, 409: 'There is no such image or tool, or the tool failed' },
    async handle({ body }, { agent }) {
      await agent.images.extendDisk(kind, body)
      return done
    },
  })
  return [
    endpoint({
      ...group,
      method: 'GET',
      path: `${root}/img-binaries`,
      summary: 'List the disk-image tools of the host',
      replies: { 200: { description: 'Every qemu-img in PATH', schema: Type.Array(FoundProgram) } },
      handle: async (_, { agent }) => ok(await agent.images.diskTools()),
    }),
    endpoint({
      ...group,
      method: 'POST',
      path: `${root}/img`,
      summary: 'Create a disk image',
      body: anyDisk,
      bodyShown: DiskCreate,
      replies: { 201: { description: 'Created' } },
      errors: { ...errors, 409: 'The file exists, there is no such tool, or the tool failed' },
      async handle({ body }, { agent }) {
        await agent.images.createDisk(kind, diskOf(body))
        return done
      },
    }),
    ...(isV1 ? [] : [extend]),
  ]
}

/** The disk in a body. 400 names the possible formats, or the options of the format. */
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
const ofAllFormats = new Set(['qemu_img', 'path', 'format', 'size'])
const optionsOf = (format: DiskFormat): string[] =>
  Object.keys(diskFormats[format].properties).filter((name) => !ofAllFormats.has(name))
