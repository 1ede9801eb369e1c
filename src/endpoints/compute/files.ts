import { Type } from '@sinclair/typebox'
import { ProjectFile } from '../../model/project.ts'
import { Uuid } from '../../model/schema/fields.ts'
import { type Endpoint, endpoint, ok } from '../../server/http/endpoint.ts'
import { noSuchProject, pathTail, projectParams } from '../../server/http/params.ts'

const params = Type.Object({ project_id: Uuid, path: pathTail })

const ofSnapshot = Type.Object({
  snapshot: Type.Optional({ ...Uuid, description: 'Id of a snapshot, to use its files' }),
})

/** The files of a project. v1 answers 404 for a missing parent directory, v2 creates it. */
export const fileEndpoints = (base: string, tag: string, options: { parents: boolean }): readonly Endpoint[] => [
  endpoint({
    method: 'GET',
    path: `${base}/{project_id}/files`,
    tag,
    summary: 'List the files of a project with their MD5 sums',
    params: projectParams,
    query: Type.Object({
      sums: Type.Optional(
        Type.Literal('false', { description: 'Sizes instead of MD5 sums, for which all files have to be read' }),
      ),
      ...ofSnapshot.properties,
      complete: Type.Optional(
        Type.Literal('true', {
          description: 'Nodes first write what they keep outside the project, such as the layers of containers',
        }),
      ),
    }),
    replies: { 200: { description: 'Every regular file', schema: Type.Array(ProjectFile) } },
    errors: {
      404: noSuchProject,
      409: 'With `complete`: a node that keeps something outside the project is running, or that cannot be read',
      507: 'With `complete`: the disk is nearly full',
    },
    handle: async ({ params, query }, { agent }) =>
      ok(
        await agent.files.list(params.project_id, {
          sums: query.sums === undefined,
          complete: query.complete !== undefined,
          snapshot: query.snapshot?.toLowerCase(),
        }),
      ),
  }),
  endpoint({
    method: 'GET',
    path: `${base}/{project_id}/files/{path}`,
    tag,
    summary: 'Read a file of a project',
    params,
    query: ofSnapshot,
    replies: { 200: { description: 'The file', media: 'application/octet-stream' } },
    errors: {
      403: 'The path leaves the project',
      404: 'There is no such project or file',
      409: 'The path is not valid in the file system',
    },
    async handle({ params, query }, { agent }) {
      const { snapshot } = query
      const { content, size, modified } = await agent.files.read(params.project_id, params.path, {
        snapshot: snapshot?.toLowerCase(),
      })
      return new Response(content, {
        headers: {
          // Always bytes: a browser must not run a page that a guest wrote as a page of this service.
          'Content-Type': 'application/octet-stream',
          'Content-Length': String(size),
          'Last-Modified': new Date(modified).toUTCString(),
          'X-Content-Type-Options': 'nosniff',
        },
      })
    },
  }),
  endpoint({
    method: 'POST',
    path: `${base}/{project_id}/files/{path}`,
    tag,
    summary: 'Write a file of a project',
    description: options.parents ? 'Parent directories are created.' : 'The parent directory must exist.',
    params,
    bodyKind: 'raw',
    replies: { 200: { description: 'Written' } },
    errors: {
      403: 'The path leaves the project',
      404: 'There is no such project or parent directory',
      408: 'The body sent no data for too long',
      409: 'The path is a directory',
      507: 'The disk is nearly full',
    },
    async handle({ params, request }, { agent }) {
      const content = request.body ?? new Blob([]).stream()
      await agent.files.write(params.project_id, params.path, content, options)
      return { status: 200 }
    },
  }),
]
