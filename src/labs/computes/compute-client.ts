import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { RequestUpload } from '../../compute/remote/bodies.ts'
import type { Call, Connection } from '../../compute/remote/connection.ts'
import { remoteEvents } from '../../compute/remote/events.ts'
import { remoteImages } from '../../compute/remote/images.ts'
import { ofOwnLink } from '../../compute/remote/nodes.ts'
import { path } from '../../compute/remote/paths.ts'
import type { ComputeAnswer } from '../../compute/remote/transport.ts'
import { maxImages, type ReplicationOutcome } from '../../fleet/images/image-copies.ts'
import type { EventAgent, ImageAgent, StoredFile } from '../../host-agent.ts'
import { ignore } from '../../lib/async/ignore.ts'
import { ApiError, missingImage } from '../../lib/errors/api-error.ts'
import { withoutSeparators } from '../../lib/errors/project-name.ts'
import { quotedPath } from '../../lib/text/escape.ts'
import { CaptureStarted } from '../../model/capture.ts'
import { type ConsoleExpect, ConsoleMatch, type NodeReady } from '../../model/console.ts'
import { DirectLink, DirectLinkChanges, DirectLinkJoined } from '../../model/direct-link.ts'
import { capabilitiesPath, HostLoad } from '../../model/host.ts'
import { ConsoleClients, Project, ProjectFile, UdpPort } from '../../model/project.ts'
import { ProjectSnapshot, type RestoreStep } from '../../model/project-snapshot.ts'
import type { Filters } from '../../model/schema/filters.ts'
import { Nio, NioState } from '../../model/schema/nio.ts'

/** A node as its compute shows it. Members of other kinds and versions pass unchanged. */
export type ComputeNode = Static<typeof ComputeNode>
const ComputeNode = Type.Object(
  {
    node_id: Type.String(),
    name: Type.String(),
    status: Type.String(),
    console: Type.Optional(Type.Union([Type.Integer(), Type.Null()])),
    console_type: Type.Optional(Type.String()),
    console_host: Type.Optional(Type.Union([Type.String(), Type.Null()])),
    command_line: Type.Optional(Type.String()),
    node_directory: Type.Optional(Type.String()),
    status_reason: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  },
  { additionalProperties: Type.Unknown() },
)

const BootId = Type.Object({ boot_id: Type.Optional(Type.String()) })

export interface NodePath {
  readonly project_id: string
  readonly node_type: string
  readonly node_id: string
}
export interface PortPath extends NodePath {
  readonly adapter_number: number
  readonly port_number: number
}

export type NodeAction = 'start' | 'stop' | 'suspend' | 'resume' | 'reload'

/** Gives the client of a compute, on behalf of the caller of a request or of the service itself. */
export type ComputeClients = (computeId: string) => ComputeClient

/**
 * The client of the compute interface (API v2) of one compute: this service itself, a compute with an address, or a joined one. Errors are
 * those of the interface and of `Connection`.
 */
export class ComputeClient {
  readonly events: EventAgent
  readonly images: ImageAgent
  readonly #connection: Connection
  readonly #replicateImage: ((image: string) => Promise<ReplicationOutcome>) | undefined

  /** `replicateImage`: copies an image to the compute. */
  constructor(connection: Connection, replicateImage?: (image: string) => Promise<ReplicationOutcome>) {
    this.#connection = connection
    this.#replicateImage = replicateImage
    this.events = remoteEvents(connection)
    this.images = remoteImages(connection)
  }

  /** Creates or opens a project. A lab may have a name from an earlier version that no new project of a compute can have. */
  openProject(input: { project_id: string; name: string; path?: string | null }): Promise<Project> {
    const named = { ...input, name: withoutSeparators(input.name) }
    return this.#project(input.project_id, { method: 'POST', path: '/v2/compute/projects?view=full', input: named })
  }

  projects(): Promise<Project[]> {
    return this.json(Type.Array(Project), { method: 'GET', path: '/v2/compute/projects?view=full&status=all' })
  }

  /** A project, open or closed. 404. */
  project(id: string): Promise<Project> {
    return this.#project(id, { method: 'GET', path: path`/v2/compute/projects/${id}?view=full` })
  }

