/** Records that could not be saved. Each one is reported once until it is saved. */
export class UnsavedRecords {
  readonly #report: (message: string, error: unknown) => void
  readonly #unsaved = new Set<string>()

  constructor(report: (message: string, error: unknown) => void) {
    this.#report = report
  }

  /** Reports a record that could not be saved. */
  add(record: string, message: string, error: unknown): void {
    if (this.#unsaved.has(record)) return
    this.#unsaved.add(record)
    this.#report(message, error)
  }

  /** Notes that a record was saved. */
  saved(record: string): void {
    this.#unsaved.delete(record)
  }
}
