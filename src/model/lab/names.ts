import { conflict } from '../../lib/errors/api-error.ts'

/** The form in which names are compared: case does not count. */
export const nameKey = (name: string): string => name.toLowerCase()

/** A name that is not taken, made from the wanted one. `isTaken` gets names in the form of `nameKey`. 409 without any. */
export type FreeName = (wanted: string, isTaken: (key: string) => boolean) => string

/** Longest part of a stem by which the numbers after it are remembered: all names that it makes begin with it, characters. */
const maxStem = 240

/** The name, or if it is taken the next free one: `PC1` becomes `PC2`, `Router` becomes `Router2`. 409 without any. */
export const freeName = (wanted: string, isTaken: (key: string) => boolean): string => new FreeNames(isTaken).of(wanted)

/** Free names for many, one after the other. A name that it gave must be taken before the next one is asked for. */
export class FreeNames {
  readonly #isTaken: (key: string) => boolean
  /** For each stem and each number after it that was taken: a later number, which may be free. */
  readonly #later = new Map<string, Map<number, number>>()

  constructor(isTaken: (key: string) => boolean) {
    this.#isTaken = isTaken
  }

  /** See `freeName`. */
  of(wanted: string): string {
    if (!this.#isTaken(nameKey(wanted))) return wanted
    const [, stem = '', digits = ''] = /^(.*?)(\d{0,9})$/.exec(wanted) ?? []
    const key = nameKey(stem.slice(0, maxStem))
    const later = this.#later.get(key) ?? new Map<number, number>()
    this.#later.set(key, later)
    const passed: number[] = []
    for (let number = digits === '' ? 2 : Number(digits) + 1; number < 1e10; number = later.get(number) ?? number + 1) {
      const text = String(number)
      // A name has at most 255 characters.
      const name = `${stem.slice(0, 255 - text.length)}${text}`
      if (!this.#isTaken(nameKey(name))) {
        for (const it of passed) later.set(it, number)
        return name
      }
      passed.push(number)
    }
    throw conflict(`name: ${wanted} and all its numbered variants are taken; choose another name`)
  }
}