  renameProject(id: string, name: string): Promise<Project> {
    const input = { name: withoutSeparators(name) }
    return this.#project(id, { method: 'PUT', path: path`/v2/compute/projects/${id}?view=full`, input })
  }

  async closeProject(id: string): Promise<void> {
    await this.done({ method: 'POST', path: path`/v2/compute/projects/${id}/close` })
  }

  /** Removes a project with its files; opens a closed one first, as a compute removes only open ones. */
  async removeProject(id: string): Promise<void> {
    const remove = () => this.done({ method: 'DELETE', path: path`/v2/compute/projects/${id}` })
    await remove().catch(async (error: unknown) => {
      if (!(error instanceof ApiError) || error.code !== 'project-closed') throw error
      // The name is for a new project only: this one keeps its own.
      await this.openProject({ project_id: id, name: id })
      await remove()
    })
  }

  nodes(projectId: string, kind: string): Promise<ComputeNode[]> {
    const call = { method: 'GET', path: path`/v2/compute/projects/${projectId}/${kind}/nodes` } as const
    return this.json(Type.Array(ComputeNode), call)
  }

  /** Without `withImages` 409 when the compute lacks an image of the node. */
  createNode(
    { project_id, node_type }: Omit<NodePath, 'node_id'>,
    input: Pick<NodePath, 'node_id'>,
    { keepsAddresses = false }: { keepsAddresses?: boolean } = {},
  ): Promise<ComputeNode> {
    const query = keepsAddresses ? '&addresses=stored' : ''
    const list = path`/v2/compute/projects/${project_id}/${node_type}/nodes?existing=refuse` + query
    return this.#node(input, { method: 'POST', path: list, input })
  }

  node(node: NodePath): Promise<ComputeNode> {
    return this.#node(node, { method: 'GET', path: nodePath(node) })
  }

  /** The answer of an action (GET) of the kind of a node. */
  nodeAction(node: NodePath, action: string): Promise<Record<string, unknown>> {
    const schema = Type.Record(Type.String(), Type.Unknown())
    return this.json(schema, { method: 'GET', path: `${nodePath(node)}/${action}`, pace: 'work' })
  }

  /** Without `withImages` 409 when the compute lacks an image of the node. */
  updateNode(node: NodePath, input: object): Promise<ComputeNode> {
    return this.#node(node, { method: 'PUT', path: nodePath(node), input })
  }

  /** `later`: its directory stays until the project is closed; a new node with the same id gets it. */
  async removeNode(node: NodePath, { files }: { files: 'now' | 'later' } = { files: 'now' }): Promise<void> {
    await this.done({ method: 'DELETE', path: `${nodePath(node)}?files=${files}` })
  }

