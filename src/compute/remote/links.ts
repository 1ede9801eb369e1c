import { Type } from '@sinclair/typebox'
import type { LinkAgent, LinkCheckAgent } from '../../host-agent.ts'
import { DirectLink, DirectLinkChanges, DirectLinkJoined } from '../../model/direct-link.ts'
import { LinkCandidates, LinkCheckResult } from '../../model/link-check.ts'
import type { Connection } from './connection.ts'
import { path, search } from './paths.ts'

const list = Type.Array(DirectLink)
const joined = Type.Array(DirectLinkJoined)
const listPath = (projectId: string): string => path`/v2/compute/projects/${projectId}/links`
const linkPath = (projectId: string, linkId: string): string => listPath(projectId) + path`/${linkId}`

export const remoteLinks = (connection: Connection): LinkAgent => ({
  join: (projectId, linkId, nodes, settings = {}) =>
    connection.json(DirectLink, { method: 'PUT', path: linkPath(projectId, linkId), input: { nodes, ...settings } }),
  async joinAll(projectId, links) {
    const results = await connection.json(joined, { method: 'POST', path: listPath(projectId), input: { links } })
    if (results.length !== links.length)
      throw connection.wrong(`the results of ${results.length} links in place of ${links.length}`)
    for (const [index, { link_id }] of links.entries()) connection.requireId(link_id, results[index]?.link_id ?? '')
    return results
  },
  update: (projectId, linkId, changes) =>
    connection.json(DirectLink, { method: 'PUT', path: linkPath(projectId, linkId), input: changes }),
  async remove(projectId, linkId) {
    await connection.done({ method: 'DELETE', path: linkPath(projectId, linkId) })
  },
  state: (projectId, linkId) => connection.json(DirectLink, { method: 'GET', path: linkPath(projectId, linkId) }),
  states: (projectId) => connection.json(list, { method: 'GET', path: listPath(projectId) }),
  changes: (projectId, since) =>
    connection.json(DirectLinkChanges, {
      ...{ method: 'GET', path: path`/v2/compute/projects/${projectId}/link_states` + search({ since }) },
    }),
})

const portPath = (projectId: string, port: number): string => path`/v2/compute/projects/${projectId}/ports/udp/${port}`

export const remoteLinkChecks = (connection: Connection): LinkCheckAgent => ({
  candidates: (projectId, port) =>
    connection.json(LinkCandidates, { method: 'GET', path: `${portPath(projectId, port)}/candidates`, pace: 'work' }),
  run: (projectId, port, input, signal) =>
    connection.json(LinkCheckResult, {
      method: 'POST',
      path: `${portPath(projectId, port)}/check`,
      input,
      ...(signal !== undefined && { signal }),
    }),
})
