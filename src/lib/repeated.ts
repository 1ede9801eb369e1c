/** The first value that a list has before; undefined: all of them differ. */
export function repeated<T>(values: readonly T[]): T | undefined {
  const seen = new Set<T>()
  return values.find((it) => seen.has(it) || !seen.add(it))
}