  act(node: NodePath, action: NodeAction): Promise<ComputeNode> {
    const call = { method: 'POST', path: `${nodePath(node)}/${action}?view=full` } as const
    return this.withImages(() => this.#node(node, call))
  }

  async duplicate(node: NodePath, destination_node_id: string, destination_project_id?: string): Promise<void> {
    const input = { destination_node_id, ...(destination_project_id !== undefined && { destination_project_id }) }
    await this.done({ method: 'POST', path: `${nodePath(node)}/duplicate`, input })
  }

  /** Types on a console, and waits for output. */
  expect(node: NodePath, input: ConsoleExpect, signal: AbortSignal): Promise<ConsoleMatch> {
    return this.json(ConsoleMatch, { method: 'POST', path: `${nodePath(node)}/console/expect`, input, signal })
  }

  /** Resolves when a node is ready. */
  async ready(node: NodePath, input: NodeReady, signal: AbortSignal): Promise<void> {
    await this.done({ method: 'POST', path: `${nodePath(node)}/ready`, input, signal })
  }

  load(): Promise<HostLoad> {
    return this.json(HostLoad, { method: 'GET', path: '/v2/compute/load' })
  }

  async telnetClients(projectId: string): Promise<number> {
    const call = { method: 'GET', path: path`/v2/compute/projects/${projectId}/console_clients` } as const
    return (await this.json(ConsoleClients, call)).telnet_clients
  }

  /** The boot id of the host, which changes at each boot; undefined where the host has none. */
  async bootId(): Promise<string | undefined> {
    return (await this.json(BootId, { method: 'GET', path: capabilitiesPath, pace: 'work' })).boot_id
  }

  async resetConsole(node: NodePath): Promise<void> {
    await this.done({ method: 'POST', path: `${nodePath(node)}/console/reset` })
  }

  /** The files of an open project, or of a snapshot of it, with their sizes. */
  async files(projectId: string, snapshotId?: string): Promise<ProjectFile[]> {
    const list = path`/v2/compute/projects/${projectId}/files?sums=false`
    const of = snapshotId === undefined ? '' : path`&snapshot=${snapshotId}`
    const files = await this.json(Type.Array(ProjectFile), { method: 'GET', path: list + of, pace: 'work' })
    const wrong = files.find(({ path }) => !isInside(path))
    if (wrong !== undefined) throw this.#connection.wrong(`a file of the name ${quotedPath(wrong.path)}`)
    return files
  }

  async readFile(
    projectId: string,
    file: string,
    { snapshotId, signal }: { snapshotId?: string | undefined; signal?: AbortSignal | undefined } = {},
  ): Promise<StoredFile> {
    const of = snapshotId === undefined ? '' : path`?snapshot=${snapshotId}`
    const sizeOf = ({ headers }: ComputeAnswer): number => {
      const size = /^\d{1,15}$/.exec(headers.get('content-length') ?? '')?.[0]
      if (size === undefined) throw this.#connection.wrong('a file without its size in Content-Length')
      return Number(size)
    }
    const { response, body } = await this.#connection.stream(
      { method: 'GET', path: filePath(projectId, file) + of, ...(signal !== undefined && { signal }) },
      { idleMs: this.#connection.limits.idleMs, size: sizeOf },
    )
    const modified = Date.parse(response.headers.get('last-modified') ?? '')
    return { content: body, size: sizeOf(response), modified: modified || Date.now() }
  }

  async writeFile(
    projectId: string,
    file: string,
    { content, size, signal }: Pick<StoredFile, 'content' | 'size'> & { signal?: AbortSignal },
  ): Promise<void> {
    const upload = new RequestUpload(content, size)
    const call = { method: 'POST', path: filePath(projectId, file), upload, ...(signal !== undefined && { signal }) }
    await this.done(call as Call).catch((error: unknown) => {
      throw upload.failure ?? error
    })
  }

  takeSnapshot(projectId: string, snapshotId: string): Promise<ProjectSnapshot> {
    return this.json(ProjectSnapshot, { method: 'POST', path: snapshotPath(projectId, snapshotId) })
  }

  async removeSnapshot(projectId: string, snapshotId: string): Promise<void> {
    await this.done({ method: 'DELETE', path: snapshotPath(projectId, snapshotId) })
  }

  async restoreSnapshot(projectId: string, snapshotId: string, step: RestoreStep): Promise<void> {
    await this.done({ method: 'POST', path: `${snapshotPath(projectId, snapshotId)}/restore`, input: { step } })
  }

  /** Creates or changes a direct link between two ports of the compute. */
  putLink(projectId: string, linkId: string, input: object): Promise<DirectLink> {
    return this.json(DirectLink, {
      method: 'PUT',
      path: path`/v2/compute/projects/${projectId}/links/${linkId}`,
      input,
    })
  }

  /** Creates many direct links. The result of each is in the order of the input. */
  async joinLinks(projectId: string, links: readonly { readonly link_id: string }[]): Promise<DirectLinkJoined[]> {
    const at = path`/v2/compute/projects/${projectId}/links`
    const joined = await this.json(Type.Array(DirectLinkJoined), { method: 'POST', path: at, input: { links } })
    if (joined.length !== links.length)
      throw this.#connection.wrong(`the results of ${joined.length} links in place of ${links.length}`)
    for (const [index, { link_id }] of links.entries())
      this.#connection.requireId(link_id, joined[index]?.link_id ?? '')
    return joined
  }

  async removeLink(projectId: string, linkId: string): Promise<void> {
    await this.done({ method: 'DELETE', path: path`/v2/compute/projects/${projectId}/links/${linkId}` })
  }

  /** The states of direct links that changed after the `next` of an earlier call. */
  linkChanges(projectId: string, since: string | undefined): Promise<DirectLinkChanges> {
    const query = since === undefined ? '' : path`?since=${since}`
    const call = { method: 'GET', path: path`/v2/compute/projects/${projectId}/link_states` + query } as const
    return this.json(DirectLinkChanges, call)
  }

  async reserveUdpPort(projectId: string): Promise<number> {
    const call = { method: 'POST', path: path`/v2/compute/projects/${projectId}/ports/udp` } as const
    return (await this.json(UdpPort, call)).udp_port
  }

  async releaseUdpPort(projectId: string, port: number): Promise<void> {
    await this.done({ method: 'DELETE', path: path`/v2/compute/projects/${projectId}/ports/udp/${port}` })
  }

  /** Resolves when a NIO of the port could have these filters; 400 when not. */
  async checkFilters(port: PortPath, input: Filters): Promise<void> {
    await this.done({ method: 'POST', path: `${portPath(port)}/check_filters`, input })
  }

  /** Attaches one end of a link of the lab. */
  attach(port: PortPath, input: Nio): Promise<Nio> {
    return this.json(Nio, { method: 'POST', path: `${portPath(port)}/nio`, input, ...ofOwnLink })
  }

  changeNio(port: PortPath, input: object): Promise<Nio> {
    return this.json(Nio, { method: 'PUT', path: `${portPath(port)}/nio`, input })
  }

  async nio(port: PortPath): Promise<NioState> {
    // A cast: the schema is a union of the types of NIO, each with its state.
    return (await this.json(NioState, { method: 'GET', path: `${portPath(port)}/nio`, pace: 'work' })) as NioState
  }

  async detach(port: PortPath): Promise<void> {
    await this.done({ method: 'DELETE', path: `${portPath(port)}/nio` })
  }

  startCapture(port: PortPath, input: object): Promise<Static<typeof CaptureStarted>> {
    return this.json(CaptureStarted, { method: 'POST', path: `${portPath(port)}/start_capture`, input })
  }

  async stopCapture(port: PortPath): Promise<void> {
    await this.done({ method: 'POST', path: `${portPath(port)}/stop_capture` })
  }

  /** Repeats an operation after copying each image that the compute lacks. 409 with the reason when an image cannot be copied. */
  async withImages<T>(operation: () => Promise<T>): Promise<T> {
    const brought = new Set<string>()
    for (;;) {
      try {
        return await operation()
      } catch (error) {
        const image = error instanceof ApiError && error.code === 'image-missing' ? error.extra.image : undefined
        if (image === undefined || brought.has(image) || brought.size === maxImages) throw error
        brought.add(image)
        const outcome = await this.#replicateImage?.(image).catch(
          ignore('the client gets the error about the missing image'),
        )
        if (outcome === undefined) throw error
        if (outcome !== 'brought') throw missingImage(outcome.refused, image)
      }
    }
  }

