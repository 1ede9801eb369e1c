import type {
  CaptureSource,
  ConsoleReplay,
  ConsoleStream,
  NioOrigin,
  NodeAgent,
  PortRef,
} from '../../../../src/host-agent.ts'
import type { LabLimits } from '../../../../src/labs/lab/lab-limits.ts'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { ApiError, badRequest, conflict, notFound } from '../../../../src/lib/errors/api-error.ts'
import type { CaptureStart, CaptureStarted, CaptureStream } from '../../../../src/model/capture.ts'
import type { ConsoleExpect, ConsoleMatch, NodeReady } from '../../../../src/model/console.ts'
import type { EventPayload } from '../../../../src/model/event.ts'
import { namedAction } from '../../../../src/model/kinds/kind.ts'
import type { Node, NodeCreate, NodeKindName, NodeRef, NodeUpdate } from '../../../../src/model/kinds/node.ts'
import type { Filters } from '../../../../src/model/schema/filters.ts'
import type { Nio, NioChange, NioState } from '../../../../src/model/schema/nio.ts'
import type { PortAllocator } from '../ports/allocator.ts'
import type { OpenProject } from '../projects/open-project.ts'
import type { Deletion } from '../projects/project-record.ts'
import { diskError, isFull, requireSpace, withDiskErrors } from '../storage/disk.ts'
import { removeTree } from '../storage/durable-file.ts'
import type { Captures } from './captures.ts'
import type { Consoles } from './consoles.ts'
import { replaceDirectory } from './copy.ts'
import { Creation, markDeleted } from './creation.ts'
import type { DirectLinks } from './direct-links.ts'
import type { EngineNode } from './engine-node.ts'
import { unknownState } from './keeper-link.ts'
import type { ActionTarget, NodeKind, Properties, StopReason } from './kind.ts'
import type { NodeLifecycle } from './lifecycle.ts'
import type { Links } from './links.ts'
import { requireRoomForNode } from './node-limits.ts'
import type { NodeTable } from './node-table.ts'
import { lportOf } from './slots.ts'
import type { NodeWaits } from './waits.ts'

export interface NodesOptions {
  readonly table: NodeTable
  readonly kinds: Readonly<Record<NodeKindName, NodeKind>>
  /** An open project that is not being closed; 404, 409. */
  readonly project: (projectId: string) => Promise<OpenProject>
  readonly ports: PortAllocator
  readonly links: Links
  readonly direct: DirectLinks
  readonly captures: Captures
  readonly lifecycle: NodeLifecycle
  readonly consoles: Consoles
  readonly waits: NodeWaits
  readonly minFreeMb: () => number
  readonly limits: () => LabLimits
  readonly emit: (node: EngineNode, payload: EventPayload) => void
  /** Why the state of a node is unknown, by its key; undefined when it is known. */
  readonly troubleOf: (key?: string) => string | undefined
}

/** The nodes of all open projects. Operations on one node run one at a time, in the order of their calls. */
export class Nodes implements NodeAgent {
  readonly #table: NodeTable
  readonly #options: NodesOptions
  readonly #creation: Creation

  constructor(options: NodesOptions) {
    this.#options = options
    this.#table = options.table
    this.#creation = new Creation(options)
  }

