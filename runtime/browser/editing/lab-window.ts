import { computed, signal } from '@preact/signals'
import type { LabNode, LabTemplate } from '../../../src/client/patchbay.ts'
import { consoleKindOf } from '../console/console-kind.ts'
import type { Dock } from '../console/dock.ts'
import { type Drawable, newShape, shapeOf, sizeOf } from '../drawings/shape.ts'
import type { DialogName } from '../lab/open-dialog.tsx'
import {
  type Box,
  boxOf,
  boxOfAll,
  centreOf,
  fitted,
  onMap,
  overlaps,
  type Point,
  regionIn,
  snapped,
  tile,
  type View,
  zoomed,
} from '../map/geometry.ts'
import { endOf, fittingPorts, isChoice, type Port, portsBetween } from '../map/ports.ts'
import { strandsOf } from '../map/strands.ts'
import { vlanOfLink } from '../map/vlans.ts'
import type { MenuSubject } from './commands.ts'
import type { ConfigDraft } from './config-draft.ts'
import { type LabEditor, refuse } from './lab-editor.ts'
import { middleOf, objectAt } from './panes.ts'

/** A link that is being drawn: from a node, and maybe from one of its ports. */
export interface NewLink {
  readonly from: string
  readonly port?: Port
  /** The node at which it ends, while its ports are chosen. */
  readonly to?: string
  /** Where the list of ports is shown in the window. */
  readonly at?: Point
}

/** A context menu that is open. */
interface OpenMenu {
  readonly subject: MenuSubject
  /** Where in the window. */
  readonly at: Point
  /** Where on the map, when the pointer opened it there. */
  readonly on?: Point | undefined
}

/** Distances of the places for what is added without a position, and how many there are to each side of the middle. */
const [besideStep, belowStep, mostBeside] = [120, 100, 12]
/** Places around the middle, the nearest first. Every second column is lower: a link between those at its sides would cross it. */
const placesAround: readonly Point[] = Array.from({ length: (2 * mostBeside + 1) ** 2 }, (_, index) => {
  const [column, row] = [index % (2 * mostBeside + 1), Math.floor(index / (2 * mostBeside + 1))]
  const x = column - mostBeside
  return { x: besideStep * x, y: belowStep * (2 * (row - mostBeside) + Math.abs(x % 2)) }
}).sort((a, b) => Math.hypot(a.x, a.y) - Math.hypot(b.x, b.y) || b.y - a.y || b.x - a.x)
/** Room of a node with its name, around its middle. */
const roomOfNode = { width: tile + 36, height: tile + 32 }
const around = ({ x, y }: Point, { width, height }: Pick<Box, 'width' | 'height'>): Box => ({
  x: x - width / 2,
  y: y - height / 2,
  width,
  height,
})

/** Distance of a copy, to the right and down; how often it is tried again; and the grid of copies. */
const [copyStep, maxCopySteps, copyGrid] = [60, 200, 10]
/** Width of the window above which the tasks of a lab are shown beside its map from the beginning. */
const widthForTasks = 760
/** Number of nodes from which on the map draws only what is in sight. */
const manyNodes = 150
/** The least scale at which names of ports can be read. */
const leastPortScale = 0.6
/** How names of nodes are drawn from a scale on: the smaller the map, the larger on it, so that fewer characters fit beside each other. */
const nameSizes = [
  { from: 0.75, size: 'normal', most: 20 },
  { from: 0.5, size: 'large', most: 14 },
  { from: 0.35, size: 'larger', most: 10 },
] as const

/** Colours of VLANs that the style sheet has. */
const vlanColourCount = 8

