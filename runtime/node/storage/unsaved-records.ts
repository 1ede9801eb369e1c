/** Records that could not be saved. Each one is reported once until it is saved. */
export class UnsavedRecords {
  readonly #tell: (message: string, error: unknown) => void
  readonly #unsaved = new Set<string>()

  constructor(tell: (message: string, error: unknown) => void) {
    this.#tell = tell
  }

  /** Reports a record that could not be saved. */
  add(record: string, message: string, error: unknown): void {
    if (this.#unsaved.has(record)) return
    this.#unsaved.add(record)
    this.#tell(message, error)
  }

  /** Notes that a record was saved. */
  saved(record: string): void {
    this.#unsaved.delete(record)
  }
}
