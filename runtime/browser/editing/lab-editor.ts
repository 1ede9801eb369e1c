import { signal } from '@preact/signals'
import type {
  LabDrawing,
  LabDrawingUpdate,
  LabKind,
  LabLink,
  LabLinkEnd,
  LabLinkUpdate,
  LabNode,
  LabNodeUpdate,
  LabSnapshot,
  LabTemplate,
  Patchbay,
} from '../../../src/client/patchbay.ts'
import { PatchbayError } from '../../../src/client/patchbay-error.ts'
import { SerialQueue } from '../../../src/lib/async/serial-queue.ts'
import { objectsText } from '../../../src/model/lab/objects-text.ts'
import type { Filters } from '../../../src/model/schema/filters.ts'
import { restacked } from '../drawings/layers.ts'
import { type Drawable, newShape, type Shape, svgOf } from '../drawings/shape.ts'
import { type Point, tile } from '../map/geometry.ts'
import type { MapPort } from '../map/ports.ts'
import type { LabStore } from '../state/lab-store.ts'
import { messageOf, notify, notifyError } from '../state/notices.ts'
import { ConfigDraft, type ConfigRef } from './config-draft.ts'
import { EditHistory } from './edit-history.ts'
import { LabResources } from './lab-resources.ts'
import { Moves, movableOf } from './moves.ts'
import { NodeJobs } from './node-jobs.ts'
import { SettingsEditor } from './settings-editor.ts'

/** What a user does at a lab. Every change is a request; the feed brings its effect. A refusal is shown, and changes nothing. */
export class LabEditor {
  readonly store: LabStore
  readonly templates = signal<readonly LabTemplate[]>([])
  readonly kinds = signal<ReadonlyMap<string, LabKind>>(new Map())
  /** The symbol of each kind, for nodes without one of their own. */
  readonly #symbols = signal<Readonly<Record<string, string>>>({})
  /** Ids of the selected nodes, links and drawings. */
  readonly selection = signal<ReadonlySet<string>>(new Set())
  /** A drawing whose corner is being pulled, as it is shown meanwhile. */
  readonly resized = signal<Resized | undefined>(undefined)
  readonly #replugs = new SerialQueue()
  /** Ids of links that were plugged elsewhere -> the ids that they got. */
  readonly #replugged = new Map<string, string>()
  readonly #client: Patchbay
  /** Name or id of the lab, until it is known. */
  readonly #name: string
  readonly #resources: LabResources
  readonly history: EditHistory
  readonly moves: Moves
  readonly jobs: NodeJobs
  readonly settings: SettingsEditor

  constructor(client: Patchbay, store: LabStore, name: string) {
    this.#client = client
    this.store = store
    this.#name = name
    const params = () => this.#params
    this.#resources = new LabResources(client, store, params)
    this.history = new EditHistory(client, params)
    this.jobs = new NodeJobs({ client, store, history: this.history, params, select: (ids) => this.select(ids) })
    const change: LabEditor['change'] = (...given) => this.change(...given)
    this.settings = new SettingsEditor({ store, jobs: this.jobs, change })
    this.moves = new Moves(store, (positions) => this.#savePositions(positions))
  }

  /** Reads what does not belong to the lab: templates and kinds. */
  async prepare(): Promise<void> {
    try {
      const [templates, kinds, symbols] = await Promise.all([
        this.#client.call('GET /v2/templates'),
        this.#client.call('GET /v2/kinds'),
        this.#client.call('GET /v2/default_symbols'),
      ])
      this.#symbols.value = symbols
      this.templates.value = templates
      this.kinds.value = new Map(kinds.map((it) => [it.name, it]))
    } catch (error) {
      // A lost connection is shown, and they are read again when it is back.
      if (!(error instanceof PatchbayError) || error.status !== 0) notifyError(error)
    }
  }

  kindOf(node: LabNode): LabKind | undefined {
    return this.kinds.value.get(node.node_type)
  }

  /** The name of the symbol of a node. */
  symbolOf({ symbol, node_type }: LabNode): string {
    return symbol ?? this.#symbols.value[node_type] ?? 'computer'
  }

  // Selection

  select(ids: Iterable<string>): void {
    this.selection.value = new Set(ids)
  }

  toggle(id: string): void {
    const next = new Set(this.selection.value)
    if (!next.delete(id)) next.add(id)
    this.selection.value = next
  }

  get selectedNodes(): LabNode[] {
    return [...this.selection.value].flatMap((id) => this.store.nodes.get(id) ?? [])
  }

  get selectedDrawings(): LabDrawing[] {
    return [...this.selection.value].flatMap((id) => this.store.drawings.get(id) ?? [])
  }

  /** Ids of the selected nodes and drawings that are not locked. */
  get movable(): string[] {
    return [...this.selection.value].filter((id) => movableOf(this.store, id)?.locked === false)
  }

  get selectedLinks(): string[] {
    return [...this.selection.value].filter((id) => this.store.links.has(id))
  }

  // Edits

  /** Makes a node with its centre at a position, and selects it. */
  async add(template: LabTemplate, { x, y }: Point): Promise<void> {
    const node = await this.history.edit((sent) =>
      sent(
        this.#client.call('POST /v2/projects/{project_id}/templates/{template_id}', {
          params: { ...this.#params, template_id: template.template_id },
          body: { x: Math.round(x - tile / 2), y: Math.round(y - tile / 2) },
        }),
      ),
    )
    if (node === undefined) return
    // The feed may be later.
    if (!this.store.nodes.has(node.node_id)) this.store.nodes.put(node.node_id, node)
    this.select([node.node_id])
  }

