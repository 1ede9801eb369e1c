import { Type } from '@sinclair/typebox'
import type { ProjectAgent, SharedAgent } from '../../host-agent.ts'
import { Project, UdpPort } from '../../model/project.ts'
import type { Connection } from './connection.ts'
import { path } from './paths.ts'

const list = Type.Array(Project)

export const remoteProjects = (connection: Connection): SharedAgent['projects'] & Pick<ProjectAgent, 'get'> => ({
  list: (status = 'open') =>
    connection.json(list, { method: 'GET', path: path`/v2/compute/projects?view=full&status=${status}` }),
  async get(id) {
    const project = await connection.json(Project, { method: 'GET', path: path`/v2/compute/projects/${id}?view=full` })
    connection.requireId(id, project.project_id)
    return project
  },
  async create({ name = null, ...input }) {
    const { value, status } = await connection.answer(Project, {
      method: 'POST',
      path: '/v2/compute/projects?view=full',
      input: { name, ...input },
    })
    if (input.project_id != null) connection.requireId(input.project_id, value.project_id)
    return { project: value, created: status === 201 }
  },
  async reserveUdpPort(id) {
    const call = { method: 'POST', path: path`/v2/compute/projects/${id}/ports/udp` } as const
    return (await connection.json(UdpPort, call)).udp_port
  },
  async releaseUdpPort(id, port) {
    await connection.done({ method: 'DELETE', path: path`/v2/compute/projects/${id}/ports/udp/${String(port)}` })
  },
})
