import { signal } from '@preact/signals'

/**
 * What a user types or pulls, shown in place of the value that the service has until the service has taken it or refused it. Events draw
 * the field again meanwhile.
 */
export class FieldDraft<T> {
  readonly #value = signal<T | undefined>(undefined)
  #sent: T | undefined

  /** Undefined: the field shows the value that the service has. */
  get value(): T | undefined {
    return this.#value.value
  }

  set value(value: T | undefined) {
    this.#value.value = value
  }

  /** Shows a value until `send` is over. What is typed meanwhile stays; a value that is being sent is not sent twice. */
  async submit(wanted: T, send: () => Promise<unknown>): Promise<void> {
    this.#value.value = wanted
    if (this.#sent === wanted) return
    this.#sent = wanted
    try {
      await send()
    } finally {
      if (this.#sent === wanted) this.#sent = undefined
      if (this.#value.peek() === wanted) this.#value.value = undefined
    }
  }
}
