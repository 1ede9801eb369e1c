import { Type } from '@sinclair/typebox'
import type { FileAgent } from '../../host-agent.ts'
import { quotedPath } from '../../lib/text/escape.ts'
import { ProjectFile } from '../../model/project.ts'
import { RequestUpload } from './bodies.ts'
import type { Connection } from './connection.ts'
import { path, search } from './paths.ts'
import type { ComputeAnswer } from './transport.ts'

const list = Type.Array(ProjectFile)

export function remoteFiles(connection: Connection): FileAgent {
  const sizeOf = ({ headers }: ComputeAnswer): number => {
    const size = /^\d{1,15}$/.exec(headers.get('content-length') ?? '')?.[0]
    if (size === undefined) throw connection.wrong('a file without its size in Content-Length')
    return Number(size)
  }
  return {
    async list(projectId, { sums, snapshot, complete } = { sums: true }) {
      const query = search({ sums: sums ? undefined : 'false', snapshot, complete: complete ? 'true' : undefined })
      const files = await connection.json(list, {
        ...{ method: 'GET', path: path`/v2/compute/projects/${projectId}/files` + query, pace: 'work' },
      })
      const wrong = files.find((file) => !isInside(file.path))
      if (wrong !== undefined) throw connection.wrong(`a file of the name ${quotedPath(wrong.path)}`)
      return files
    },
    async read(projectId, file, { snapshot, signal } = {}) {
      const { response, body } = await connection.stream(
        {
          method: 'GET',
          path: path`/v2/compute/projects/${projectId}/files/` + filePath(file) + search({ snapshot }),
          ...(signal !== undefined && { signal }),
        },
        { idleMs: connection.limits.idleMs, size: sizeOf },
      )
      const modified = Date.parse(response.headers.get('last-modified') ?? '')
      return { content: body, size: sizeOf(response), modified: modified || Date.now() }
    },
    async write(projectId, file, content, { parents, size, signal }) {
      const upload = new RequestUpload(content, size)
      // v1 answers 404 for a missing parent directory, v2 creates it.
      const project = parents ? path`/v2/compute/projects/${projectId}` : path`/v1/projects/${projectId}`
      const to = `${project}/files/${filePath(file)}`
      await connection
        .done({ method: 'POST', path: to, upload, ...(signal !== undefined && { signal }) })
        .catch((error: unknown) => {
          throw upload.failure ?? error
        })
    },
  }
}

/**
 * Whether the path of a file stays in its project: it becomes a part of the path of requests to other computes, and a name in an archive. Half a
 * surrogate pair cannot be encoded.
 */
const isInside = (file: string): boolean =>
  !file.includes('\0') && !/\p{Surrogate}/u.test(file) && !file.split('/').some((it) => /^\.{0,2}$/.test(it))

const filePath = (file: string): string => file.split('/').map(encodeURIComponent).join('/')
