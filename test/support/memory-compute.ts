import { onTestFinished } from 'vitest'
import { EventLog } from '../../src/fleet/events/event-log.ts'
import { peersOnOneHost } from '../../src/fleet/link-check/peer-address.ts'
import type { ComputeClient, ComputeNode } from '../../src/labs/computes/compute-client.ts'
import type { LabComputes } from '../../src/labs/computes/computes.ts'
import type { LabStorage } from '../../src/labs/lab/store.ts'
import { Labs } from '../../src/labs/service.ts'
import { ApiError, conflict, notFound } from '../../src/lib/errors/api-error.ts'
import type { DirectLinkJoined, DirectLinkState, LinkTraffic } from '../../src/model/direct-link.ts'
import { isAlwaysOn, kindOf, type NodeKindName } from '../../src/model/kinds/node.ts'
import { MemoryLabs } from './memory-labs.ts'

type Members = Record<string, unknown>
interface NodeIds {
  readonly project_id: string
  readonly node_type: string
  readonly node_id: string
}
interface Port extends NodeIds {
  readonly adapter_number: number
  readonly port_number: number
}
const portKey = ({ node_id, adapter_number, port_number }: Port) => `${node_id}/${adapter_number}/${port_number}`
interface Direct {
  readonly nodes: readonly { node_id: string; adapter_number: number; port_number: number }[]
}

/** The defaults that a compute shows for a node of a kind. */
function shownDefaults(kind: NodeKindName): Members {
  const { node } = kindOf(kind)
  const known = Object.entries(node.properties).flatMap(([key, schema]) =>
    schema.default === undefined ? [] : [[key, structuredClone(schema.default)]],
  )
  const eight = Array.from({ length: 8 }, (_, port_number) => ({
    ...portDefaults(kind),
    name: `Ethernet${port_number}`,
    port_number,
  }))
  return { ...Object.fromEntries(known), ...('ports_mapping' in node.properties && { ports_mapping: eight }) }
}

function portDefaults(kind: NodeKindName): Members {
  const port = (kindOf(kind).node.properties.ports_mapping?.items?.properties ?? {}) as Record<string, Members>
  return Object.fromEntries(Object.entries(port).flatMap(([key, it]) => ('default' in it ? [[key, it.default]] : [])))
}

/**
 * A compute that keeps its nodes and links in memory, and refuses what a real one refuses: ports that are not there or taken, fields that
 * its schemas lack, changes of names that are taken.
 */
export class MemoryCompute {
  readonly nodes = new Map<string, ComputeNode>()
  readonly #kinds = new Map<string, NodeKindName>()
  readonly links = new Map<string, Direct>()
  /** Files of captures, by node and port. */
  readonly captures = new Map<string, string>()
  /** Directories that a removal has left for an undo. */
  readonly left = new Set<string>()
  /** Its projects. */
  readonly projects = new Map<string, { name: string; isOpen: boolean }>()
  /** Called before each change; it may throw. */
  beforeChange: (what: string) => void = () => {}

