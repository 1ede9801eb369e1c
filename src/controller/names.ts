import { conflict } from '../errors/api-error.ts'

/** Names are compared without regard to case. */
export const nameKey = (name: string): string => name.toLowerCase()

/** The name, or when it is taken the next one with a number: `PC1` becomes `PC2`, `Router` becomes `Router2`. */
export function freeName(wanted: string, isTaken: (key: string) => boolean): string {
  if (!isTaken(nameKey(wanted))) return wanted
  const [, stem = '', digits = ''] = /^(.*?)(\d{0,9})$/.exec(wanted) ?? []
  for (let number = digits === '' ? 2 : Number(digits) + 1; number < 1e10; number++) {
    const text = String(number)
    // A name has at most 255 characters.
    const name = `${stem.slice(0, 255 - text.length)}${text}`
    if (!isTaken(nameKey(name))) return name
  }
  throw conflict(`name: ${wanted} and all numbers behind it are taken; choose another name`)
}
