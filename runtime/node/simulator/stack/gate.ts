/** Holds what a pc does: whatever waits at it goes on when it is open again. */
export class Gate {
  #opened: Promise<void> | undefined
  #open = () => {}

  get isClosed(): boolean {
    return this.#opened !== undefined
  }

  close(): void {
    this.#opened ??= new Promise((resolve) => {
      this.#open = resolve
    })
  }

  open(): void {
    this.#opened = undefined
    this.#open()
  }

  /** Resolves when it is open. */
  async pass(): Promise<void> {
    while (this.#opened !== undefined) await this.#opened
  }
}
