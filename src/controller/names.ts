import { conflict } from '../errors/api-error.ts'

/** The form in which names are compared: case does not count. */
export const nameKey = (name: string): string => name.toLowerCase()

/** A name that is not taken, made from the wanted one. `isTaken` gets names in the form of `nameKey`. 409 without any. */
export type FreeName = (wanted: string, isTaken: (key: string) => boolean) => string

/** The name, or if it is taken the next free one: `PC1` becomes `PC2`, `Router` becomes `Router2`. 409 without any. */
export function freeName(wanted: string, isTaken: (key: string) => boolean): string {
  if (!isTaken(nameKey(wanted))) return wanted
  const [, stem = '', digits = ''] = /^(.*?)(\d{0,9})$/.exec(wanted) ?? []
  for (let number = digits === '' ? 2 : Number(digits) + 1; number < 1e10; number++) {
    const text = String(number)
    // A name has at most 255 characters.
    const name = `${stem.slice(0, 255 - text.length)}${text}`
    if (!isTaken(nameKey(name))) return name
  }
  throw conflict(`name: ${wanted} is taken, with every number after it; choose another name`)
}
