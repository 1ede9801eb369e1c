import { Type } from '@sinclair/typebox'
import type { LinkAgent } from '../host-agent.ts'
import { DirectLink, DirectLinkJoined } from '../model/direct-link.ts'
import type { Connection } from './connection.ts'
import { path } from './paths.ts'

const all = (project: string): string => path`/v2/compute/projects/${project}/links`
const one = (project: string, id: string): string => all(project) + path`/${id}`

export const remoteLinks = (connection: Connection): LinkAgent => ({
  join: (project, id, nodes, settings) =>
    connection.json(DirectLink, { method: 'PUT', path: one(project, id), input: { nodes, ...settings } }),
  joinAll: (project, links) =>
    connection.json(Type.Array(DirectLinkJoined), { method: 'POST', path: all(project), input: { links } }),
  update: (project, id, input) => connection.json(DirectLink, { method: 'PUT', path: one(project, id), input }),
  async remove(project, id) {
    await connection.done({ method: 'DELETE', path: one(project, id) })
  },
  state: (project, id) => connection.json(DirectLink, { method: 'GET', path: one(project, id) }),
  states: (project) => connection.json(Type.Array(DirectLink), { method: 'GET', path: all(project) }),
})
