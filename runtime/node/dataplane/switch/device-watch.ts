const everyMs = 1000

/** Checks device links periodically: the system does not report the return of a device with the same name. */
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
