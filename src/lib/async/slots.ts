/** Runs at most some operations at a time; the others wait for their turn, in the order of the calls. */
export class Slots {
  readonly #waiting: (() => void)[] = []
  #free: number

  /** `count`: operations that run at a time. */
  constructor(count: number) {
    this.#free = count
  }

  async run<T>(operation: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await operation()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free += 1
      else next()
    }
  }
}
