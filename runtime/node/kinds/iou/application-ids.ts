import { freeApplicationId } from './netmap.ts'

/** The application ids of this host: the programs of one user meet in one directory, whatever project they are of. */
export class ApplicationIds {
  readonly #holders = new Map<number, string>()

  /** The wanted id when nobody has it, else the lowest free one; the one that the node has already stays. 409 when all are taken. */
  take(key: string, wanted = 0): number {
    const known = this.of(key)
    if (known !== undefined) return known
    const id = wanted > 0 && !this.#holders.has(wanted) ? wanted : freeApplicationId(this.#holders.keys())
    this.#holders.set(id, key)
    return id
  }

  of(key: string): number | undefined {
    for (const [id, holder] of this.#holders) if (holder === key) return id
    return undefined
  }

  release(key: string): void {
    const id = this.of(key)
    if (id !== undefined) this.#holders.delete(id)
  }
}
