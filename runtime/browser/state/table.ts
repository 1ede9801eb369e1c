import { batch, type ReadonlySignal, type Signal, signal } from '@preact/signals'

/** Resources by id. Each one is a signal: an event renders again what shows that resource, and nothing else. */
export class Table<T> {
  /** In the order in which they came. */
  readonly ids: ReadonlySignal<readonly string[]>
  readonly #ids = signal<readonly string[]>([])
  readonly #rows = new Map<string, Signal<T>>()
  /** Grows with each removal: who reads a resource by its id must learn that it is gone. */
  readonly #removals = signal(0)

  constructor() {
    this.ids = this.#ids
  }

  /** The signal of a resource; undefined: there is none. */
  row(id: string): ReadonlySignal<T> | undefined {
    return this.#rows.get(id)
  }

  /** A resource; a reader follows it, and learns when it comes and when it goes. */
  get(id: string): T | undefined {
    const row = this.#rows.get(id)
    if (row === undefined) return void this.#ids.value
    void this.#removals.value
    return row.value
  }

  has(id: string): boolean {
    return this.#rows.has(id)
  }

  /** All resources; a reader follows each of them. */
  values(): T[] {
    return this.#ids.value.flatMap((id) => this.#rows.get(id)?.value ?? [])
  }

  put(id: string, value: T): void {
    const row = this.#rows.get(id)
    if (row !== undefined) {
      row.value = value
      return
    }
    this.#rows.set(id, signal(value))
    this.#ids.value = [...this.#ids.value, id]
  }

  delete(id: string): void {
    if (!this.#rows.delete(id)) return
    batch(() => {
      this.#ids.value = this.#ids.value.filter((it) => it !== id)
      this.#removals.value += 1
    })
  }

  /** Applies an event of a resource, such as `node.created`. */
  apply(action: string, id: string, value: T): void {
    if (action.endsWith('.deleted')) this.delete(id)
    else this.put(id, value)
  }

  /** Replaces all resources. Those that stay keep their signals. */
  reset(entries: readonly (readonly [id: string, value: T])[]): void {
    batch(() => {
      const next = new Set(entries.map(([id]) => id))
      const gone = [...this.#rows.keys()].filter((id) => !next.has(id))
      for (const id of gone) this.#rows.delete(id)
      if (gone.length > 0) this.#removals.value += 1
      for (const [id, value] of entries) {
        const row = this.#rows.get(id)
        if (row === undefined) this.#rows.set(id, signal(value))
        else row.value = value
      }
      this.#ids.value = [...next]
    })
  }
}