  readonly client = (): ComputeClient => {
    const change =
      <T extends unknown[], R>(what: string, run: (...input: T) => R) =>
      async (...input: T): Promise<R> => {
        await Promise.resolve()
        this.beforeChange(what)
        return structuredClone(run(...input))
      }
    const client = {
      events: { open: async () => new ReadableStream() },
      openProject: async ({ project_id, name: wanted }: { project_id: string; name: string }) => {
        const name = this.projects.get(project_id)?.name ?? wanted
        this.projects.set(project_id, { name, isOpen: true })
        return { project_id, name, path: null }
      },
      project: async (id: string) => structuredClone(this.#project(id)),
      projects: async () => [],
      renameProject: async (id: string, name: string) => Object.assign(this.#project(id), { name }),
      closeProject: async (id: string) => void Object.assign(this.#project(id), { isOpen: false }),
      removeProject: async (id: string) => {
        this.#project(id)
        this.projects.delete(id)
      },
      bootId: async () => undefined,
      load: async () => ({ cpu_usage_percent: 0 }),
      nodes: async (_: string, kind: string) =>
        [...this.nodes.values()].filter(({ node_id }) => this.#kinds.get(node_id) === kind),
      node: async (place: NodeIds) => structuredClone(this.#node(place)),
      createNode: change('create', (at: Omit<NodeIds, 'node_id'>, input: Members) =>
        this.#create(at.node_type as NodeKindName, input),
      ),
      withImages: <T>(operation: () => Promise<T>) => operation(),
      // It cannot tell which images it has.
      images: { read: away, list: away },
      // What is read of a node by an action is among its members here.
      nodeAction: async (place: NodeIds) => structuredClone(this.#node(place)),
      writeFile: change('write', () => undefined),
      updateNode: change('update', (place: NodeIds, input: Members) => this.#update(this.#node(place), input)),
      removeNode: change('remove', (place: NodeIds) => {
        this.#node(place)
        this.nodes.delete(place.node_id)
      }),
      act: change('act', (place: NodeIds, action: string) =>
        Object.assign(this.#node(place), { status: action === 'start' ? 'started' : 'stopped' }),
      ),
      putLink: change('link', (_: string, id: string, link: Direct) => this.#link(id, link)),
      joinLinks: change('link', (_: string, links: readonly (Direct & { link_id: string })[]) =>
        links.map((link) => this.#joined(link)),
      ),
      startCapture: change('capture', (port: Port, { capture_file_name }: Members) => {
        this.captures.set(portKey(port), String(capture_file_name))
      }),
      stopCapture: change('capture', (port: Port) => {
        if (!this.captures.delete(portKey(port))) throw conflict('Nothing is captured there')
      }),
      nio: async (port: Port) => ({ capture: this.captures.get(portKey(port)) ?? null }),
      removeLink: change('unlink', (_: string, id: string) => void this.links.delete(id)),
    }
    return client as unknown as ComputeClient
  }

  #kindOf = ({ node_id }: { node_id: string }) => this.#kinds.get(node_id) as NodeKindName

  #project(id: string): { name: string; isOpen: boolean } {
    const project = this.projects.get(id)
    if (project === undefined) throw notFound('There is no such project', { code: 'no-such-project' })
    return project
  }

  #node({ node_id }: NodeIds): ComputeNode {
    const node = this.nodes.get(node_id)
    if (node === undefined) throw notFound('There is no such node', { code: 'no-such-node' })
    return node
  }

  #create(kind: NodeKindName, input: Members): ComputeNode {
    const { create } = kindOf(kind)
    const unknown = Object.keys(input).find((key) => !(key in create.properties))
    if (unknown !== undefined) throw conflict(`${unknown}: unknown`)
    if (this.nodes.has(String(input.node_id))) throw conflict('There is such a node', { code: 'node-exists' })
    const node = {
      ...shownDefaults(kind),
      ...(kind === 'pc' && { startup_script: null, mac_address: '00:50:79:66:68:00' }),
      console: 5000,
      ...(input as { node_id: string; name: string }),
      status: isAlwaysOn(kind) ? 'started' : 'stopped',
    }
    this.nodes.set(node.node_id, node as never)
    this.#kinds.set(node.node_id, kind)
    return node
  }

  #update(node: ComputeNode, input: Members): ComputeNode {
    const { update } = kindOf(this.#kindOf(node))
    const unknown = Object.keys(input).find((key) => !(key in update.properties))
    if (unknown !== undefined) throw conflict(`${unknown}: unknown`)
    const running = node.status !== 'stopped' && !isAlwaysOn(this.#kindOf(node))
    if (running && Object.keys(input).some((key) => key === 'adapters')) throw conflict('It runs')
    return Object.assign(node, input)
  }

  /** What became of a link of a batch: the others do not depend on it. */
  #joined({ link_id, ...link }: Direct & { link_id: string }): DirectLinkJoined {
    try {
      this.#link(link_id, link)
      return { link_id, error: null }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      return { link_id, error: { status: error.status, message: error.message } }
    }
  }

  #link(link_id: string, link: Direct): Direct & DirectLinkState {
    for (const end of link.nodes) {
      const node = this.#node(end as unknown as NodeIds)
      const ports = kindOf(this.#kindOf(node)).ports?.(node) ?? []
      if (!ports.some(({ adapter, port }) => adapter === end.adapter_number && port === end.port_number))
        throw conflict(`${node.name} has no port ${end.adapter_number}/${end.port_number}`)
      for (const [other, { nodes }] of this.links)
        if (
          other !== link_id &&
          nodes.some(
            (it) =>
              JSON.stringify([it.node_id, it.adapter_number, it.port_number]) ===
              JSON.stringify([end.node_id, end.adapter_number, end.port_number]),
          )
        )
          throw conflict('Something is attached there', { code: 'port-taken' })
    }
    this.links.set(link_id, link)
    return { ...link, link_id, verdict: 'ok', reason: null, ab: noTraffic, ba: noTraffic }
  }
}

const away = async (): Promise<never> => {
  throw new ApiError(503, 'The images cannot be read')
}
const noTraffic: LinkTraffic = { frames: 0, bytes: 0, dropped: 0, frames_per_s: 0, bits_per_s: 0 }

function removed(id: string): ComputeClient {
  const refuse = async () => {
    throw notFound(`compute_id: there is no compute ${id}`, { code: 'no-such-compute' })
  }
  return new Proxy({} as ComputeClient, { get: () => refuse })
}

/**
 * Labs on one compute in memory; `store`: what they kept before. `others`: further computes, by their ids. Another compute of them was removed
 * from the fleet. They end with the test: timers of theirs would be those of a later test of the process.
 */
export async function labsInMemory(
  compute: MemoryCompute,
  store: LabStorage = new MemoryLabs(),
  {
    others = new Map(),
    ...more
  }: Partial<Parameters<typeof Labs.start>[0]> & { others?: Map<string, MemoryCompute> } = {},
): Promise<Labs> {
  const computes: LabComputes = {
    client: (id) => (id === 'local' ? compute : others.get(id))?.client() ?? removed(id),
    choose: async (wanted) => wanted ?? 'local',
    candidates: async () => ['local'],
    absent: async () => [],
    all: async () => ['local'],
    registered: async () => ['local', ...others.keys()],
    peers: async (ends) => peersOnOneHost(ends),
  }
  const load = { cpu_usage_percent: 0, memory_usage_percent: 0 }
  const labs = await Labs.start({
    store,
    computes,
    events: new EventLog({ history: 1000, feeds: () => 64 }, () => load),
    warn: (message) => process.stderr.write(`${message}\n`),
    report: (error, what) => process.stderr.write(`${what}: ${(error as Error).stack}\n`),
    ...more,
  })
  onTestFinished(() => labs.shutdown())
  return labs
}
