/** The members of a JSON object. */
export type Members = Readonly<Record<string, unknown>>

export const isMembers = (value: unknown): value is Members =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

/** The members with these names that the object has. */
export const pick = (value: Members, names: Iterable<string>): Record<string, unknown> =>
  Object.fromEntries([...names].filter((name) => name in value).map((name) => [name, value[name]]))