/** What is open and shown on the screen of a lab; nothing of it is stored. */
export class LabWindow {
  readonly editor: LabEditor
  readonly dock: Dock
  readonly view = signal<View>({ at: { x: -400, y: -300 }, scale: 1 })
  /** Size of the map in the window, pixels. */
  readonly size = signal({ width: 800, height: 600 })
  /** The view that shows the whole lab, as long as the user has chosen no other. */
  #whole: View | undefined
  readonly hasLabels = signal(true)
  /** Whether names of ports are shown: as long as they can be read. */
  readonly hasPortNames = computed(() => this.hasLabels.value && this.view.value.scale >= leastPortScale)
  /** The position of each link among those between the same nodes. The ends of a link stay: changes of its state make nothing again. */
  readonly strands = computed(() => {
    const { links } = this.editor.store
    return strandsOf(links.ids.value.flatMap((id) => links.row(id)?.peek() ?? []))
  })
  /** How names of nodes are drawn; undefined: too small to be read. */
  readonly nameSize = computed(() => nameSizes.find(({ from }) => this.view.value.scale >= from))
  readonly #regionKey = computed(() => {
    if (this.editor.store.nodes.ids.value.length < manyNodes) return ''
    const { x, y, width, height } = regionIn(this.view.value, this.size.value)
    return `${x} ${y} ${width} ${height}`
  })
  /** The part of the map that is drawn; undefined: all of it. */
  readonly region = computed<Box | undefined>(() => {
    const [x = 0, y = 0, width = 0, height = 0] = this.#regionKey.value.split(' ').map(Number)
    return width === 0 ? undefined : { x, y, width, height }
  })
  readonly hasVlanColours = signal(false)
  /** The number of the colour of each VLAN; undefined: links have the colours of their states. */
  readonly vlanColours = computed(() => {
    const { nodes, links } = this.editor.store
    if (!this.hasVlanColours.value) return undefined
    const vlans = new Set(links.values().map((link) => vlanOfLink(link, (id) => nodes.get(id))))
    const numbers = [...vlans].filter((vlan) => typeof vlan === 'number').sort((a, b) => a - b)
    return new Map(numbers.map((vlan, index) => [vlan, index % vlanColourCount]))
  })
  readonly isList = signal(false)
  /** Whether the user wants the tasks beside the map; undefined: as there is room. */
  readonly tasksChoice = signal<boolean | undefined>(undefined)
  readonly hasTasks = computed(() => this.editor.store.project.value?.score !== undefined)
  readonly isShowingTasks = computed(
    () => this.hasTasks.value && (this.tasksChoice.value ?? innerWidth > widthForTasks),
  )
  /** The dialog that is open. */
  readonly dialog = signal<DialogName | undefined>(undefined)
  readonly menu = signal<OpenMenu | undefined>(undefined)
  /** Ids of the nodes that *Paste* copies. */
  readonly copied = signal<readonly string[]>([])
  readonly newLink = signal<NewLink | undefined>(undefined)
  /** Name of a field that the next render of the inspector focuses. */
  readonly wanted = signal<string | undefined>(undefined)

  /** Middles of the nodes that the service is asked to add. */
  readonly #coming = new Set<Point>()
  /** Titles of the parts of the inspector that are open, such as the configuration. */
  readonly openParts = signal<ReadonlySet<string>>(new Set())
  /** Configurations that are shown, and those with text that is not saved yet. */
  readonly #drafts = new Map<string, ConfigDraft>()

  constructor(editor: LabEditor, dock: Dock) {
    this.editor = editor
    this.dock = dock
  }

  /** Opens the consoles of nodes; shows a message for nodes without one. */
  openConsoles(ids: readonly string[]): void {
    const nodes = ids.flatMap((id) => this.editor.store.nodes.get(id) ?? [])
    const without = nodes.filter((it) => consoleKindOf(it) === undefined)
    for (const node of nodes) if (!without.includes(node)) this.dock.open(node.node_id)
    if (without.length > 0)
      refuse(`${without.map(({ name }) => name).join(', ')}: this page cannot show a console of this type.`)
  }

  connectFrom(from: string | undefined, port?: Port): void {
    if (from !== undefined) this.newLink.value = { from, ...(port !== undefined && { port }) }
  }

  /**
   * Ends the link that is being drawn at a node. Where a node has several free ports it asks for them, at a point of the window;
   * `isFirst`: it takes the first ones.
   */
  connectTo(to: string, at: Point, isFirst = false): void {
    const { nodes, links } = this.editor.store
    const { from = '', port } = this.newLink.value ?? {}
    this.newLink.value = undefined
    const [a, b] = [nodes.get(from), nodes.get(to)]
    if (a === undefined || b === undefined || a === b) return
    const found = portsBetween(a, b, links.values(), port)
    if ('reason' in found) refuse(found.reason)
    else if (isFirst || !isChoice(found)) this.linkBy(a, b, found.from[0], fittingPorts(found.from[0], found.to)[0])
    else this.newLink.value = { from, to, at, ...(port !== undefined && { port }) }
  }

  /** Links two nodes by ports of theirs. */
  linkBy(a: LabNode, b: LabNode, mine: Port | undefined, theirs: Port | undefined): void {
    this.newLink.value = undefined
    if (mine !== undefined && theirs !== undefined) void this.editor.link([endOf(a, mine), endOf(b, theirs)])
  }

  /** The configuration of a node in the editor. */
  draftOf({ project_id, node_id }: LabNode, name: string): ConfigDraft {
    const id = `${node_id}/${name}`
    const draft = this.#drafts.get(id) ?? this.editor.draft({ project_id, node_id, name })
    this.#drafts.set(id, draft)
    return draft
  }

  /** The configuration is no longer shown: what was typed stays until it is saved or discarded. */
  forgetDraft({ node_id }: LabNode, name: string): void {
    const id = `${node_id}/${name}`
    if (this.#drafts.get(id)?.isChanged.value === false) this.#drafts.delete(id)
  }

  /** Whether a text was typed that is not saved. */
  get hasUnsaved(): boolean {
    return [...this.#drafts.values()].some(({ isChanged }) => isChanged.peek())
  }

  /** The selected nodes that run and have a state of their own, which ends with them. */
  get runningMachines(): readonly LabNode[] {
    const { editor } = this
    return editor.selectedNodes.filter((node) => node.status !== 'stopped' && editor.kindOf(node)?.has_images === true)
  }

  /** Deletes what is selected; asks before machines that run. */
  remove(): void {
    if (this.runningMachines.length > 0) this.dialog.value = 'delete'
    else void this.editor.removeSelected()
  }

  /** Opens a context menu. What it is about is selected, unless it is among what is selected. */
  openMenu(menu: OpenMenu, id?: string): void {
    const { editor } = this
    if (id !== undefined && !editor.selection.value.has(id)) editor.select([id])
    this.menu.value = menu
  }

  /** Opens the context menu of what has the focus, or of the map. */
  openMenuAtFocus(): void {
    const focused = objectAt(document.activeElement)
    const element = focused === undefined ? document.querySelector('.stage') : document.activeElement
    this.openMenu({ subject: focused?.subject ?? 'map', at: middleOf(element) }, focused?.id)
  }

  /** Copies nodes, and the links between them: beside them, or around a point. */
  async duplicate(ids: readonly string[], around?: Point): Promise<void> {
    const nodes = ids.flatMap((id) => this.editor.store.nodes.get(id) ?? [])
    const box = boxOf(nodes)
    if (box === undefined) return refuse('The copied nodes were deleted.')
    const shift =
      around === undefined
        ? this.#freeShift(nodes)
        : snapped({ x: around.x - box.x - box.width / 2, y: around.y - box.y - box.height / 2 }, copyGrid)
    await this.editor.duplicate(nodes, shift)
  }

  /** A distance at which copies of nodes cover no node. */
  #freeShift(nodes: readonly LabNode[]): Point {
    const taken = this.editor.store.nodes.values().map(centreOf)
    const covers = (shift: number) =>
      nodes.map(centreOf).some(({ x, y }) => taken.some((it) => Math.hypot(it.x - x - shift, it.y - y - shift) <= tile))
    const steps = Array.from({ length: maxCopySteps }, (_, index) => (index + 1) * copyStep)
    const shift = steps.find((it) => !covers(it)) ?? copyStep
    return { x: shift, y: shift }
  }

  showTasks(isShown: boolean): void {
    this.tasksChoice.value = isShown
  }

  focusOn(field: string): void {
    this.wanted.value = field
  }

  openBar(): void {
    this.dialog.value = 'bar'
  }

  showKeys(): void {
    this.dialog.value = 'keys'
  }

  escape(): void {
    if (this.dialog.value !== undefined) this.dialog.value = undefined
    else if (this.newLink.value !== undefined) this.newLink.value = undefined
    else this.editor.select([])
  }

  get #middle(): Point {
    const { width, height } = this.size.value
    return onMap(this.view.value, { x: width / 2, y: height / 2 })
  }

  /** The free point that is nearest to the middle of the map, for a thing of that size. */
  #freePoint(size: Pick<Box, 'width' | 'height'>, taken: readonly Box[]): Point {
    const { x, y } = this.#middle
    const isFree = (point: Point) => taken.every((other) => !overlaps(around(point, size), other))
    return placesAround.map((step) => ({ x: x + step.x, y: y + step.y })).find(isFree) ?? { x, y }
  }

  /** The nodes with their names, also those that the service is asked to add. */
  get #nodeBoxes(): Box[] {
    const nodes = this.editor.store.nodes.values().map(centreOf)
    return [...nodes, ...this.#coming].map((point) => around(point, roomOfNode))
  }

  /** Adds a drawing, where nothing is near the middle of the map unless a position is given. Of a text its words are asked for. */
  async draw(kind: Drawable, at?: Point): Promise<void> {
    const drawings = this.editor.store.drawings.values().map((it) => ({ x: it.x, y: it.y, ...sizeOf(it.svg) }))
    await this.editor.draw(kind, at ?? this.#freePoint(newShape(kind), [...this.#nodeBoxes, ...drawings]))
    if (kind === 'text') this.focusOn('drawing-text')
  }

  /** Adds a node where nothing is, near the middle of the map. It may stand on a rectangle or an ellipse, and covers no text. */
  async addInMiddle(template: LabTemplate): Promise<void> {
    const texts = this.editor.store.drawings
      .values()
      .flatMap((it) => (shapeOf(it.svg)?.kind === 'text' ? [{ x: it.x, y: it.y, ...sizeOf(it.svg) }] : []))
    const point = this.#freePoint(roomOfNode, [...this.#nodeBoxes, ...texts])
    this.#coming.add(point)
    await this.editor.add(template, point)
    this.#coming.delete(point)
  }

  /** Takes the size of the map on the screen. A lab that was shown as a whole is fitted again. */
  resize(width: number, height: number): void {
    const isWhole = this.#whole === undefined || this.view.value === this.#whole
    this.size.value = { width, height }
    if (isWhole) this.fit()
  }

  /** Shows the whole lab; an empty one with its origin in the middle. */
  fit(): void {
    const { width, height } = this.size.value
    const { nodes, drawings } = this.editor.store
    const drawn = drawings.values().map((it) => ({ x: it.x, y: it.y, ...sizeOf(it.svg) }))
    const box = boxOfAll([boxOf(nodes.values()) ?? [], drawn].flat())
    this.#whole =
      box === undefined ? { at: { x: -width / 2, y: -height / 2 }, scale: 1 } : fitted(box, { width, height })
    this.view.value = this.#whole
  }

  zoom(factor: number): void {
    const { width, height } = this.size.value
    this.view.value = zoomed(this.view.value, factor, { x: width / 2, y: height / 2 })
  }

  /** Selects a node, and moves the map so that it is in the middle. */
  goTo(id: string): void {
    this.centre(centreOf(this.editor.moves.positionOf(id).value))
    this.editor.select([id])
  }

  /** Moves the map so that a position is in the middle. */
  centre({ x, y }: Point): void {
    const { scale } = this.view.value
    const { width, height } = this.size.value
    this.view.value = { scale, at: { x: x - width / scale / 2, y: y - height / scale / 2 } }
  }
}
