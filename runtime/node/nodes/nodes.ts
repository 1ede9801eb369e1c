import { randomBytes } from 'node:crypto'
import { cp, mkdir, rename, rm } from 'node:fs/promises'
import { Writable } from 'node:stream'
import { v4 as uuid } from 'uuid'
import { badRequest, conflict, notFound } from '../../../src/errors.ts'
import type { CaptureSource, ConsoleStream, NodeAgent, PortRef } from '../../../src/host-agent.ts'
import type { CaptureStart, CaptureStarted, LinkTypeName } from '../../../src/model/capture.ts'
import type { Happening } from '../../../src/model/event.ts'
import type { Nio, NioState } from '../../../src/model/nio.ts'
import type { Node, NodeCreate, NodeKindName, NodeRef, NodeUpdate } from '../../../src/model/node.ts'
import type { NodeKind } from '../kinds/kind.ts'
import type { PortAllocator } from '../ports/allocator.ts'
import { requireSpace, translate, translated } from '../projects/disk.ts'
import type { OpenProject } from '../projects/open-project.ts'
import { writeProject } from '../projects/project-record.ts'
import { Serial } from '../serial.ts'
import { webStream } from '../web-stream.ts'
import type { Captures } from './captures.ts'
import { type KeeperLink, refusal } from './keeper-link.ts'
import { LabNode } from './lab-node.ts'
import type { LifeCycle } from './life-cycle.ts'
import type { Links } from './links.ts'

export interface NodesOptions {
  readonly kinds: Readonly<Record<NodeKindName, NodeKind>>
  /** An open project that is not being closed; 404, 409. */
  readonly project: (projectId: string) => Promise<OpenProject>
  readonly keeper: KeeperLink
  readonly ports: PortAllocator
  readonly links: Links
  readonly captures: Captures
  readonly lifeCycle: LifeCycle
  readonly floorMb: () => number
  readonly emit: (node: LabNode, happening: Happening) => void
}

/** The nodes of all open projects. Operations on one node happen one after the other, in the order they came. */
export class Nodes implements NodeAgent {
  /** By `{kind}:{node_id}`: ids are unique a kind on the host. */
  readonly all = new Map<string, LabNode>()
  readonly #serial = new Serial()
  readonly #options: NodesOptions

  constructor(options: NodesOptions) {
    this.#options = options
  }

  async list(projectId: string, kind: NodeKindName): Promise<Node[]> {
    const project = await this.#options.project(projectId)
    return [...project.nodes.values()].filter((node) => node.kind.kind === kind).map((node) => node.view())
  }

  async get(ref: NodeRef): Promise<Node> {
    return (await this.#find(ref)).view()
  }

  async create(
    projectId: string,
    kindName: NodeKindName,
    input: NodeCreate,
    { existing }: { existing: 'refuse' | 'update' },
  ): Promise<{ node: Node; created: boolean }> {
    const project = await this.#options.project(projectId)
    const nodeId = typeof input.node_id === 'string' ? input.node_id : uuid()
    const key = `${kindName}:${nodeId}`
    return this.#serial.run(key, async () => {
      project.requireUsable()
      const known = this.all.get(key)
      if (known === undefined)
        return { node: await this.#create(project, this.#options.kinds[kindName], nodeId, input), created: true }
      if (known.project !== project) throw conflict(`node_id: ${nodeId} is a node of another project`)
      const created = known.isUnclaimed
      if (!created && existing === 'refuse') throw conflict(`The node ${nodeId} exists already`)
      const { node_id: _, startup_script: __, ...changes } = input
      await this.#update(known, changes)
      known.isUnclaimed = false
      return { node: known.view(), created }
    })
  }