  async list<K extends NodeKindName>(projectId: string, kind: K): Promise<Node<K>[]> {
    const project = await this.#options.project(projectId)
    // Without nodes that are being created.
    const nodes = [...project.nodes.values()].filter((node) => this.#table.get(node.key) === node)
    return nodes.filter((node) => node.record.kind === kind).map((node) => viewOf<K>(node))
  }

  async get<K extends NodeKindName>(ref: NodeRef<K>): Promise<Node<K>> {
    return viewOf(await this.#find(ref))
  }

  async create<K extends NodeKindName>(
    projectId: string,
    kindName: K,
    input: NodeCreate<K>,
    { existing }: { existing: 'refuse' | 'update' },
  ): Promise<{ node: Node<K>; created: boolean }> {
    const project = await this.#options.project(projectId)
    const nodeId = typeof input.node_id === 'string' ? input.node_id : crypto.randomUUID()
    const key = `${kindName}:${nodeId}`
    return this.#table.lock(key, async () => {
      project.requireUsable()
      const known = this.#table.get(key)
      if (known === undefined) {
        const kind = this.#options.kinds[kindName]
        const node = await this.#creation.create(project, kind, { kind: kindName, node_id: nodeId }, input)
        if (this.#options.lifecycle.isAlwaysOn(node)) await this.#options.lifecycle.startIfPossible(node)
        return { node: viewOf<K>(node), created: true }
      }
      if (known.project !== project)
        throw conflict(`node_id: ${nodeId} belongs to another project`, { code: 'node-exists' })
      const created = known.isUnclaimed
      if (!created && existing === 'refuse')
        throw conflict(`The node ${nodeId} already exists`, { code: 'node-exists' })
      requireKnown(known.unknownReason)
      known.requireUnsealed()
      // Both belong to the same kind.
      const changes = known.kind.adopt?.(input, known) ?? withoutId(input)
      await this.#update(known, changes as NodeUpdate, { isExact: false })
      known.isUnclaimed = false
      return { node: viewOf<K>(known), created }
    })
  }

  update<K extends NodeKindName>(ref: NodeRef<K>, changes: NodeUpdate<K>): Promise<Node<K>> {
    return this.#act(ref, (node) => this.#update(node, changes))
  }

  async remove(ref: NodeRef, { files }: { files: Deletion } = { files: 'now' }): Promise<void> {
    this.#options.lifecycle.skipGracePeriod(await this.#find(ref))
    await this.with(ref, (node) => this.#remove(node, files))
  }

  /** Finishes a deletion that a killed service began. */
  async finishRemoval(node: EngineNode): Promise<void> {
    const { deletion } = node
    if (deletion !== undefined) await this.#table.lock(node.key, () => this.#remove(node, deletion))
  }

  start<K extends NodeKindName>(ref: NodeRef<K>, input?: unknown): Promise<Node<K>> {
    return this.#act(ref, async (node) => {
      if (input !== undefined) await node.kind.onStarting?.(node, input)
      await this.#options.lifecycle.start(node)
    })
  }

  async stop<K extends NodeKindName>(ref: NodeRef<K>): Promise<Node<K>> {
    this.#options.lifecycle.interrupt(await this.#find(ref))
    return this.#act(ref, (node) => this.#options.lifecycle.stop(node), { sealed: true })
  }

  suspend<K extends NodeKindName>(ref: NodeRef<K>): Promise<Node<K>> {
    return this.#act(ref, (node) => this.#options.lifecycle.suspend(node))
  }

  resume<K extends NodeKindName>(ref: NodeRef<K>): Promise<Node<K>> {
    return this.#act(ref, (node) => this.#options.lifecycle.resume(node))
  }

  reload<K extends NodeKindName>(ref: NodeRef<K>): Promise<Node<K>> {
    return this.#act(ref, (node) => this.#options.lifecycle.reload(node))
  }