  async #project(id: string, call: Call): Promise<Project> {
    const project = await this.json(Project, call)
    this.#connection.requireId(id, project.project_id)
    return project
  }

  async #node({ node_id }: Pick<NodePath, 'node_id'>, call: Call): Promise<ComputeNode> {
    const node = await this.json(ComputeNode, call)
    this.#connection.requireId(node_id, node.node_id)
    return node
  }

  /** A JSON answer that must match the schema; members and values of newer versions are accepted. */
  json<T extends TSchema>(schema: T, call: Call): Promise<Static<T>> {
    return this.#connection.json(schema, call)
  }

  async done(call: Call): Promise<void> {
    await this.#connection.done(call)
  }
}

export const nodePath = ({ project_id, node_type, node_id }: NodePath): string =>
  path`/v2/compute/projects/${project_id}/${node_type}/nodes/${node_id}`
export const portPath = ({ adapter_number, port_number, ...node }: PortPath): string =>
  nodePath(node) + path`/adapters/${adapter_number}/ports/${port_number}`

/**
 * Whether the path of a file stays in its project: it becomes a part of the path of requests to other computes, and a name in an archive. Half a
 * surrogate pair cannot be encoded.
 */
const isInside = (file: string): boolean =>
  !file.includes('\0') && !/\p{Surrogate}/u.test(file) && !file.split('/').some((it) => /^\.{0,2}$/.test(it))

const filePath = (projectId: string, file: string): string =>
  path`/v2/compute/projects/${projectId}/files/` + file.split('/').map(encodeURIComponent).join('/')
const snapshotPath = (projectId: string, snapshotId: string): string =>
  path`/v2/compute/projects/${projectId}/snapshots/${snapshotId}`
