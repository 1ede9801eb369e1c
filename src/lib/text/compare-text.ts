/** Compares texts by their UTF-16 code units, for sorts: in contrast to `localeCompare` the same on every host. */
export function compareText(a: string, b: string): -1 | 0 | 1 {
  if (a === b) return 0
  return a < b ? -1 : 1
}
