import { Type } from '@sinclair/typebox'
import type { FileAgent } from '../host-agent.ts'
import { ProjectFile } from '../model/project.ts'
import { Upload } from './bodies.ts'
import type { Connection } from './connection.ts'
import { factsOf } from './facts.ts'
import { path } from './paths.ts'

const list = Type.Array(ProjectFile)

export const remoteFiles = (connection: Connection): FileAgent => ({
  // The sums of new files are made first.
  list: (id) => connection.json(list, { method: 'GET', path: path`/v2/compute/projects/${id}/files`, pace: 'work' }),
  async read(id, file) {
    const { response, body } = await connection.stream(
      { method: 'GET', path: path`/v2/compute/projects/${id}/files/${file}` },
      { idleMs: connection.limits.idleMs, size: (response) => factsOf(connection, response).size },
    )
    return { content: body, ...factsOf(connection, response) }
  },
  async write(id, file, content, { parents }) {
    await connection.done({
      method: 'POST',
      // Parents are made in v2, and must be there in v1.
      path: parents ? path`/v2/compute/projects/${id}/files/${file}` : path`/v1/projects/${id}/files/${file}`,
      upload: new Upload(content),
    })
  },
})
