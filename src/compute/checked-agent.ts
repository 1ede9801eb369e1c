import type { TObject, TSchema } from '@sinclair/typebox'
import type { HostAgent, LinkAgent, NodeAgent, ProjectAgent } from '../host-agent.ts'
import { ignoreNotFound } from '../lib/errors/api-error.ts'
import { CaptureStart, CaptureStream } from '../model/capture.ts'
import { ConsoleExpect, NodeReady } from '../model/console.ts'
import { DirectLinkPut, DirectLinksJoin } from '../model/direct-link.ts'
import { namedAction } from '../model/kinds/kind.ts'
import { kindOf, type NodeCreate, type NodeUpdate, nodeView } from '../model/kinds/node.ts'
import { ProjectCreate, ProjectUpdate } from '../model/project.ts'
import { Filters } from '../model/schema/filters.ts'
import { nioSchemas } from '../model/schema/nio.ts'
import { requireAddresses } from '../model/validation/addresses.ts'
import { withReadOnly } from '../model/validation/read-only-members.ts'
import { validate } from '../model/validation/validate.ts'

/**
 * The agent of this machine for the labs of its own service. It checks its input by the schemas by which the endpoints of the compute
 * check theirs, so that a lab gets the same answers, and the same errors, from its own machine and from another one.
 */
export const checkedAgent = (agent: HostAgent): HostAgent => ({
  ...agent,
  projects: checkedProjects(agent.projects),
  nodes: checkedNodes(agent.nodes),
  links: checkedLinks(agent.links),
})

const checkedProjects = (projects: ProjectAgent): ProjectAgent => ({
  list: (status) => projects.list(status),
  get: (id) => projects.get(id),
  create: async (input) => projects.create(validate(ProjectCreate, input)),
  update: async (id, changes) => projects.update(id, validate(ProjectUpdate, changes)),
  close: (id) => projects.close(id),
  remove: (id) => projects.remove(id),
  commit: (id) => projects.commit(id),
  reserveUdpPort: (id, nodeId) => projects.reserveUdpPort(id, nodeId),
  releaseUdpPort: (id, port, nodeId) => projects.releaseUdpPort(id, port, nodeId),
})

function checkedNodes(nodes: NodeAgent): NodeAgent {
  return {
    list: (projectId, kind) => nodes.list(projectId, kind),
    async create(projectId, kind, input, options) {
      const descriptor = kindOf(kind)
      const given = (await withReadOnly(descriptor.create, descriptor.node).read(input)) as NodeCreate
      const { node_id } = given
      const known = async () =>
        typeof node_id === 'string'
          ? nodes.get({ project_id: projectId, kind, node_id }).catch(ignoreNotFound)
          : undefined
      if (options.addresses === undefined) await requireAddresses(descriptor, given, known)
      return nodes.create(projectId, kind, given as typeof input, options)
    },
    get: (ref) => nodes.get(ref),
    async update(ref, changes) {
      const descriptor = kindOf(ref.kind)
      const { update, node, v2 } = descriptor
      const read = await withReadOnly(update, node).read(changes, async () => nodeView(await nodes.get(ref)))
      const given = (v2?.changes?.(read as Record<string, unknown>) ?? read) as NodeUpdate
      await requireAddresses(descriptor, given, () => nodes.get(ref))
      return nodes.update(ref, given as typeof changes)
    },
    remove: (ref, options) => nodes.remove(ref, options),
    start: async (ref, input) => nodes.start(ref, checkedIf(kindOf(ref.kind).start, input)),
    stop: (ref) => nodes.stop(ref),
    suspend: (ref) => nodes.suspend(ref),
    resume: (ref) => nodes.resume(ref),
    reload: (ref) => nodes.reload(ref),
    duplicate: (ref, destinationId, project) => nodes.duplicate(ref, destinationId, project),
    attachNio: async (ref, port, nio, origin) =>
      nodes.attachNio(ref, port, validate(nioSchemas[nio.type] as TObject, nio) as typeof nio, origin),
    async updateNio(ref, port, { filters, ...changes }) {
      return nodes.updateNio(ref, port, { ...changes, ...(filters != null && { filters: validate(Filters, filters) }) })
    },
    detachNio: (ref, port) => nodes.detachNio(ref, port),
    checkFilters: async (ref, port, filters) => nodes.checkFilters(ref, port, validate(Filters, filters)),
    nioState: (ref, port) => nodes.nioState(ref, port),
    startCapture: async (ref, port, wanted) => nodes.startCapture(ref, port, validate(CaptureStart, wanted)),
    stopCapture: (ref, port) => nodes.stopCapture(ref, port),
    streamCapture: async (ref, port, wanted, signal) =>
      nodes.streamCapture(ref, port, validate(CaptureStream, wanted), signal),
    resetConsole: (ref) => nodes.resetConsole(ref),
    telnetClients: (projectId) => nodes.telnetClients(projectId),
    expect: async (ref, wanted, signal) => nodes.expect(ref, validate(ConsoleExpect, wanted), signal),
    ready: async (ref, wanted, signal) => nodes.ready(ref, validate(NodeReady, wanted), signal),
    action: async (ref, name, input, signal) =>
      nodes.action(ref, name, checkedIf(namedAction(kindOf(ref.kind).actions, name).input, input), signal),
  }
}

const checkedLinks = (links: LinkAgent): LinkAgent => ({
  async join(projectId, linkId, ports, settings) {
    const { nodes = ports, ...given } = validate(DirectLinkPut, { nodes: ports, ...settings })
    return links.join(projectId, linkId, nodes, given)
  },
  joinAll: async (projectId, all) => links.joinAll(projectId, validate(DirectLinksJoin, { links: all }).links),
  update: async (projectId, linkId, changes) => {
    const { nodes: _, ...given } = validate(DirectLinkPut, changes)
    return links.update(projectId, linkId, given)
  },
  remove: (projectId, linkId) => links.remove(projectId, linkId),
  state: (projectId, linkId) => links.state(projectId, linkId),
  states: (projectId) => links.states(projectId),
  changes: (projectId, since) => links.changes(projectId, since),
})

/** The input of an operation, by the schema that the kind has for it; a kind without one does not look at the input. */
const checkedIf = (schema: TSchema | undefined, input: unknown): unknown =>
  schema === undefined ? input : validate(schema, input ?? {})
