/** A copy of an object without some of its members. */
export function omit<T extends object, K extends keyof T>(object: T, ...keys: readonly K[]): Omit<T, K> {
  const left = Object.entries(object).filter(([key]) => !(keys as readonly PropertyKey[]).includes(key))
  return Object.fromEntries(left) as Omit<T, K>
}
