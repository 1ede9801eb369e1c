import { batch, computed, type ReadonlySignal, type Signal, signal } from '@preact/signals'
import type { LabDrawing, LabNode } from '../../../src/client/patchbay.ts'
import { SerialQueue } from '../../../src/lib/async/serial-queue.ts'
import type { Point } from '../map/geometry.ts'
import type { LabStore } from '../state/lab-store.ts'

/** Time after the last key press at which a move by keys is sent, ms. */
const nudgeMs = 400

const nowhere: Point = { x: 0, y: 0 }

/** The node or the drawing with an id. */
export const movableOf = ({ nodes, drawings }: LabStore, id: string): LabNode | LabDrawing | undefined =>
  nodes.get(id) ?? drawings.get(id)

/** Where nodes and drawings are shown, also while they are moved. */
export class Moves {
  readonly #store: LabStore
  readonly #save: (positions: readonly (readonly [id: string, position: Point])[]) => Promise<unknown>
  /**
   * Positions of nodes and drawings that are being moved, until the service has taken them. Each is a signal: of a thousand nodes only the
   * one that is dragged, and its links, follow the pointer.
   */
  readonly #moved = signal<ReadonlyMap<string, Signal<Point>>>(new Map())
  /** The positions that are being sent. */
  #sending: ReadonlyMap<string, Point> = new Map()
  readonly #drops = new SerialQueue()
  /** Keyed by the rows of tables: a resource that is deleted and made again has a new row. */
  readonly #positions = new WeakMap<object, ReadonlySignal<Point>>()
  #nudged: ReturnType<typeof setTimeout> | undefined

  /** `save` sends positions, as one edit; it shows a refusal, and does not reject. */
  constructor(store: LabStore, save: (positions: readonly (readonly [string, Point])[]) => Promise<unknown>) {
    this.#store = store
    this.#save = save
  }

  /** The position of a node or a drawing, also while it is being dragged. */
  positionOf(id: string): ReadonlySignal<Point> {
    const row = this.#store.nodes.row(id) ?? this.#store.drawings.row(id)
    const known = row && this.#positions.get(row)
    if (known !== undefined) return known
    // Without a move the value is the resource itself, always the same object, so that nothing is rendered again.
    const position = computed<Point>(() => this.#moved.value.get(id)?.value ?? movableOf(this.#store, id) ?? nowhere)
    if (row !== undefined) this.#positions.set(row, position)
    return position
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
    this.#moved.value = new Map([...this.#sending].map(([id, position]) => [id, signal(position)]))
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
      const now = movableOf(this.#store, id)
      return now !== undefined && (now.x !== x || now.y !== y)
    })
    this.#sending = new Map(positions)
    if (positions.length > 0) await this.#save(positions)
    this.#sending = new Map()
    this.#moved.value = new Map([...this.#moved.value].filter(([id, position]) => told.get(id) !== position.value))
  }

  /** Whether the service has not taken all positions yet. */
  get isUnsent(): boolean {
    return this.#moved.value.size > 0
  }

  /** Moves nodes and drawings by steps of the keyboard. */
  nudge(ids: readonly string[], dx: number, dy: number): void {
    const positions = ids.map((id) => [id, this.positionOf(id).value] as const)
    this.drag(new Map(positions.map(([id, { x, y }]) => [id, { x: x + dx, y: y + dy }])))
    // A key that is held down is one edit.
    clearTimeout(this.#nudged)
    this.#nudged = setTimeout(() => void this.drop(), nudgeMs)
  }
}
