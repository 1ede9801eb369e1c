import { batch, computed, effect, type ReadonlySignal, type Signal, signal } from '@preact/signals'
import type {
  LabDrawing,
  LabDrawingUpdate,
  LabEdits,
  LabJob,
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
import { ignore } from '../../../src/lib/async/ignore.ts'
import { KeyedMutex } from '../../../src/lib/async/keyed-mutex.ts'
import { SerialQueue } from '../../../src/lib/async/serial-queue.ts'
import { objectsText } from '../../../src/model/lab/objects-text.ts'
import type { Filters } from '../../../src/model/schema/filters.ts'
import { restacked } from '../drawings/layers.ts'
import { type Drawable, newShape, type Shape, svgOf } from '../drawings/shape.ts'
import { type Point, tile } from '../map/geometry.ts'
import type { MapPort } from '../map/ports.ts'
import type { LabStore } from '../state/lab-store.ts'
import { messageOf, notify, notifyError } from '../state/notices.ts'
import { mayEdit } from '../state/session.ts'
import type { Table } from '../state/table.ts'
import { ConfigDraft, type ConfigRef } from './config-draft.ts'
import { failureText } from './job-text.ts'

/** Time after the last key press at which a move by keys is sent, ms. */
const nudgeMs = 400
/** Time between a change and the question what undo takes now, ms. */
const editsMs = 500

export type LabNodeAction = 'start' | 'stop' | 'suspend' | 'resume' | 'reload'

/** What a user does at a lab. Every change is a request; the feed brings its effect. A refusal is shown, and changes nothing. */
export class LabEditor {
  readonly store: LabStore
  readonly templates = signal<readonly LabTemplate[]>([])
  readonly kinds = signal<ReadonlyMap<string, LabKind>>(new Map())
  /** The symbol of each kind, for nodes without one of their own. */
  readonly #symbols = signal<Readonly<Record<string, string>>>({})
  /** Ids of the selected nodes, links and drawings. */
  readonly selection = signal<ReadonlySet<string>>(new Set())
  /** Images that nodes lacked at a start, while they are uploaded. */
  readonly missing = signal<readonly LackedImage[]>([])
  /** Number of requests without an answer. */
  readonly pending = signal(0)
  /** A drawing whose corner is being pulled, as it is shown meanwhile. */
  readonly resized = signal<Resized | undefined>(undefined)
  /**
   * Positions of nodes and drawings that are being moved, until the service has taken them. Each is a signal: of a thousand nodes only the
   * one that is dragged, and its links, follow the pointer.
   */
  readonly #moved = signal<ReadonlyMap<string, Signal<Point>>>(new Map())
  /** The positions that are being sent. */
  #told: ReadonlyMap<string, Point> = new Map()
  readonly #drops = new SerialQueue()
  readonly #replugs = new SerialQueue()
  /** Ids of links that were plugged elsewhere -> the ids that they got. */
  readonly #replugged = new Map<string, string>()
  /** Changes of one resource follow one another: two connections could change their order. */
  readonly #turns = new KeyedMutex()
  /** Keyed by the rows of tables: a resource that is deleted and made again has a new row. */
  readonly #positions = new WeakMap<object, ReadonlySignal<Point>>()
  /** How many requests each of the last edits took: an undo reverts all of them. */
  readonly #steps: number[] = []
  readonly #undone: number[] = []
  /** What undo and redo take; undefined: not known yet. */
  readonly edits = signal<LabEdits | undefined>(undefined)
  #nudged: ReturnType<typeof setTimeout> | undefined
  #reading: ReturnType<typeof setTimeout> | undefined
  readonly #client: Patchbay
  readonly #project: () => string

  constructor(client: Patchbay, store: LabStore, project: string) {
    this.#client = client
    this.store = store
    this.#project = () => store.project.value?.project_id ?? project
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

  /** The position of a node or a drawing, also while it is being dragged. */
  positionOf(id: string): ReadonlySignal<Point> {
    const row = this.store.nodes.row(id) ?? this.store.drawings.row(id)
    const known = row && this.#positions.get(row)
    if (known !== undefined) return known
    // Without a move the value is the resource itself, always the same object, so that nothing is rendered again.
    const position = computed<Point>(() => this.#moved.value.get(id)?.value ?? this.#resource(id) ?? nowhere)
    if (row !== undefined) this.#positions.set(row, position)
    return position
  }

  #resource(id: string): LabNode | LabDrawing | undefined {
    return this.store.nodes.get(id) ?? this.store.drawings.get(id)
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
    return [...this.selection.value].filter((id) => this.#resource(id)?.locked === false)
  }

  get selectedLinks(): string[] {
    return [...this.selection.value].filter((id) => this.store.links.has(id))
  }

  // Edits

  /** Makes a node with its centre at a position, and selects it. */
  async add(template: LabTemplate, { x, y }: Point): Promise<void> {
    const node = await this.#edit((sent) =>
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
    const drawing = await this.#edit((sent) =>
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
    await this.#edit((sent) => sent(this.#putDrawing(drawing_id, body)))
  }

  /** Brings the selected drawings that are not locked before all others, or behind them, as one edit. */
  async restack(side: 'front' | 'back'): Promise<void> {
    const moved = new Set(this.selectedDrawings.flatMap((it) => (it.locked ? [] : it.drawing_id)))
    const layers = [...restacked(this.store.drawings.values(), moved, side)]
    await this.#edit((sent) => Promise.all(layers.map(([id, z]) => sent(this.#putDrawing(id, { z })))))
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

  /** Shows nodes and drawings at other positions, without a request. */
  drag(positions: ReadonlyMap<string, Point>): void {
    batch(() => {
      const moved = this.#moved.peek()
      const begun: [string, Signal<Point>][] = []
      for (const [id, position] of positions) {
        const known = moved.get(id)
        if (known === undefined) begun.push([id, signal(position)])
        else known.value = position
      }
      if (begun.length > 0) this.#moved.value = new Map([...moved, ...begun])
    })
  }

  /** Shows dragged nodes and drawings at their saved positions again, except those whose move is being sent. */
  cancelDrag(): void {
    this.#moved.value = new Map([...this.#told].map(([id, position]) => [id, signal(position)]))
  }

  /**
   * Saves the shown positions of the dragged nodes and drawings. Those that are dragged again meanwhile follow the pointer until the next drop.
   * Drops are sent one after the other, so that the last one counts.
   */
  drop(): Promise<void> {
    clearTimeout(this.#nudged)
    this.#nudged = undefined
    return this.#drops.run(() => this.#dropNow())
  }

  /** Ends moves by the keyboard that wait for a next key. */
  async endNudge(): Promise<void> {
    if (this.#nudged !== undefined) await this.drop()
  }

  async #dropNow(): Promise<void> {
    const told = new Map([...this.#moved.value].map(([id, position]) => [id, position.value]))
    const positions = [...told].filter(([id, { x, y }]) => {
      const now = this.#resource(id)
      return now !== undefined && (now.x !== x || now.y !== y)
    })
    this.#told = new Map(positions)
    const move = (id: string, { x, y }: Point) => {
      const body = { x: Math.round(x), y: Math.round(y) }
      return this.store.drawings.has(id) ? this.#putDrawing(id, body) : this.#putNode(id, body)
    }
    if (positions.length > 0)
      await this.#edit((sent) => Promise.all(positions.map(([id, position]) => sent(move(id, position)))))
    this.#told = new Map()
    this.#moved.value = new Map([...this.#moved.value].filter(([id, position]) => told.get(id) !== position.value))
  }

  /** Whether the service has not taken all edits yet. */
  get hasUnsent(): boolean {
    return this.pending.value > 0 || this.#moved.value.size > 0
  }

  /** Moves nodes to positions, as one edit; those that are locked stay. */
  async moveTo(positions: ReadonlyMap<string, Point>): Promise<void> {
    this.drag(new Map([...positions].filter(([id]) => this.store.nodes.get(id)?.locked === false)))
    await this.drop()
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
    await this.#edit(async (sent) => {
      for (const [a, b] of links)
        await sent(
          this.#client.call('POST /v2/projects/{project_id}/links', { params: this.#params, body: { nodes: [a, b] } }),
        )
    })
  }

  /** Moves the selected nodes and drawings by steps of the keyboard. */
  nudge(dx: number, dy: number): void {
    const positions = this.movable.map((id) => [id, this.positionOf(id).value] as const)
    this.drag(new Map(positions.map(([id, { x, y }]) => [id, { x: x + dx, y: y + dy }])))
    // A key that is held down is one edit.
    clearTimeout(this.#nudged)
    this.#nudged = setTimeout(() => void this.drop(), nudgeMs)
  }

  async link(ends: readonly [LabLinkEnd, LabLinkEnd]): Promise<void> {
    const link = await this.#edit((sent) =>
      sent(
        this.#client.call('POST /v2/projects/{project_id}/links', {
          params: this.#params,
          body: { nodes: [ends[0], ends[1]] },
        }),
      ),
    )
    if (link !== undefined && !this.store.links.has(link.link_id)) this.store.links.put(link.link_id, link)
  }

  /** Copies nodes, with their disks and the links between them, at a distance on the map, and selects the copies. */
  async duplicate(nodes: readonly LabNode[], shift: Point): Promise<void> {
    const ids = new Set(nodes.map(({ node_id }) => node_id))
    const links = this.store.links.values().filter((link) => link.nodes.every(({ node_id }) => ids.has(node_id)))
    const copies = new Map<string, LabNode>()
    await this.#edit(async (sent) => {
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
          await sent(
            this.#client.call('POST /v2/projects/{project_id}/links', {
              params: this.#params,
              body: { nodes: [a, b], filters, filters_ab, filters_ba, suspend },
            }),
          )
      }
    })
    if (copies.size > 0) this.select([...copies.values()].map(({ node_id }) => node_id))
  }

  /** Gives the selected nodes a symbol, as one edit. */
  async changeSymbol(symbol: string): Promise<void> {
    const ids = this.selectedNodes.map(({ node_id }) => node_id)
    await this.#edit((sent) => Promise.all(ids.map((id) => sent(this.#putNode(id, { symbol })))))
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
    const made = await this.#edit(async (sent) => {
      await sent(
        this.#client.call('DELETE /v2/projects/{project_id}/links/{link_id}', {
          params: { ...this.#params, link_id },
        }),
      )
      return sent(
        this.#client.call('POST /v2/projects/{project_id}/links', {
          params: this.#params,
          body: { nodes: [a, b], name, filters, filters_ab, filters_ba, suspend },
        }),
      )
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
    const isDone = await this.#edit(async (sent) => {
      for (const link_id of links)
        await sent(
          this.#client.call('DELETE /v2/projects/{project_id}/links/{link_id}', {
            params: { ...this.#params, link_id },
          }),
        )
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
    const mark = this.#steps.length
    notify('done', `${what} deleted`, { verb: 'Undo', run: () => this.#undoLatest(mark) })
  }

  /** Undoes the edit that was the latest when the undo was offered. */
  #undoLatest(mark: number): void {
    if (this.#steps.length === mark) void this.undo()
    else refuse('Other edits were made since: Ctrl+Z undoes them first.')
  }

  /** Changes a node. False when the service refuses. */
  async change(node_id: string, body: LabNodeUpdate): Promise<boolean> {
    let isDone = false
    await this.#edit(async (sent) => {
      await sent(this.#putNode(node_id, body))
      isDone = true
    })
    return isDone
  }

  async changeLink(link_id: string, body: LabLinkUpdate): Promise<void> {
    await this.#edit((sent) => sent(this.#putLink(link_id, body)))
  }

  /** An editor of a configuration. */
  draft(ref: ConfigRef): ConfigDraft {
    return new ConfigDraft(this.#client, ref)
  }

  /** Changes a link. The result: why the service refuses it, to be shown beside the field; empty: it is changed. */
  async tryLink(link_id: string, body: LabLinkUpdate): Promise<string> {
    let reason = ''
    await this.#edit(
      (sent) => sent(this.#putLink(link_id, body)),
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
    const renamed = await this.#edit((sent) =>
      sent(this.#client.call('PUT /v2/projects/{project_id}', { params: this.#params, body: { name } })),
    )
    // The feed may be later.
    if (renamed !== undefined && project.peek() === before) project.value = renamed
  }

  /** Starts, stops or suspends nodes; without ids all of them. Its job shows how far it is. */
  async act(action: LabNodeAction, ids?: readonly string[]): Promise<void> {
    if (ids !== undefined && ids.length === 0) return
    const job = await this.#ask(() =>
      this.#client.call('POST /v2/projects/{project_id}/jobs', {
        params: this.#params,
        body: { action, ...(ids !== undefined && { nodes: [...ids] }) },
      }),
    )
    if (job !== undefined) this.#tellFailures(job)
  }

  /** Says which nodes of a job failed, and why, when it has ended. The feed may be later than the answer, or earlier. */
  #tellFailures(job: LabJob): void {
    const { jobs } = this.store
    let isOver = false
    const end = effect(() => {
      const now = jobs.get(job.job_id) ?? job
      if (now.status === 'running' || isOver) return
      isOver = true
      // Not within the effect, which would follow the messages, too.
      queueMicrotask(() => {
        end()
        const text = failureText(now)
        const failed = now.nodes.flatMap(({ node_id, state }) => (state === 'failed' ? node_id : []))
        const missing = mayEdit() ? this.#missingIn(now) : []
        const upload = () => {
          this.missing.value = missing
        }
        const details = { verb: 'Details', run: () => this.select(failed) }
        if (text === undefined) return
        if (missing.length > 0) notify('error', text, { verb: 'Upload', run: upload }, details)
        else notify('error', text, details)
      })
    })
  }

  /** The images that the nodes of a job lack. */
  #missingIn({ nodes }: LabJob): LackedImage[] {
    return nodes.flatMap(({ node_id, image }) => {
      const kind = this.store.nodes.get(node_id)?.node_type
      return image === undefined || kind === undefined ? [] : [{ node_id, kind, image }]
    })
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

  undo(): Promise<void> {
    return this.#back('undo', this.#steps, this.#undone)
  }

  redo(): Promise<void> {
    return this.#back('redo', this.#undone, this.#steps)
  }

  async #back(way: 'undo' | 'redo', from: number[], to: number[]): Promise<void> {
    await this.endNudge()
    const count = from.pop() ?? 1
    this.edits.value = undefined
    const isDone = await this.#ask(async () => {
      for (let left = count; left > 0; left--)
        await this.#client.call(`POST /v2/projects/{project_id}/${way}`, { params: this.#params })
      return true
    })
    if (isDone === true) to.push(count)
    this.#readEditsSoon()
  }

  /** Follows what undo and redo take, until the result is called. */
  followEdits(): () => void {
    const end = effect(() => {
      if (this.store.project.value !== undefined && this.store.changes.value > 0) this.#readEditsSoon()
    })
    return () => {
      end()
      clearTimeout(this.#reading)
    }
  }

  /** Reads what undo and redo take, when the edits of a moment are over. */
  #readEditsSoon(): void {
    this.#reading ??= setTimeout(() => {
      this.#reading = undefined
      if (!mayEdit()) return
      const count = this.pending.value
      this.#client
        .call('GET /v2/projects/{project_id}/edits', { params: this.#params })
        .then((edits) => {
          // An edit that began meanwhile reads them again.
          if (count === 0 && this.pending.value === 0) this.edits.value = edits
        })
        .catch(ignore('the button stays as it is, and a lost connection is shown'))
    }, editsMs)
  }

  get #params(): { project_id: string } {
    return { project_id: this.#project() }
  }

  #putNode(node_id: string, body: LabNodeUpdate): Promise<void> {
    return this.#put(this.store.nodes, node_id, () =>
      this.#client.call('PUT /v2/projects/{project_id}/nodes/{node_id}', {
        params: { ...this.#params, node_id },
        body,
      }),
    )
  }

  #putLink(link_id: string, body: LabLinkUpdate): Promise<void> {
    const { links } = this.store
    return this.#put(links, link_id, async () => ({
      ...links.get(link_id),
      ...(await this.#client.call('PUT /v2/projects/{project_id}/links/{link_id}', {
        params: { ...this.#params, link_id },
        body,
      })),
    }))
  }

  #putDrawing(drawing_id: string, body: LabDrawingUpdate): Promise<void> {
    return this.#put(this.store.drawings, drawing_id, () =>
      this.#client.call('PUT /v2/projects/{project_id}/drawings/{drawing_id}', {
        params: { ...this.#params, drawing_id },
        body,
      }),
    )
  }

  /** Changes a resource. The answer is kept unless the feed was faster: an event may be of a later change by another user. */
  #put<T>(table: Table<T>, id: string, send: () => Promise<T>): Promise<void> {
    return this.#turns.run(id, async () => {
      const before = table.row(id)?.peek()
      const changed = await send()
      if (table.row(id)?.peek() === before) table.put(id, changed)
    })
  }

  /** An edit of one or several requests, which one undo reverts: `sent` counts those that succeed. `onFault` shows why it was refused. */
  async #edit<T>(send: (sent: Sent) => Promise<T>, onFault = notifyError): Promise<T | undefined> {
    let count = 0
    const sent: Sent = async (request) => {
      const answer = await request
      count += 1
      return answer
    }
    this.edits.value = undefined
    // When one of several requests fails, others may have succeeded.
    const result = await this.#ask(() => send(sent), onFault)
    if (count > 0) {
      this.#steps.push(count)
      this.#undone.length = 0
    }
    this.#readEditsSoon()
    return result
  }

  async #ask<T>(send: () => Promise<T>, onFault = notifyError): Promise<T | undefined> {
    this.pending.value += 1
    try {
      return await send()
    } catch (error) {
      onFault(error)
      return undefined
    } finally {
      this.pending.value -= 1
    }
  }
}

/** An image that a node lacks. */
export interface LackedImage {
  readonly node_id: string
  readonly kind: string
  /** The name that the node has for it. */
  readonly image: string
}

/** Counts a request of an edit when it succeeds. */
type Sent = <T>(request: Promise<T>) => Promise<T>

/** A drawing in another size, and where its upper left corner is then. */
export interface Resized extends Point {
  readonly id: string
  readonly shape: Shape
}

const nowhere: Point = { x: 0, y: 0 }

/** Shows why an edit is refused without a request. */
export const refuse = (reason: string): void => notify('warning', reason)