  update(ref: NodeRef, changes: NodeUpdate): Promise<Node> {
    return this.#with(ref, async (node) => {
      await this.#update(node, changes)
      return node.view()
    })
  }

  remove(ref: NodeRef, { files }: { files: 'now' | 'later' }): Promise<void> {
    return this.#with(ref, async (node) => {
      const { directory } = node
      await this.#teardown(node)
      await node.removeRecord()
      // A disk that is full cannot remember what a commit has to remove: then that is removed at once.
      const isNoted = files === 'later' && (await this.#note(node))
      if (!isNoted) await translated('The directory of the node', () => rm(directory, { recursive: true, force: true }))
      this.#options.emit(node, { type: 'node.deleted', node: node.view() })
    })
  }

  start(ref: NodeRef): Promise<Node> {
    return this.#act(ref, (node) => this.#options.lifeCycle.start(node))
  }

  stop(ref: NodeRef): Promise<Node> {
    return this.#act(ref, (node) => this.#options.lifeCycle.stop(node))
  }

  /** No kind of this version can be paused: a pc goes on running, as its clients expect. */
  suspend(ref: NodeRef): Promise<Node> {
    return this.#act(ref, async () => {})
  }

  resume(ref: NodeRef): Promise<Node> {
    return this.#act(ref, async (node) => {
      if (node.status === 'stopped') throw conflict('The node is stopped: start it instead')
    })
  }

  reload(ref: NodeRef): Promise<Node> {
    return this.#act(ref, async (node) => {
      await this.#options.lifeCycle.stop(node)
      await this.#options.lifeCycle.start(node)
    })
  }

  async duplicate(ref: NodeRef, destinationId: string): Promise<Node> {
    const source = await this.#find(ref)
    return this.#with({ ...ref, node_id: destinationId }, async (destination) => {
      if (destination === source) throw badRequest('destination_node_id: expected another node')
      if (destination.status !== 'stopped') throw conflict('destination_node_id: the node runs, stop it first')
      await requireSpace(destination.project.path, this.#options.floorMb())
      await translated('The copy', () => replaceDirectory(source.directory, destination.directory))
      destination.record.properties = destination.kind.duplicated(source.record, destination.record)
      await destination.kind.update(destination, {}, source.record.name)
      await destination.save()
      this.#options.emit(destination, destination.updated())
      return destination.view()
    })
  }

  attachNio(ref: NodeRef, port: PortRef, nio: Nio): Promise<Nio> {
    return this.#with(ref, (node) => this.#options.links.attach(node, port, nio))
  }

  updateNio(ref: NodeRef, port: PortRef, nio: Nio): Promise<Nio> {
    return this.#with(ref, (node) => this.#options.links.update(node, port, nio))
  }

  detachNio(ref: NodeRef, port: PortRef): Promise<void> {
    return this.#with(ref, (node) => this.#options.links.detach(node, port))
  }

  nioState(ref: NodeRef, port: PortRef): Promise<NioState> {
    return this.#with(ref, (node) => this.#options.links.state(node, port))
  }

  startCapture(ref: NodeRef, port: PortRef, wanted: CaptureStart): Promise<CaptureStarted> {
    return this.#with(ref, (node) => this.#options.captures.start(node, port, wanted))
  }

  stopCapture(ref: NodeRef, port: PortRef): Promise<void> {
    return this.#with(ref, (node) => this.#options.captures.stop(node, port))
  }

  followCapture(ref: NodeRef, port: PortRef, signal: AbortSignal): Promise<CaptureSource> {
    return this.#with(ref, (node) => this.#options.captures.follow(node, port, signal))
  }

  streamCapture(ref: NodeRef, port: PortRef, linkType: LinkTypeName, signal: AbortSignal): Promise<CaptureSource> {
    return this.#with(ref, (node) => this.#options.captures.stream(node, port, linkType, signal))
  }

  async console(ref: NodeRef, signal: AbortSignal): Promise<ConsoleStream> {
    const node = await this.#find(ref)
    if (node.record.console_type === 'none') throw conflict('The node has no console: its console_type is none')
    try {
      const socket = await this.#options.keeper.attachConsole(node.key)
      signal.addEventListener('abort', () => socket.destroy(), { once: true })
      if (signal.aborted) socket.destroy()
      return { readable: webStream(socket), writable: Writable.toWeb(socket) }
    } catch (error) {
      if (refusal(error) === 'not_running')
        throw conflict('The node does not run: start it first', { cause: error as Error })
      throw error
    }
  }

  /** Runs something on a node of ours while nothing else happens to it. */
  exclusively<T>(node: LabNode, run: () => Promise<T>): Promise<T> {
    return this.#serial.run(node.key, run)
  }

  /** Takes the nodes of a project that is being closed out of memory: stopped, their ports released. */
  async closeProject(project: OpenProject): Promise<void> {
    const nodes = [...project.nodes.values()]
    // A keeper that fails must not keep a project open: what it leaves behind is ended with it, or by the next service.
    const stop = (node: LabNode) => this.#options.lifeCycle.stop(node).catch(() => {})
    await Promise.all(nodes.map((node) => this.exclusively(node, () => stop(node).then(() => this.#release(node)))))
  }

  async #create(project: OpenProject, kind: NodeKind, nodeId: string, input: NodeCreate): Promise<Node> {
    await requireSpace(project.path, this.#options.floorMb())
    project.requireUsable()
    const { name, console: wanted, console_type } = input
    const record: LabNode['record'] = {
      version: 1,
      kind: kind.kind,
      node_id: nodeId,
      name,
      console: null,
      console_type: console_type ?? 'telnet',
      command_line: '',
      status_reason: null,
      running: false,
      properties: {},
      ports: {},
    }
    const node = new LabNode(project, kind, record)
    record.properties = kind.properties(node.siblings)
    // From here on its properties are seen by siblings, so that two creates at once do not get the same.
    project.nodes.set(node.key, node)
    const isNew = project.record.deleted.every((it) => it !== `${kind.kind}/${nodeId}`)
    try {
      if (record.console_type === 'telnet')
        record.console = await this.#options.ports.allocate('console', node.owner, wanted ?? undefined)
      await mkdir(node.directory, { recursive: true, mode: 0o700 })
      await kind.prepare(node, input)
      await node.save()
      if (!isNew) await this.#keep(project, `${kind.kind}/${nodeId}`)
    } catch (error) {
      project.nodes.delete(node.key)
      this.#options.ports.releaseAll(node.owner)
      await node.removeRecord().catch(() => {})
      if (isNew) await rm(node.directory, { recursive: true, force: true }).catch(() => {})
      throw translate('The directory of the node', error)
    }
    this.all.set(node.key, node)
    const view = node.view()
    this.#options.emit(node, { type: 'node.created', node: view })
    return view
  }

  /** Has the next commit remove the directory of a deleted node; false when that cannot be written down. */
  async #note({ project, kind, record }: LabNode): Promise<boolean> {
    const name = `${kind.kind}/${record.node_id}`
    if (!project.record.deleted.includes(name)) project.record.deleted.push(name)
    return writeProject(project.path, project.record).then(
      () => true,
      () => false,
    )
  }

  /** The directory belongs to a node again: a commit must not remove it. */
  async #keep(project: OpenProject, name: string): Promise<void> {
    project.record.deleted = project.record.deleted.filter((it) => it !== name)
    await writeProject(project.path, project.record)
  }

  async #update(node: LabNode, changes: NodeUpdate): Promise<void> {
    const { record } = node
    const { name, console: wanted, console_type } = changes
    const before = { name: record.name, console: record.console, console_type: record.console_type }
    if (console_type != null && console_type !== record.console_type && node.status !== 'stopped') {
      throw conflict('console_type: stop the node first')
    }
    await requireSpace(node.project.path, this.#options.floorMb())
    let released: number | undefined
    try {
      record.name = name ?? record.name
      record.console_type = console_type ?? record.console_type
      released = await this.#changeConsole(node, wanted ?? undefined)
      await node.kind.update(node, changes, before.name)
      await node.save()
    } catch (error) {
      if (record.console !== before.console && record.console !== null)
        this.#options.ports.release('console', record.console, node.owner)
      Object.assign(record, before)
      throw translate('The record of the node', error)
    }
    if (released !== undefined) this.#options.ports.release('console', released, node.owner)
    this.#options.emit(node, node.updated())
  }

  /** Gives the node the console that fits its type and the wish; the port that is then free again. */
  async #changeConsole(node: LabNode, wanted: number | undefined): Promise<number | undefined> {
    const { record } = node
    const before = record.console
    if (record.console_type === 'none') {
      record.console = null
      return before ?? undefined
    }
    if (before !== null && (wanted === undefined || wanted === before)) return undefined
    record.console = await this.#options.ports.allocate('console', node.owner, wanted)
    await this.#options.lifeCycle.listen(node)
    return before ?? undefined
  }

  async #teardown(node: LabNode): Promise<void> {
    await this.#options.lifeCycle.stop(node)
    await this.#release(node)
  }

  async #release(node: LabNode): Promise<void> {
    await this.#options.links.release(node)
    this.#options.ports.releaseAll(node.owner)
    node.project.nodes.delete(node.key)
    this.all.delete(node.key)
  }

  #act(ref: NodeRef, action: (node: LabNode) => Promise<void>): Promise<Node> {
    return this.#with(ref, async (node) => {
      await action(node)
      return node.view()
    })
  }

  /** Runs on the node when it is its turn; it may have gone by then. */
  async #with<T>(ref: NodeRef, run: (node: LabNode) => Promise<T>): Promise<T> {
    await this.#find(ref)
    return this.#serial.run(`${ref.kind}:${ref.node_id}`, async () => {
      const node = await this.#find(ref)
      node.project.requireUsable()
      return run(node)
    })
  }

  async #find({ project_id, kind, node_id }: NodeRef): Promise<LabNode> {
    const project = await this.#options.project(project_id)
    const node = project.nodes.get(`${kind}:${node_id}`)
    if (node === undefined || this.all.get(node.key) !== node) {
      throw notFound(`node_id: the project has no ${kind} node ${node_id}`)
    }
    return node
  }
}

/** Makes the destination a copy of the source; what it held before is there until the copy is complete. */
async function replaceDirectory(source: string, destination: string): Promise<void> {
  const mark = randomBytes(6).toString('hex')
  const [copy, old] = [`${destination}.copy-${mark}`, `${destination}.old-${mark}`]
  try {
    await cp(source, copy, { recursive: true, verbatimSymlinks: true, errorOnExist: true })
    await rename(destination, old)
    try {
      await rename(copy, destination)
    } catch (error) {
      await rename(old, destination)
      throw error
    }
  } finally {
    await rm(copy, { recursive: true, force: true })
    await rm(old, { recursive: true, force: true })
  }
}
