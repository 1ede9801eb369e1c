/** Records that could not be saved. Each one is told of once, until it has been saved. */
export class UnsavedRecords {
  readonly #tell: (message: string, error: unknown) => void
  readonly #unsaved = new Set<string>()

  constructor(tell: (message: string, error: unknown) => void) {
    this.#tell = tell
  }

  /** A record could not be saved. */
  add(record: string, message: string, error: unknown): void {
    if (this.#unsaved.has(record)) return
    this.#unsaved.add(record)
    this.#tell(message, error)
  }

  /** A record was saved. */
  saved(record: string): void {
    this.#unsaved.delete(record)
  }
}
