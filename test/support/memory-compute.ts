import { onTestFinished } from 'vitest'
import { peersOnOneHost } from '../../src/fleet/link-check/peer-address.ts'
import type { HostAgent, PortRef } from '../../src/host-agent.ts'
import type { ComputePool } from '../../src/labs/computes/compute-pool.ts'
import type { ReportedNode } from '../../src/labs/lab/node-on-compute.ts'
import type { LabStorage } from '../../src/labs/lab/store.ts'
import type { LabPorts, Labs } from '../../src/labs/service.ts'
import { ApiError, conflict, notFound } from '../../src/lib/errors/api-error.ts'
import type { DirectLinkJoined, DirectLinkState, LinkTraffic } from '../../src/model/direct-link.ts'
import { isAlwaysOn, kindOf, type NodeKindName, type NodeRef } from '../../src/model/kinds/node.ts'
import { openLabs } from '../../src/server/compose.ts'
import { memoryPorts } from './memory-labs.ts'

type Members = Record<string, unknown>
const portKey = ({ node_id }: NodeRef, { adapter, port }: PortRef) => `${node_id}/${adapter}/${port}`
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
  readonly nodes = new Map<string, ReportedNode>()
  readonly #kinds = new Map<string, NodeKindName>()
  readonly links = new Map<string, Direct>()
  /** Files of captures, by node and port. */
  readonly captures = new Map<string, string>()
  /** Paths of the files of all captures that ever began. */
  readonly captureFiles = new Set<string>()
  /** Directories that a removal has left for an undo. */
  readonly left = new Set<string>()
  /** Its projects. */
  readonly projects = new Map<string, { name: string; isOpen: boolean }>()
  /** Called before each change; it may throw. */
  beforeChange: (what: string) => void = () => {}

  readonly agent = (): HostAgent => {
    const change =
      <T extends unknown[], R>(what: string, run: (...input: T) => R) =>
      async (...input: T): Promise<R> => {
        await Promise.resolve()
        this.beforeChange(what)
        return structuredClone(run(...input))
      }
    const act = (status: string) => change('act', (ref: NodeRef) => Object.assign(this.#node(ref), { status }))
    const agent = {
      events: { open: async () => new ReadableStream() },
      projects: {
        create: async ({ project_id, name: wanted }: { project_id: string; name: string }) => {
          const name = this.projects.get(project_id)?.name ?? wanted
          this.projects.set(project_id, { name, isOpen: true })
          return { project: { project_id, name, path: null }, created: true }
        },
        get: async (id: string) => structuredClone(this.#project(id)),
        list: async () => [],
        update: async (id: string, { name }: { name: string }) => Object.assign(this.#project(id), { name }),
        close: async (id: string) => void Object.assign(this.#project(id), { isOpen: false }),
        remove: async (id: string) => {
          this.#project(id)
          this.projects.delete(id)
        },
      },
      host: {
        capabilities: async () => ({}),
        load: async () => ({ cpu_usage_percent: 0 }),
      },
      // It cannot tell which images it has.
      images: { read: away, list: away },
      files: {
        write: change('write', () => undefined),
        list: async () => [...this.captureFiles].map((path) => ({ path })),
      },
      nodes: {
        list: async (_: string, kind: string) =>
          [...this.nodes.values()].filter(({ node_id }) => this.#kinds.get(node_id) === kind),
        get: async (ref: NodeRef) => structuredClone(this.#node(ref)),
        create: change('create', (_: string, kind: NodeKindName, input: Members) => ({
          node: this.#create(kind, input),
          created: true,
        })),
        // What is read of a node by an action is among its members here.
        action: async (ref: NodeRef) => structuredClone(this.#node(ref)),
        update: change('update', (ref: NodeRef, input: Members) => this.#update(this.#node(ref), input)),
        remove: change('remove', (ref: NodeRef) => {
          this.#node(ref)
          this.nodes.delete(ref.node_id)
        }),
        ...{ start: act('started'), stop: act('stopped'), reload: act('stopped') },
        ...{ suspend: act('stopped'), resume: act('stopped') },
        startCapture: change('capture', (ref: NodeRef, port: PortRef, { capture_file_name }: Members) => {
          this.captures.set(portKey(ref, port), String(capture_file_name))
          this.captureFiles.add(`project-files/captures/${capture_file_name}`)
        }),
        stopCapture: change('capture', (ref: NodeRef, port: PortRef) => {
          if (!this.captures.delete(portKey(ref, port))) throw conflict('Nothing is captured there')
        }),
        nioState: async (ref: NodeRef, port: PortRef) => ({ capture: this.captures.get(portKey(ref, port)) ?? null }),
      },
      links: {
        join: change('link', (_: string, id: string, nodes: Direct['nodes'], settings: object) =>
          this.#link(id, { ...settings, nodes }),
        ),
        joinAll: change('link', (_: string, links: readonly (Direct & { link_id: string })[]) =>
          links.map((link) => this.#joined(link)),
        ),
        remove: change('unlink', (_: string, id: string) => void this.links.delete(id)),
      },
    }
    return agent as unknown as HostAgent
  }

  #kindOf = ({ node_id }: { node_id: string }) => this.#kinds.get(node_id) as NodeKindName

  #project(id: string): { name: string; isOpen: boolean } {
    const project = this.projects.get(id)
    if (project === undefined) throw notFound('There is no such project', { code: 'no-such-project' })
    return project
  }

  #node({ node_id }: Pick<NodeRef, 'node_id'>): ReportedNode {
    const node = this.nodes.get(node_id)
    if (node === undefined) throw notFound('There is no such node', { code: 'no-such-node' })
    return node
  }

  #create(kind: NodeKindName, input: Members): ReportedNode {
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

  #update(node: ReportedNode, input: Members): ReportedNode {
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
      const node = this.#node(end)
      const ports = kindOf(this.#kindOf(node)).ports?.(node as unknown as Members) ?? []
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

function removed(id: string): HostAgent {
  const refuse = async () => {
    throw notFound(`compute_id: there is no compute ${id}`, { code: 'no-such-compute' })
  }
  return new Proxy({} as HostAgent, { get: () => new Proxy({}, { get: () => refuse }) })
}

type Groups = { readonly [Group in keyof HostAgent]?: Partial<Record<keyof HostAgent[Group], unknown>> }

/** The agent with other operations in place of some. */
export function overriding(agent: HostAgent, groups: Groups): HostAgent {
  const changed = Object.entries(groups).map(([group, operations]) => [
    group,
    { ...agent[group as keyof HostAgent], ...operations },
  ])
  return { ...agent, ...Object.fromEntries(changed) }
}

/** An operation by its group and name. */
export type OperationName =
  | 'nodes.create'
  | 'nodes.update'
  | 'nodes.remove'
  | 'links.join'
  | 'links.joinAll'
  | 'links.remove'
type AnyOperation = (...input: unknown[]) => Promise<unknown>

/** The agent with an operation that `wrap` makes of the present one. */
export function wrapping(agent: HostAgent, name: OperationName, wrap: (real: AnyOperation) => AnyOperation): HostAgent {
  const [group, operation] = name.split('.') as [keyof HostAgent, string]
  const real = agent[group][operation as never] as AnyOperation
  return overriding(agent, { [group]: { [operation]: wrap(real) } })
}

/**
 * Labs on one compute in memory; `store`: what they kept before. `others`: further computes, by their ids. Another compute of them was removed
 * from the fleet. They end with the test: timers of theirs would be those of a later test of the process.
 */
export async function labsInMemory(
  compute: MemoryCompute,
  store?: LabStorage,
  { others = new Map(), ...more }: Partial<LabPorts> & { others?: Map<string, MemoryCompute> } = {},
): Promise<Labs> {
  const computes: ComputePool = {
    agent: (id) => (id === 'local' ? compute : others.get(id))?.agent() ?? removed(id),
    choose: async (wanted) => wanted ?? 'local',
    candidates: async () => ['local'],
    absent: async () => [],
    all: async () => ['local'],
    registered: async () => ['local', ...others.keys()],
    peers: async (ends) => peersOnOneHost(ends),
  }
  const labs = await openLabs({ ...memoryPorts(store), ...more }, computes)
  onTestFinished(() => labs.shutdown())
  return labs
}
