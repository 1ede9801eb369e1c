/** Characters. */
const tailLength = 3000

/** What a program prints, as it comes, without carriage returns. */
export class Output {
  #text = ''
  /** The end of all that was printed, for errors. */
  #tail = ''
  #hasEnded = false
  readonly #decoder = new TextDecoder()
  #changed: () => void = () => {}

  add(bytes: Uint8Array): void {
    const text = this.#decoder.decode(bytes, { stream: true }).replaceAll('\r', '')
    this.#text += text
    this.#tail = (this.#tail + text).slice(-tailLength)
    this.#changed()
  }

  /** Nothing more comes. */
  end(): void {
    this.#hasEnded = true
    this.#changed()
  }

  /** What was printed and not forgotten. */
  get text(): string {
    return this.#text
  }

  /** Drops what came until now. */
  forget(): void {
    this.#text = ''
  }

  /** Resolves with the text when it is as wanted; rejects when the program ends before, or the time is over. */
  async until(isWanted: (text: string) => boolean, ms: number): Promise<string> {
    const deadline = Date.now() + ms
    while (!isWanted(this.#text)) {
      if (this.#hasEnded) throw new Error(`It ended:\n${this.#tail}`)
      if (!(await this.#change(deadline)))
        throw new Error(`Not within ${ms / 1000} s; the end of what it printed:\n${this.#tail}`)
    }
    return this.#text
  }

  /** Rejects when the program has not ended in time. */
  async ended(ms: number): Promise<void> {
    const deadline = Date.now() + ms
    while (!this.#hasEnded) if (!(await this.#change(deadline))) throw new Error(`It did not end within ${ms / 1000} s`)
  }

  /** false when the time was over before something came. */
  #change(deadline: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), Math.max(0, deadline - Date.now()))
      this.#changed = () => {
        clearTimeout(timer)
        resolve(true)
      }
    })
  }
}
