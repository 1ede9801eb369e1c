const everyMs = 1000

/** Has the links of devices looked at now and then: the system does not tell that a device of the same name is there again. */
export class DeviceWatch {
  readonly #keys = new Set<string>()
  readonly #look: (key: string) => void
  #timer: NodeJS.Timeout | undefined

  constructor(look: (key: string) => void) {
    this.#look = look
  }

  add(key: string): void {
    this.#keys.add(key)
    this.#timer ??= setInterval(() => {
      for (const it of this.#keys) this.#look(it)
    }, everyMs).unref()
  }

  delete(key: string): void {
    this.#keys.delete(key)
    if (this.#keys.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
