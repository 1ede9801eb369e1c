/** Pauses a pc: callers of `pass` wait until the gate is open. */
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

  /** Resolves when the gate is open. */
  async pass(): Promise<void> {
    while (this.#opened !== undefined) await this.#opened
  }
}