  /** Makes a drawing with its middle at a position, and selects it. */
  async draw(kind: Drawable, { x, y }: Point): Promise<void> {
    const shape = newShape(kind)
    const position = { x: Math.round(x - shape.width / 2), y: Math.round(y - shape.height / 2) }
    const drawing = await this.history.edit((sent) =>
      sent(
        this.#client.call('POST /v2/projects/{project_id}/drawings', {
          params: this.#params,
          body: { ...position, svg: svgOf(shape) },
        }),
      ),
    )
    if (drawing === undefined) return
    if (!this.store.drawings.has(drawing.drawing_id)) this.store.drawings.put(drawing.drawing_id, drawing)
    this.select([drawing.drawing_id])
  }

  async changeDrawing(drawing_id: string, body: LabDrawingUpdate): Promise<void> {
    await this.history.edit((sent) => sent(this.#resources.putDrawing(drawing_id, body)))
  }

  /** Brings the selected drawings that are not locked before all others, or behind them, as one edit. */
  async restack(side: 'front' | 'back'): Promise<void> {
    const moved = new Set(this.selectedDrawings.flatMap((it) => (it.locked ? [] : it.drawing_id)))
    const layers = [...restacked(this.store.drawings.values(), moved, side)]
    await this.history.edit((sent) => Promise.all(layers.map(([id, z]) => sent(this.#resources.putDrawing(id, { z })))))
  }

  /** Gives a drawing the size and position to which its corner was pulled. */
  async endResize(): Promise<void> {
    const { value: resized } = this.resized
    if (resized !== undefined) {
      const { id, x, y, shape } = resized
      await this.changeDrawing(id, { x: Math.round(x), y: Math.round(y), svg: svgOf(shape) })
    }
    this.resized.value = undefined
  }

  /** Whether the service has not taken all edits yet. */
  get hasUnsent(): boolean {
    return this.history.pending.value > 0 || this.moves.isUnsent
  }

  async #savePositions(positions: readonly (readonly [string, Point])[]): Promise<void> {
    const move = (id: string, { x, y }: Point) => {
      const body = { x: Math.round(x), y: Math.round(y) }
      return this.store.drawings.has(id) ? this.#resources.putDrawing(id, body) : this.#resources.putNode(id, body)
    }
    await this.history.edit((sent) => Promise.all(positions.map(([id, position]) => sent(move(id, position)))))
  }

  /** Moves nodes to positions, as one edit; those that are locked stay. */
  async moveTo(positions: ReadonlyMap<string, Point>): Promise<void> {
    this.moves.drag(new Map([...positions].filter(([id]) => this.store.nodes.get(id)?.locked === false)))
    await this.moves.drop()
  }

  /** The positions of the selected nodes; of all, when none is selected. */
  get positions(): Map<string, Point> {
    const selected = this.selectedNodes
    const nodes = selected.length > 0 ? selected : this.store.nodes.values()
    return new Map(nodes.map(({ node_id, x, y }) => [node_id, { x, y }]))
  }

  /** Arranges the selected nodes, or all, by their links. */
  async arrange(): Promise<void> {
    const { arranged } = await import('../../../src/labfile/arrange.ts')
    const nodes = [...this.positions].map(([id, position]) => ({ id, ...position }))
    const links = this.store.links
      .values()
      .flatMap(({ nodes: [a, b] }) => (a && b ? [[a.node_id, b.node_id] as const] : []))
    await this.moveTo(arranged(nodes, links))
  }

  /** Makes links, as one edit. */
  async linkAll(links: readonly (readonly [LabLinkEnd, LabLinkEnd])[]): Promise<void> {
    await this.history.edit(async (sent) => {
      for (const [a, b] of links) await sent(this.#resources.makeLink({ nodes: [a, b] }))
    })
  }

  async link(ends: readonly [LabLinkEnd, LabLinkEnd]): Promise<void> {
    const link = await this.history.edit((sent) => sent(this.#resources.makeLink({ nodes: [ends[0], ends[1]] })))
    if (link !== undefined && !this.store.links.has(link.link_id)) this.store.links.put(link.link_id, link)
  }

  /** Copies nodes, with their disks and the links between them, at a distance on the map, and selects the copies. */
  async duplicate(nodes: readonly LabNode[], shift: Point): Promise<void> {
    const ids = new Set(nodes.map(({ node_id }) => node_id))
    const links = this.store.links.values().filter((link) => link.nodes.every(({ node_id }) => ids.has(node_id)))
    const copies = new Map<string, LabNode>()
    await this.history.edit(async (sent) => {
      for (const { node_id, x, y, z } of nodes) {
        const copy = await sent(
          this.#client.call('POST /v2/projects/{project_id}/nodes/{node_id}/duplicate', {
            params: { ...this.#params, node_id },
            body: { x: Math.round(x + shift.x), y: Math.round(y + shift.y), z },
          }),
        )
        copies.set(node_id, copy)
        if (!this.store.nodes.has(copy.node_id)) this.store.nodes.put(copy.node_id, copy)
      }
      for (const { nodes: ends, filters, filters_ab, filters_ba, suspend } of links) {
        const [a, b] = ends.map(({ node_id, adapter_number, port_number }) => ({
          node_id: copies.get(node_id)?.node_id ?? node_id,
          adapter_number,
          port_number,
        }))
        if (a !== undefined && b !== undefined)
          await sent(this.#resources.makeLink({ nodes: [a, b], filters, filters_ab, filters_ba, suspend }))
      }
    })
    if (copies.size > 0) this.select([...copies.values()].map(({ node_id }) => node_id))
  }

  /** Puts a node of another type in place of a node, as one edit, and selects it. */
  async replace(old: LabNode, template: LabTemplate): Promise<void> {
    const { replacedText, replaceNode } = await import('./replace-node.ts')
    const replaced = await this.history.edit((sent) => replaceNode(this.#client, old, template, sent))
    if (replaced === undefined) return
    this.select([replaced.node.node_id])
    const links = replacedText(replaced)
    notify('done', `${old.name} is replaced by ${template.name}${links === '' ? '.' : `: ${links}.`}`)
  }

  /** Gives the selected nodes a symbol, as one edit. */
  async changeSymbol(symbol: string): Promise<void> {
    const ids = this.selectedNodes.map(({ node_id }) => node_id)
    await this.history.edit((sent) => Promise.all(ids.map((id) => sent(this.#resources.putNode(id, { symbol })))))
  }

  /** Plugs an end of a link into another port of its node, as one edit; name and impairment stay. */
  replug(link: LabLink, end: LabLinkEnd, port: MapPort): Promise<void> {
    // A person chooses the port of the other end before the first is plugged: then the link has another id, and other ends.
    return this.#replugs.run(() => this.#replugNow(this.#latest(link), end, port))
  }

  #latest(link: LabLink): LabLink {
    let id = link.link_id
    for (let next: string | undefined = id; next !== undefined; next = this.#replugged.get(id)) id = next
    return this.store.links.get(id) ?? link
  }

  async #replugNow(link: LabLink, end: LabLinkEnd, port: MapPort): Promise<void> {
    const { adapter_number, port_number } = port
    const [a, b] = link.nodes.map((other) =>
      other.node_id === end.node_id ? { node_id: end.node_id, adapter_number, port_number } : other,
    )
    if (a === undefined || b === undefined) return
    const { link_id, name, filters, filters_ab, filters_ba, suspend } = link
    const made = await this.history.edit(async (sent) => {
      await sent(this.#resources.deleteLink(link_id))
      return sent(this.#resources.makeLink({ nodes: [a, b], name, filters, filters_ab, filters_ba, suspend }))
    })
    if (made === undefined) return
    this.#replugged.set(link_id, made.link_id)
    if (!this.store.links.has(made.link_id)) this.store.links.put(made.link_id, made)
    this.select([made.link_id])
  }

  /** Deletes the selected nodes, with their links, the selected links, and the selected drawings. */
  async removeSelected(): Promise<void> {
    const nodes = this.selectedNodes
    const gone = new Set(nodes.map((it) => it.node_id))
    const links = this.selectedLinks.filter(
      (id) => !this.store.links.get(id)?.nodes.some((end) => gone.has(end.node_id)),
    )
    const drawings = this.selectedDrawings
    const attached = this.store.links.values().filter(({ nodes: ends }) => ends.some((end) => gone.has(end.node_id)))
    const what = objectsText(
      nodes.map(({ name }) => name),
      links.length + attached.length,
      drawings.length,
    )
    const isDone = await this.history.edit(async (sent) => {
      for (const link_id of links) await sent(this.#resources.deleteLink(link_id))
      // The service refuses to delete what is locked, with a reason that is shown: all others go first.
      for (const isLocked of [false, true]) {
        for (const { drawing_id, locked } of drawings)
          if (locked === isLocked)
            await sent(
              this.#client.call('DELETE /v2/projects/{project_id}/drawings/{drawing_id}', {
                params: { ...this.#params, drawing_id },
              }),
            )
        for (const { node_id, locked } of nodes)
          if (locked === isLocked)
            await sent(
              this.#client.call('DELETE /v2/projects/{project_id}/nodes/{node_id}', {
                params: { ...this.#params, node_id },
              }),
            )
      }
      return true
    })
    this.select([])
    if (isDone !== true) return
    const mark = this.history.length
    notify('done', `${what} deleted`, { verb: 'Undo', run: () => this.#undoLatest(mark) })
  }

  /** Undoes the edit that was the latest when the undo was offered. */
  #undoLatest(mark: number): void {
    if (this.history.length === mark) void this.back('undo')
    else refuse('Other edits were made since: Ctrl+Z undoes them first.')
  }

  /** Changes a node. False when the service refuses: `onFault` shows why. */
  async change(node_id: string, body: LabNodeUpdate, onFault = notifyError): Promise<boolean> {
    let isDone = false
    await this.history.edit(async (sent) => {
      await sent(this.#resources.putNode(node_id, body))
      isDone = true
    }, onFault)
    return isDone
  }

  async changeLink(link_id: string, body: LabLinkUpdate): Promise<void> {
    await this.history.edit((sent) => sent(this.#resources.putLink(link_id, body)))
  }

  /** An editor of a configuration. */
  draft(ref: ConfigRef): ConfigDraft {
    return new ConfigDraft(this.#client, ref)
  }

  /** Changes a link. The result: why the service refuses it, to be shown beside the field; empty: it is changed. */
  async tryLink(link_id: string, body: LabLinkUpdate): Promise<string> {
    let reason = ''
    await this.history.edit(
      (sent) => sent(this.#resources.putLink(link_id, body)),
      (error) => {
        reason = messageOf(error)
      },
    )
    return reason
  }

  /** Resolves with why a link cannot have filters; empty: it can. Rejects when the service cannot tell. */
  async checkFilters(link_id: string, body: Filters, signal: AbortSignal): Promise<string> {
    try {
      const params = { ...this.#params, link_id }
      await this.#client.call('POST /v2/projects/{project_id}/links/{link_id}/check_filters', { params, body, signal })
      return ''
    } catch (error) {
      if (error instanceof PatchbayError && error.status === 400) return error.message
      throw error
    }
  }

  async renameLab(name: string): Promise<void> {
    const { project } = this.store
    const before = project.peek()
    const renamed = await this.history.edit((sent) =>
      sent(this.#client.call('PUT /v2/projects/{project_id}', { params: this.#params, body: { name } })),
    )
    // The feed may be later.
    if (renamed !== undefined && project.peek() === before) project.value = renamed
  }

  /** Takes a snapshot. Rejects with the reason of a refusal. */
  async takeSnapshot(name: string): Promise<void> {
    const snapshot = await this.#client.call('POST /v2/projects/{project_id}/snapshots', {
      params: this.#params,
      body: { name },
    })
    this.store.snapshots.put(snapshot.snapshot_id, snapshot)
  }

  /** Makes the lab what a snapshot keeps. Rejects with the reason of a refusal. */
  async restoreSnapshot({ snapshot_id }: LabSnapshot): Promise<void> {
    const params = { ...this.#params, snapshot_id }
    await this.#client.call('POST /v2/projects/{project_id}/snapshots/{snapshot_id}/restore', { params })
  }

  /** Rejects with the reason of a refusal. */
  async deleteSnapshot({ snapshot_id }: LabSnapshot): Promise<void> {
    const params = { ...this.#params, snapshot_id }
    await this.#client.call('DELETE /v2/projects/{project_id}/snapshots/{snapshot_id}', { params })
    this.store.snapshots.delete(snapshot_id)
  }

  /** Undoes the latest edit, or makes again what was undone last. */
  async back(way: 'undo' | 'redo'): Promise<void> {
    await this.moves.endNudge()
    await this.history.back(way)
  }

  get #params(): { project_id: string } {
    return { project_id: this.store.project.value?.project_id ?? this.#name }
  }
}

/** A drawing in another size, and where its upper left corner is then. */
export interface Resized extends Point {
  readonly id: string
  readonly shape: Shape
}

/** Shows why an edit is refused without a request. */
export const refuse = (reason: string): void => notify('warning', reason)
