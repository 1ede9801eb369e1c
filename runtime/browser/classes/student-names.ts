import { nameKey } from '../../../src/model/lab/names.ts'
import { studentNamesIn } from '../../../src/model/lab/student-names.ts'

/** The students of a list, and the names that are in it more than once. */
export interface StudentNames {
  readonly names: readonly string[]
  readonly twice: readonly string[]
}

/** The names of a list. Case does not tell two apart. */
export function studentNames(text: string): StudentNames {
  const names = new Map<string, string>()
  const twice = new Map<string, string>()
  for (const name of studentNamesIn(text)) {
    const key = nameKey(name)
    if (names.has(key)) twice.set(key, names.get(key) ?? name)
    else names.set(key, name)
  }
  return { names: [...names.values()], twice: [...twice.values()] }
}

/** What such a list says, for the one who types it. */
export function namesText({ names, twice }: StudentNames): string {
  const count = names.length === 1 ? '1 student' : `${names.length} students`
  if (twice.length === 0) return count
  return `${count}. Twice in the list: ${twice.join(', ')}. Each name gets one lab: tell two people apart by longer names.`
}
