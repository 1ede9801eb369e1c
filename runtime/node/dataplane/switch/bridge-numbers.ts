/** The numbers that bridges have on the packet path, also those that do not run. */
export class BridgeNumbers {
  readonly #keys: string[] = []
  readonly #numbers = new Map<string, number>()

  of(key: string): number {
    const known = this.#numbers.get(key)
    if (known !== undefined) return known
    const number = this.#keys.push(key)
    this.#numbers.set(key, number)
    return number
  }

  keyOf(number: number): string {
    return this.#keys[number - 1] ?? ''
  }
}
