import type { Desired } from './desired.ts'
import { escaped } from './document.ts'
import type { LabFileEdit } from './edit.ts'

/** The edits of one task. */
interface EditedTask {
  readonly name: string
  readonly edits: readonly LabFileEdit[]
}

/** The edits of tasks whose checks get other names, or are removed (undefined). `names`: new names by the present ones. */
export function taskEdits({ tasks = [] }: Desired, names: ReadonlyMap<string, string | undefined>): EditedTask[] {
  return tasks.flatMap(({ name, checks }, index): EditedTask[] => {
    const edits = checks.flatMap((word, at): LabFileEdit[] => {
      const next = names.get(word)
      if (!names.has(word) || next === word) return []
      const value = next === undefined ? undefined : escaped(next)
      return [{ path: ['tasks', index, 'checks', at], value }]
    })
    return edits.length === 0 ? [] : [{ name, edits }]
  })
}
