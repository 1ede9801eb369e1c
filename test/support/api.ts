import { inject } from 'vitest'
import { oneRequestEach } from './one-request-each.ts'
import { provided, testWith } from './test-with.ts'

/** Requests to the service that the test project runs. */
export const base: string = inject('baseUrl')

/** Projects that are created with it are on one host. */
export const sameHost = inject('isWorker') ? { compute_id: 'c0' } : {}

/** For what the Worker itself is not, or does not have: an open service that is a compute of its own. The app in workerd is it. */
export const notByWorker = testWith(
  provided(!inject('isRealWorker'), 'the Worker is no compute, and its app is tested in workerd by itself'),
)

/** How often `send` repeated a request; more than this in a test process is a fault of the server. */
let repeats = 0
const maxRepeats = 3

/**
 * Sends a request. Only a GET goes by a connection that an earlier request has used, and only a GET is repeated when such a
 * connection broke: a server ends one that was idle for seconds, perhaps just now, and reads nothing more that comes by it.
 */
export async function send(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = { 'accept-encoding': 'identity', ...init.headers }
  const isGet = (init.method ?? 'GET') === 'GET'
  const request = () =>
    fetch(base + path, { redirect: 'manual', ...init, headers, ...(!isGet && { dispatcher: oneRequestEach }) })
  try {
    return await request()
  } catch (error) {
    const { code } = ((error as Error).cause ?? {}) as { code?: string }
    if (!isGet || !['UND_ERR_SOCKET', 'ECONNRESET'].includes(code ?? '')) throw error
    repeats += 1
    if (repeats > maxRepeats) throw new Error(`${repeats} connections broke under a GET`, { cause: error })
    process.stderr.write(`repeated: GET ${path}, whose connection broke (${repeats})\n`)
    return request()
  }
}

export const post = (path: string, body: unknown = {}): Promise<Response> =>
  send(path, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) })
export const put = (path: string, body: unknown): Promise<Response> =>
  send(path, { method: 'PUT', body: JSON.stringify(body) })
export const del = (path: string): Promise<Response> => send(path, { method: 'DELETE' })

export async function body<T = Record<string, unknown>>(answer: Response | Promise<Response>): Promise<T> {
  return (await (await answer).json()) as T
}

/** A new project; its path in v2. */
export async function newProject(
  input: Record<string, unknown> = { name: 'lab' },
): Promise<{ id: string; v1: string; v2: string }> {
  const answer = await post('/v2/compute/projects', input)
  if (!answer.ok) throw new Error(await answer.text())
  const { project_id } = await body<{ project_id: string }>(answer)
  return { id: project_id, v1: `/v1/projects/${project_id}`, v2: `/v2/compute/projects/${project_id}` }
}

interface NewNode {
  readonly id: string
  /** In v2. */
  readonly path: string
}

async function newNode(project: { v2: string }, kind: string, input: Record<string, unknown>): Promise<NewNode> {
  const answer = await post(`${project.v2}/${kind}/nodes`, input)
  if (answer.status !== 201) throw new Error(await answer.text())
  const { node_id } = await body<{ node_id: string }>(answer)
  return { id: node_id, path: `${project.v2}/${kind}/nodes/${node_id}` }
}

export const newPc = (project: { v2: string }, input: Record<string, unknown> = {}): Promise<NewNode> =>
  newNode(project, 'pc', { name: 'PC', ...input })

export const newMachine = (project: { v2: string }, input: Record<string, unknown> = {}): Promise<NewNode> =>
  newNode(project, 'machine-emulator', { name: 'R1', platform: 'x86_64', ...input })
