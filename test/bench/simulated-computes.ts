import type { Log } from '../../runtime/node/os/log/log.ts'
import { Joiner } from '../../runtime/node/service/join/joiner.ts'
import type { RelayedAnswer } from '../../src/lib/http/relayed-answer.ts'

export interface SimulatedCompute {
  readonly id: string
  readonly projects: readonly string[]
  readonly token: string
}

/**
 * Computes without emulators in this process: each joins a gateway by a tunnel of its own, with the waits that a compute has, and answers
 * what gateways ask of all computes.
 */
export class SimulatedComputes {
  readonly #joiners: Joiner[] = []
  constructor(gateway: string, version: string, computes: readonly SimulatedCompute[]) {
    for (const compute of computes) {
      const who = { version, compute_id: compute.id, name: `compute ${compute.id}` }
      const { projects, token } = compute
      this.#joiners.push(
        new Joiner({
          url: gateway,
          token,
          who,
          fetch: async ({ url }) => answer(url, version, projects),
          log: silent,
        }),
      )
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#joiners.map((joiner) => joiner.close()))
  }
}

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }

/** What a compute without nodes answers. */
function answer(url: string, version: string, projects: readonly string[]): RelayedAnswer {
  const { pathname } = new URL(url)
  if (pathname === '/v2/compute/capabilities')
    return json({ version, platform: 'linux', node_types: ['pc'], packet_path: 'fast', pc_engine: 'embedded' })
  if (pathname === '/v2/compute/load') return json({ cpu_usage_percent: 10, memory_usage_percent: 50 })
  if (pathname === '/v2/compute/projects') return json(projects.map(projectOf))
  const id = /^\/v2\/compute\/projects\/([^/]+)$/.exec(pathname)?.[1]
  if (id !== undefined && projects.includes(id)) return json(projectOf(id))
  return json({ message: 'There is nothing', status: 404 }, 404)
}

function json(body: unknown, status = 200): RelayedAnswer {
  const content = new TextEncoder().encode(JSON.stringify(body))
  const headers = { 'Content-Type': 'application/json', 'Content-Length': String(content.length), 'X-Route': 'bench' }
  return { status, headers, content }
}

const projectOf = (project_id: string) => ({
  ...{ project_id, name: 'bench', path: '/', location: '/', temporary: false, variables: null, status: 'open' },
})
