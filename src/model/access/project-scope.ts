/**
 * The projects that a credential is for: ids, names of labs, or prefixes of names that end with `*`, such as `class-*`. Case does not
 * count. Only labs have names here: names of projects on computes are not unique.
 */
export type ProjectScope = readonly string[]

/** Whether the project belongs to the scope; all do without one. `name`: of a lab. */
export function isInScope(scope: ProjectScope | undefined, id: string | undefined, name: string | undefined): boolean {
  if (scope === undefined) return true
  const key = name?.toLowerCase()
  return scope.some((it) => {
    const word = it.toLowerCase()
    if (word === id?.toLowerCase()) return true
    return key !== undefined && (word.endsWith('*') ? key.startsWith(word.slice(0, -1)) : key === word)
  })
}