  async duplicate<K extends NodeKindName>(
    ref: NodeRef<K>,
    destinationId: string,
    project_id = ref.project_id,
  ): Promise<Node<K>> {
    if (destinationId === ref.node_id && project_id === ref.project_id)
      throw badRequest('destination_node_id: this is the node itself; expected the id of another node')
    const wanted = { ...ref, project_id, node_id: destinationId }
    const source = await this.#find(ref)
    const destination = await this.#find(wanted).catch((error: unknown) => {
      if (!(error instanceof ApiError) || error.status !== 404) throw error
      throw notFound(
        `destination_node_id: the project has no ${ref.kind} node ${destinationId}; create it first, then copy into it`,
        { code: 'no-such-node', cause: error },
      )
    })
    return this.#table.lockAll([source.key, destination.key], async () => {
      const [from, to] = [await this.#find(ref), await this.#find(wanted)]
      to.project.requireUsable()
      for (const it of [from, to]) {
        requireKnown(it.unknownReason)
        it.requireUnsealed()
      }
      const restarts = to.status !== 'stopped' && this.#options.lifecycle.isAlwaysOn(to)
      if (restarts) await this.#options.lifecycle.stop(to)
      if (to.status !== 'stopped') throw conflict('The destination is running: stop it first', { code: 'node-running' })
      try {
        await this.#copy(from, to)
      } finally {
        if (restarts) await this.#options.lifecycle.startIfPossible(to)
      }
      return viewOf<K>(to)
    })
  }

  attachNio(ref: NodeRef, port: PortRef, nio: Nio, origin?: NioOrigin): Promise<Nio> {
    return this.with(ref, (node) => this.#options.links.attach(node, port, nio, origin))
  }

  updateNio(ref: NodeRef, port: PortRef, changes: NioChange): Promise<Nio> {
    return this.with(ref, (node) => this.#options.links.update(node, port, changes))
  }

  detachNio(ref: NodeRef, port: PortRef): Promise<void> {
    return this.with(ref, (node) => this.#options.links.detach(node, port))
  }

  async checkFilters(ref: NodeRef, port: PortRef, filters: Filters): Promise<void> {
    this.#options.links.checkFilters(await this.#find(ref), port, filters)
  }

  nioState(ref: NodeRef, port: PortRef): Promise<NioState> {
    return this.with(ref, (node) => this.#options.links.state(node, port))
  }

  startCapture(ref: NodeRef, port: PortRef, wanted: CaptureStart): Promise<CaptureStarted> {
    return this.with(ref, (node) => this.#options.captures.start(node, port, wanted))
  }

  stopCapture(ref: NodeRef, port: PortRef): Promise<void> {
    return this.with(ref, (node) => this.#options.captures.stop(node, port))
  }

  followCapture(ref: NodeRef, port: PortRef, signal: AbortSignal): Promise<CaptureSource> {
    return this.with(ref, (node) => this.#options.captures.follow(node, port, signal))
  }

  streamCapture(ref: NodeRef, port: PortRef, wanted: CaptureStream, signal: AbortSignal): Promise<CaptureSource> {
    return this.with(ref, (node) => this.#options.captures.stream(node, port, wanted, signal))
  }

  resetConsole(ref: NodeRef): Promise<void> {
    return this.with(ref, (node) => this.#options.consoles.reset(node))
  }

  async console(ref: NodeRef, signal: AbortSignal, shown: ConsoleReplay = { replay: true }): Promise<ConsoleStream> {
    return this.#options.consoles.open(await this.#find(ref), signal, shown)
  }

  async telnetClients(projectId: string): Promise<number> {
    await this.#options.project(projectId)
    const nodes = [...this.#options.table.values()].filter((node) => node.projectId === projectId)
    return this.#options.consoles.telnetClients(nodes)
  }

  async consoleLog(ref: NodeRef): Promise<Uint8Array> {
    return this.#options.consoles.log(await this.#find(ref))
  }

  async expect(ref: NodeRef, wanted: ConsoleExpect, signal: AbortSignal): Promise<ConsoleMatch> {
    return this.#options.waits.expect(await this.#find(ref), wanted, signal)
  }

  async ready(ref: NodeRef, wanted: NodeReady, signal: AbortSignal): Promise<void> {
    return this.#options.waits.ready(await this.#find(ref), wanted, signal)
  }

  async screen(ref: NodeRef, signal: AbortSignal): Promise<ConsoleStream> {
    return this.#options.consoles.screen(await this.#find(ref), signal)
  }

  async action(ref: NodeRef, name: string, input: unknown, signal?: AbortSignal): Promise<unknown> {
    await this.#find(ref)
    const { lifecycle, kinds } = this.#options
    const run = namedAction(kinds[ref.kind].actions, name)
    const exclusively: ActionTarget<Properties>['exclusively'] = (use) =>
      this.with(ref, (node) => use(node, { start: () => lifecycle.start(node), stop: () => lifecycle.stop(node) }))
    return run({ find: () => this.#find(ref), exclusively }, input as never, signal)
  }

  /**
   * Runs a function with the lock of the node. 404 when the node is deleted by then; 503 while its state is unknown; 409 when a newer
   * program wrote its record, unless `sealed`.
   */
  async with<T>(ref: NodeRef, run: (node: EngineNode) => Promise<T>, { sealed } = { sealed: false }): Promise<T> {
    await this.#find(ref)
    return this.#table.lock(`${ref.kind}:${ref.node_id}`, async () => {
      const node = await this.#find(ref)
      node.project.requireUsable()
      requireKnown(node.unknownReason)
      if (!sealed) node.requireUnsealed()
      return run(node)
    })
  }

  /** Makes every node of a project write its state to disk. A failure of one node is a warning. */
  async commitProject(project: OpenProject): Promise<void> {
    const commit = async (node: EngineNode) => {
      try {
        await this.#table.lock(node.key, async () => node.kind.onCommit?.(node))
      } catch (error) {
        const message = `${node.record.name}: ${(error as Error).message}`
        this.#options.emit(node, { type: 'log.warning', message })
      }
    }
    await Promise.all([...project.nodes.values()].map(commit))
  }

  /** Stops the nodes of a project that is being closed, and releases their ports. */
  async closeProject(project: OpenProject, how: StopReason): Promise<void> {
    const nodes = [...project.nodes.values()]
    this.requireKnown(project)
    for (const node of nodes) this.#options.lifecycle.skipGracePeriod(node)
    // A failing keeper must not keep a project open: its units end with it, or the next service ends them.
    const end = async (node: EngineNode) => {
      const { lifecycle } = this.#options
      await lifecycle.stop(node, how).catch(async (error: unknown) => {
        // A node that may still run must not lose its files.
        if (isUnknown(error)) throw error
        await lifecycle.forceStop(node).catch((failure: unknown) => {
          if (isUnknown(failure)) throw failure
        })
      })
      const isDeleted = how === 'remove'
      const { cleanup } = node.kind
      await cleanup?.onRemoved?.(node, { isDeleted }).catch(async (error: unknown) => {
        await cleanup.deferredCleanup?.(node, { isDeleted })
        const message = `${node.record.name}: ${(error as Error).message}`
        this.#options.emit(node, { type: 'log.error', message })
      })
      await this.#release(node)
    }
    const ended = await Promise.allSettled(nodes.map((node) => this.#table.lock(node.key, () => end(node))))
    for (const result of ended) if (result.status === 'rejected') throw result.reason
    await this.#options.direct.close(project)
  }

  /** 503 while the state of a node of the project is unknown. */
  requireKnown(project: OpenProject): void {
    for (const node of project.nodes.values()) requireKnown(node.unknownReason ?? node.keeperTrouble)
  }

  /** `isExact`: 409 for a console port that is taken; otherwise the node gets another one. */
  async #update(node: EngineNode, changes: NodeUpdate, { isExact } = { isExact: true }): Promise<void> {
    const { record } = node
    const { name, console: wanted, console_type } = changes
    const { console: port, console_type: type, properties } = record
    const before = { name: record.name, console: port, console_type: type, properties }
    if (console_type != null && console_type !== record.console_type && node.status !== 'stopped')
      throw conflict('console_type: stop the node first', { code: 'node-running' })
    requireRoomForNode(node.project, changes, this.#options.limits(), node)
    await requireSpace(node.project.path, this.#options.minFreeMb())
    let released: number | undefined
    try {
      record.name = name ?? record.name
      record.console_type = console_type ?? record.console_type
      const report = (message: string) => this.#options.emit(node, { type: 'log.warning', message })
      released = await this.#options.consoles.change(node, wanted ?? undefined, { typeBefore: type, isExact, report })
      await node.kind.update(node, changes, before.name)
      await node.save()
    } catch (error) {
      const isMoved = record.console !== before.console
      if (isMoved && record.console !== null) this.#options.ports.release('console', record.console, node.owner)
      Object.assign(record, before)
      // The earlier console port still belongs to this node.
      if (isMoved)
        await this.#options.consoles
          .undone(node)
          .catch(ignore('the client gets the failure of the change, and the next start listens again'))
      throw diskError('The record of the node', error)
    }
    if (released !== undefined) this.#options.ports.release('console', released, node.owner)
    await this.#options.links.prune(node)
    this.#options.emit(node, node.updated())
  }

  async #copy(source: EngineNode, destination: EngineNode): Promise<void> {
    const { record } = destination
    const { properties } = record
    await requireSpace(destination.project.path, this.#options.minFreeMb())
    const copy = (amend: (directory: string) => Promise<void> = async () => {}) =>
      withDiskErrors('The copy', () =>
        source.withQuiescedGuest(() => replaceDirectory(source.directory, destination.directory, amend)),
      )
    try {
      await destination.kind.duplicate(source, destination, copy)
      await destination.save()
    } catch (error) {
      record.properties = properties
      throw error
    }
    await this.#options.links.prune(destination)
    this.#options.emit(destination, destination.updated())
  }

  async #remove(node: EngineNode, files: Deletion): Promise<void> {
    requireKnown(node.unknownReason ?? node.keeperTrouble)
    if (node.deletion === undefined) {
      await node.beginDeletion(files).catch((error: unknown) => {
        // The deletion frees space on a full disk; on a disk that cannot be written to it does not begin.
        if (isFull(error)) return node.unsaved(error)
        throw error
      })
    }
    try {
      await this.#options.lifecycle.stop(node, 'remove')
      await node.kind.cleanup?.onRemoved?.(node, { isDeleted: true, keepsFiles: files === 'later' })
    } catch (error) {
      await node.endDeletion()
      throw error
    }
    // If a full disk cannot store what the next commit must remove, it is removed at once.
    const isNoted = files === 'later' && (await markDeleted(node))
    // The record is removed last: a later service can finish the deletion by it.
    if (!isNoted) await withDiskErrors('The directory of the node', () => removeTree(node.directory))
    await this.#options.direct.removeOf(node)
    await this.#release(node)
    await withDiskErrors('The record of the node', () => node.removeRecord())
    this.#options.emit(node, { type: 'node.deleted', node: node.view() })
  }

  async #release(node: EngineNode): Promise<void> {
    await this.#options.links.release(node)
    const lports = Object.values(node.record.ports).flatMap(({ nio }) => lportOf(nio) ?? [])
    await node.project.forgetUdpPorts(lports).catch((error: unknown) => node.unsaved(error))
    this.#options.ports.releaseAll(node.owner)
    node.project.nodes.delete(node.key)
    this.#table.delete(node.key)
    await node.kind.cleanup?.dispose?.(node)
  }

  #act<K extends NodeKindName>(
    ref: NodeRef<K>,
    action: (node: EngineNode) => Promise<void>,
    options?: { sealed: boolean },
  ): Promise<Node<K>> {
    return this.with(ref, async (node) => action(node).then(() => viewOf<K>(node)), options)
  }

  async #find({ project_id, kind, node_id }: NodeRef): Promise<EngineNode> {
    const project = await this.#options.project(project_id)
    const node = project.nodes.get(`${kind}:${node_id}`)
    if (node === undefined || this.#table.get(node.key) !== node) {
      const isOther = (it: EngineNode) => it.record.node_id === node_id && this.#table.get(it.key) === it
      const other = [...project.nodes.values()].find(isOther)
      const instead = other
        ? `the id belongs to a node of kind ${other.record.kind}`
        : `GET .../${kind}/nodes lists its nodes`
      throw notFound(`node_id: the project has no ${kind} node ${node_id}; ${instead}`, { code: 'no-such-node' })
    }
    return node
  }
}

const withoutId = ({ node_id: _, ...changes }: NodeCreate): NodeUpdate => changes

/** 503 with the reason why a state is unknown. */
function requireKnown(trouble: string | undefined): void {
  if (trouble !== undefined) throw unknownState(new Error(trouble))
}

const isUnknown = (error: unknown): boolean => error instanceof ApiError && error.status === 503

/** The view of a node whose kind the caller knows. */
const viewOf = <K extends NodeKindName>(node: EngineNode): Node<K> => node.view() as Node<K>
