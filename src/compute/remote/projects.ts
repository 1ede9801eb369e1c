import { Type } from '@sinclair/typebox'
import type { ProjectAgent } from '../../host-agent.ts'
import { Project, type ProjectCreate, type ProjectUpdate, UdpPort } from '../../model/project.ts'
import type { Call, Connection } from './connection.ts'
import { path } from './paths.ts'

const list = Type.Array(Project)
const projectPath = (id: string): string => path`/v2/compute/projects/${id}`

export function remoteProjects(connection: Connection): ProjectAgent {
  const done = async (call: Call): Promise<void> => void (await connection.done(call))
  const project = async (id: string, call: Call): Promise<Project> => {
    const answered = await connection.json(Project, call)
    connection.requireId(id, answered.project_id)
    return answered
  }
  return {
    list: (status = 'open') =>
      connection.json(list, { method: 'GET', path: path`/v2/compute/projects?view=full&status=${status}` }),
    get: (id) => project(id, { method: 'GET', path: `${projectPath(id)}?view=full` }),
    async create({ name = null, ...more }) {
      const input: ProjectCreate = { name, ...more }
      const call = { method: 'POST', path: '/v2/compute/projects?view=full', input } as const
      const { value, status } = await connection.answer(Project, call)
      if (input.project_id != null) connection.requireId(input.project_id, value.project_id)
      return { project: value, created: status === 201 }
    },
    update(id, changes) {
      const input: ProjectUpdate = changes
      return project(id, { method: 'PUT', path: `${projectPath(id)}?view=full`, input })
    },
    close: (id) => done({ method: 'POST', path: `${projectPath(id)}/close` }),
    remove: (id) => done({ method: 'DELETE', path: projectPath(id) }),
    // v2 has none: everything is written at once there.
    commit: (id) => done({ method: 'POST', path: path`/v1/projects/${id}/commit` }),
    async reserveUdpPort(id) {
      return (await connection.json(UdpPort, { method: 'POST', path: `${projectPath(id)}/ports/udp` })).udp_port
    },
    releaseUdpPort: (id, port) => done({ method: 'DELETE', path: projectPath(id) + path`/ports/udp/${port}` }),
  }
}
