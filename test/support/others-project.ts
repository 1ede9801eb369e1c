import { expect } from 'vitest'
import { endpoints } from '../../src/endpoints/endpoints.ts'
import type { Endpoint } from '../../src/server/http/endpoint.ts'
import { hangMs } from './limits.ts'

/** Sends a request with the credentials of the test, or with those of an administrator. */
export type Ask = (
  method: string,
  path: string,
  init?: { body?: string | ArrayBuffer; headers?: Record<string, string> },
) => Promise<Response>

interface Others {
  readonly project_id: string
  readonly node_id: string
  readonly link_id: string
  /** Names that appear in nothing else. */
  readonly names: readonly string[]
}

/**
 * Asks every endpoint for a project of somebody else, by all its names, with credentials for other projects. No answer shows
 * anything of it, and nothing has changed afterwards.
 */
export async function staysUnseen(others: Others, { asked, admin }: { asked: Ask; admin: Ask }): Promise<void> {
  const state = async () => {
    const read = async (tail: string): Promise<unknown> =>
      (await admin('GET', `/v2/projects/${others.project_id}${tail}`)).json()
    // First, and not beside the links: a project tells of these only what has been read of them in the last seconds.
    const project = await read('?links=yes')
    const [nodes, links] = await Promise.all([read('/nodes'), read('/links')])
    return { project, nodes, links }
  }
  const before = await state()
  const leaks: string[] = []
  for (const endpoint of endpoints) {
    for (const path of pathsOf(endpoint, others)) {
      const { method } = endpoint
      const body = method === 'POST' || method === 'PUT' ? JSON.stringify(bodyOf(endpoint, others)) : undefined
      const answer = await asked(method, path, { ...(body !== undefined && { body }) })
      const isStream = endpoint.websocket === true
      const text = isStream ? '' : await answer.text()
      await answer.body?.cancel().catch(() => {})
      // A word that was asked for is said again in the error.
      const unsaid = others.names.filter((name) => !path.includes(encodeURIComponent(name)))
      if (unsaid.some((name) => text.includes(name)))
        leaks.push(`${method} ${path}: ${answer.status} ${text.slice(0, 200)}`)
      const isOfIt =
        path.includes(others.project_id) || others.names.some((name) => path.includes(encodeURIComponent(name)))
      if (isOfIt && answer.status < 400) leaks.push(`${method} ${path}: ${answer.status}`)
    }
  }
  expect(leaks).toEqual([])
  // A busy host may show for a moment that a compute is late.
  await expect.poll(state, { timeout: hangMs }).toEqual(before)
}

/** The path of an endpoint with everything that it can be about. */
function pathsOf({ path }: Endpoint, { project_id, node_id, link_id, names }: Others): string[] {
  const words = path.startsWith('/v2/projects') ? [project_id, encodeURIComponent(names[0] ?? '')] : [project_id]
  const actions = [
    `projects/${project_id}`,
    `projects/${project_id}/pc/nodes/${node_id}`,
    `%70rojects/${project_id}`,
    `projects/${project_id.toUpperCase()}/close`,
    'projects',
    'notifications',
  ]
  const values: Record<string, readonly string[]> = {
    project_id: words,
    node_id: [node_id],
    vm_id: [node_id],
    link_id: [link_id],
    compute_id: ['local'],
    emulator: ['projects'],
    action: path.startsWith('/v2/computes') ? actions : [`pc/nodes/${node_id}`],
    path: ['project-files/captures/a.pcap'],
    symbol_id: ['router'],
    template_id: ['PC'],
  }
  let paths = [path]
  for (const [, name = ''] of path.matchAll(/\{(\w+)\}/g))
    paths = paths.flatMap((it) => (values[name] ?? ['0']).map((value) => it.replace(`{${name}}`, value)))
  return paths
}

function bodyOf({ path }: Endpoint, { project_id, node_id, names }: Others): unknown {
  const end = { project_id, node_type: 'pc', node_id, adapter_number: 0, port_number: 0 }
  if (path === '/v2/links') return { nodes: [end, { ...end, adapter_number: 1 }] }
  if (path.endsWith('/projects')) return { name: names[0], project_id }
  if (path.endsWith('/topology')) {
    const all = { take_over: true, delete_extra: true, recreate: true, restart: true }
    return { document: `lab: ${names[0]}\nnodes:\n  intruder: { kind: pc }\n`, ...all }
  }
  if (path === '/v2/compute/tickets' || path === '/v2/session') return {}
  return { name: 'changed' }
}
